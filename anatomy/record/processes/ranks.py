"""Several processes, one for each GPU: started by torchrun's own launcher, and ended all together.

Where an experiment needs several GPUs, `run` starts a rank on each, which calls one function; what
it returned on rank 0 comes back. Where somebody else's torchrun started this process as one of its
ranks (`torchrun --nnodes`, or `srun torchrun`), `run` calls the function at once, as the other
ranks do. Ranks talk through `anatomy.parts.ranks`. Here is what becomes of them: a rank that fails,
is killed or hangs ends the run with one sentence that names it, and none outlives it.

`python -m anatomy.record.processes.ranks TASK` is such a rank."""

import ctypes
import importlib
import json
import os
import signal
import socket
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from anatomy.machine import host
from anatomy.record.processes import isolation, worker
from anatomy.table.errors import AnatomyError, BadParameter, Busy, DeviceError, MeasurementError

MODULE = "anatomy.record.processes.ranks"
# What torchrun tells each process that it starts; srun and others who start ranks set the same.
RANK, SIZE, PORT = "RANK", "WORLD_SIZE", "MASTER_PORT"
DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux's prctl
# A rank that only lost another one waits so long, so that the other is the first to be found.
GIVE_WAY_S = 3.0
LOST = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "monitoredBarrier")


def inside() -> bool:
    """Whether this process is one of several ranks already."""
    return RANK in os.environ and SIZE in os.environ


def run(entry: str, world_size: int, device: str, limit_s: float, params: Mapping[str, Any]) -> Any:
    """What the function `entry`, as `module:function`, returned on rank 0 of `world_size` ranks,
    each called with `params`; it must be what JSON holds. Ranks have the devices from `device` on.
    After `limit_s` seconds all are ended.

    Raises DeviceError where there are fewer GPUs or no NCCL, BadParameter where the ranks that were
    started are not `world_size`, Busy where the port in MASTER_PORT is taken; what a rank raised,
    by its name and with the rank; MeasurementError where one was killed or the time was up."""
    _require(world_size, device)
    if inside():
        if (started := int(os.environ[SIZE])) != world_size:
            raise BadParameter(
                f"{started} ranks were started, and {world_size} are asked for: let --gpus be the "
                "number of all ranks, nodes times processes of each."
            )
        return called(entry, params)
    if world_size == 1:  # this process can be it
        return called(entry, params)
    with isolation.temporary_folder() as folder:
        task = Path(folder) / "task.json"
        given = {"entry": entry, "params": dict(params), "folder": folder}
        given["parent"] = os.getpid()
        task.write_text(json.dumps(given), encoding="utf-8")
        _launch(world_size, task, limit_s)
        return json.loads((Path(folder) / "result.json").read_text(encoding="utf-8"))


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
    host.require_device(device)
    here = int(os.environ.get("LOCAL_WORLD_SIZE", world_size))  # of this node
    if first + here > (count := torch.cuda.device_count()):
        raise DeviceError(
            f"{here} GPUs from {device} on are asked for, and {count} "
            f"{'is' if count == 1 else 'are'} visible here: take fewer with --gpus."
        )
    others = {
        pid
        for number in range(first, first + here)
        for pid in host.foreign_processes(f"{kind}:{number}") or ()
    }
    if others and not inside() and os.environ.get("ANATOMY_ALLOW_FOREIGN") != "1":
        raise Busy(
            f"{len(others)} other process{'es' if len(others) > 1 else ''} on these {here} GPUs "
            "would be measured too: stop them, or allow them with --allow-foreign."
        )
    if not distributed.is_nccl_available():
        raise DeviceError(
            f"This PyTorch ({torch.__version__}) has no NCCL, which GPUs talk through: install one "
            "built for CUDA on Linux, or measure the CPU with --device cpu."
        )


