"""Several processes, one for each GPU: started by torchrun's own launcher, and ended all together.

Where an experiment needs several GPUs, `run` starts a rank on each, which calls one function; what
it returned on rank 0 comes back. Where somebody else's torchrun started this process as one of its
ranks (`torchrun --nnodes`, or `srun torchrun`), `run` calls the function at once, as the other
ranks do. Ranks talk through `anatomy.parts.ranks`. Here is what becomes of them: a rank that fails,
is killed or hangs ends the run with one sentence that names it, and none outlives the process that
started it, which the recorder ends when its time is up.

`python -m anatomy.record.processes.ranks TASK` is such a rank."""

import ctypes
import importlib
import json
import os
import signal
import socket
import sys
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from anatomy.machine import host
from anatomy.record.processes import isolation, worker
from anatomy.table.errors import AnatomyError, BadParameter, Busy, DeviceError, MeasurementError

MODULE = "anatomy.record.processes.ranks"
# What torchrun tells each process that it starts; srun alone does not.
RANK, SIZE, PORT, ERROR_FILE = "RANK", "WORLD_SIZE", "MASTER_PORT", "TORCHELASTIC_ERROR_FILE"
DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux's prctl
# A rank that only lost another one waits so long, so that the other is the first to be found.
GIVE_WAY_S = 3.0
LOST = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "monitoredBarrier")
LOST += ("ncclRemoteError",)
# NVLink multicast stays off, in whatever could use it: a program that breaks off while it does can
# leave a host's GPUs unusable for all.
NO_MULTICAST = {
    "NCCL_NVLS_ENABLE": "0",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    "NVSHMEM_DISABLE_NVLS": "1",
}
LOOPBACK = "127.0.0.1"  # not localhost: a host without a network may look long for that name


def inside() -> bool:
    """Whether this process is one of several ranks already."""
    return RANK in os.environ and SIZE in os.environ


def run(entry: str, world_size: int, device: str, params: Mapping[str, Any]) -> Any:
    """What the function `entry`, as `module:function`, returned on rank 0 of `world_size` ranks,
    each called with `params`; it must be what JSON holds. Ranks have the devices from `device` on.

    Raises DeviceError where there are fewer GPUs or no NCCL, BadParameter where the ranks that were
    started are not `world_size`, Busy where the port in MASTER_PORT is taken or another process
    computes on a GPU; what a rank raised, by its name and with the rank; MeasurementError where one
    was killed."""
    _require(world_size, device)
    os.environ.update(NO_MULTICAST)  # before anything loads NCCL, here and in what is started
    if not inside() and sys.platform == "linux":  # all are here: no network is asked or waited for
        for library in ("GLOO", "NCCL"):
            os.environ.setdefault(f"{library}_SOCKET_IFNAME", "lo")
    if inside() and (started := int(os.environ[SIZE])) != world_size:
        raise BadParameter(
            f"{started} ranks were started, and {world_size} are asked for: let --gpus be the "
            "number of all ranks, nodes times processes of each."
        )
    if inside() or world_size == 1:  # this process can be it
        return called(entry, params)
    with isolation.temporary_folder() as folder:
        task, result = Path(folder) / "task.json", Path(folder) / "result.json"
        given = {"entry": entry, "params": dict(params), "result": str(result)}
        task.write_text(json.dumps(given | {"parent": os.getpid()}), encoding="utf-8")
        _launch(world_size, task)
        return json.loads(result.read_text(encoding="utf-8"))


def called(entry: str, params: Mapping[str, Any]) -> Any:
    """What a function, `module:function`, returns."""
    module, _, function = entry.partition(":")
    return getattr(importlib.import_module(module), function)(**params)


def _require(world_size: int, device: str) -> None:
    import torch
    from torch import distributed

    kind, first = host.parse_device(device)
    if kind == "cpu":
        return
    here = int(os.environ.get("LOCAL_WORLD_SIZE", world_size))  # of this node
    for number in range(first, first + here):
        host.require_device(f"cuda:{number}")
        if not inside() and os.environ.get("ANATOMY_ALLOW_FOREIGN") != "1":
            worker.refuse_company(f"cuda:{number}")
    if not distributed.is_nccl_available():
        raise DeviceError(
            f"This PyTorch ({torch.__version__}) has no NCCL, which GPUs talk through: install one "
            "built for CUDA on Linux, or measure the CPU with --device cpu."
        )


def _launch(world_size: int, task: Path) -> None:
    """Have torchrun's agent start the ranks, and wait until all are done."""
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    how = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=world_size,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint=f"{LOOPBACK}:{_port()}",
        local_addr=LOOPBACK,
        max_restarts=0,
        logs_specs=DefaultLogsSpecs(log_dir=str(task.parent)),  # else one of its own that stays
    )
    # Ranks inherit where this process finds its modules, and a thread each, as torchrun has it.
    os.environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, sys.path))
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        elastic_launch(how, sys.executable)("-P", "-m", MODULE, str(task))
    except ChildFailedError as error:
        raise _told(error.failures) from None


def _port() -> int:
    """The port in MASTER_PORT if that is free, else 0, for any: two runs then never meet."""
    port = int(os.environ.get(PORT, 0))
    with socket.socket() as trial:
        try:
            trial.bind((LOOPBACK, port))
        except OSError:
            raise Busy(
                f"Port {port}, which {PORT} names, is taken, as by another run. Name another, or "
                f"unset {PORT}: a free one is found then."
            ) from None
    return port


def _told(failures: Mapping[int, Any]) -> AnatomyError:
    """The error of the rank that failed first, from torchrun's record of it; one that was killed
    could write none, and one that torchrun ended or that lost another did nothing wrong."""

    def blame(each: tuple[int, Any]) -> tuple[bool, bool, int]:
        failure = each[1]
        lost = any(sign in failure.error_file_data.get("message", "") for sign in LOST)
        return failure.exitcode == -signal.SIGTERM, lost, failure.timestamp

    rank, failure = min(failures.items(), key=blame)
    if "error" in (told := failure.error_file_data):
        error = isolation.revive(told["error"], f"Rank {rank}: {told['message']}")
        error.output = told["trace"]
        return error
    if failure.exitcode >= 0:
        return MeasurementError(f"Rank {rank} ended with status {failure.exitcode}, silently.")
    why = {
        signal.SIGKILL: ", as the system does when the host's memory runs out",
        signal.SIGABRT: ", as NCCL does when another rank does not come",
    }.get(-failure.exitcode, "")
    return MeasurementError(f"Rank {rank} was ended by {failure.signal_name()}{why}.")


def main(task: Path) -> int:
    """Be one rank: do the task, and write down what came of it. Returns the status."""
    if sys.platform == "linux":  # torchrun gives each rank a session, which no group's end reaches
        ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)
    given = json.loads(task.read_text(encoding="utf-8"))
    if os.getppid() != given["parent"]:  # it died before that was asked for
        return 1
    try:
        found = called(given["entry"], given["params"])
    except Exception as error:
        told = worker.failure(error)
        if any(sign in str(error) for sign in LOST):
            time.sleep(GIVE_WAY_S)
        text = json.dumps(told | {"timestamp": int(time.time())})
        with suppress(OSError):  # the folder is gone once the run has ended
            Path(os.environ[ERROR_FILE]).write_text(text, encoding="utf-8")
        return 1
    if os.environ[RANK] == "0":
        Path(given["result"]).write_text(json.dumps(found, allow_nan=False), encoding="utf-8")
    return 0


if __name__ == "__main__":
    status = main(Path(sys.argv[1]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # after a failure, to take a group of ranks apart may hang