def _launch(world_size: int, task: Path, limit_s: float) -> None:
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
        rdzv_endpoint=f"localhost:{_port()}",
        local_addr="localhost",
        max_restarts=0,
        logs_specs=DefaultLogsSpecs(log_dir=str(task.parent)),  # else one of its own that stays
    )
    path = os.pathsep.join(map(os.path.abspath, sys.path))  # where this process finds its modules
    try:
        # A thread each, as torchrun has it, or all would take all cores.
        own = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
        with _at_most(limit_s), _environment(own | {"PYTHONPATH": path}):
            elastic_launch(how, sys.executable)("-P", "-m", MODULE, str(task))
    except ChildFailedError as error:
        raise _told(error.failures, world_size, task.parent) from None


@contextmanager
def _environment(added: Mapping[str, str]) -> Iterator[None]:
    """What ranks inherit beside the rest."""
    before = {name: os.environ.get(name) for name in added}
    os.environ.update(added)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _port() -> int:
    """The port in MASTER_PORT if that is free, else 0, for any: two runs then never meet."""
    port = int(os.environ.get(PORT, 0))
    with socket.socket() as trial:
        try:
            trial.bind(("localhost", port))
        except OSError:
            raise Busy(
                f"Port {port}, which {PORT} names, is taken, as by another run. Name another, or "
                f"unset {PORT}: a free one is found then."
            ) from None
    return port


@contextmanager
def _at_most(limit_s: float) -> Iterator[None]:
    """Raise TimeLimit in the block after so many seconds; only a main thread can be called back."""

    def late(*_: object) -> None:
        raise isolation.TimeLimit(
            f"The ranks ran for {limit_s:.0f} s, their time limit, and were ended."
        )

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _told(failures: Mapping[int, Any], world_size: int, folder: Path) -> AnatomyError:
    """The error of the rank that failed first. One that was killed could write none; one that
    torchrun ended did nothing wrong, unless the others waited for it."""
    files = sorted(folder.glob("rank-*.json"))
    told = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    told.sort(key=lambda each: (each["lost"], each["at"]))
    killed = [(r, -f.exitcode) for r, f in sorted(failures.items()) if f.exitcode < 0]
    killed = [each for each in killed if each[1] != signal.SIGTERM]
    if killed and (not told or told[0]["lost"]):
        rank, number = killed[0]
        missed = ", ".join(str(r) for r in range(world_size) if (r, number) not in killed)
        why = {
            signal.SIGKILL: ", as the system does when the host's memory runs out",
            signal.SIGABRT: f", as NCCL does when another, here {missed or '?'}, does not come",
        }.get(number, "")
        return MeasurementError(f"Rank {rank} was ended by {signal.Signals(number).name}{why}.")
    if not told:
        rank, failure = min(failures.items())
        return MeasurementError(f"Rank {rank} ended with status {failure.exitcode}, silently.")
    first = told[0]
    error = isolation.revive(first["error"], f"Rank {first['rank']}: {first['message']}")
    error.output = first["trace"]
    return error


def main(task: Path) -> int:
    """Be one rank: do the task, and write down what came of it. Returns the status."""
    if sys.platform == "linux":  # torchrun gives each rank a session, which no group's end reaches
        ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)
    given, rank = json.loads(task.read_text(encoding="utf-8")), int(os.environ[RANK])
    if os.getppid() != given["parent"]:  # it died before that was asked for
        return 1
    folder = Path(given["folder"])
    try:
        found = called(given["entry"], given["params"])
    except Exception as error:
        told = worker.failure(error) | {"rank": rank, "at": time.time()}
        told["lost"] = any(sign in str(error) for sign in LOST)
        if told["lost"]:
            time.sleep(GIVE_WAY_S)
        text = json.dumps(told)
        with suppress(OSError):  # the folder is gone once the run has ended
            (folder / f"rank-{rank}.json").write_text(text, encoding="utf-8")
        return 1
    if rank == 0:
        (folder / "result.json").write_text(json.dumps(found, allow_nan=False), encoding="utf-8")
    return 0


if __name__ == "__main__":
    status = main(Path(sys.argv[1]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # after a failure, to take a group of ranks apart may hang
