"""Ranks, with two processes that talk through gloo: what each fault ends in, and that all end."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

from anatomy.parts import ranks as of_parts
from anatomy.record import occasions, recording
from anatomy.record.processes import ranks, worker
from anatomy.table import errors

FAULTS = "tests.record.processes.rank_faults"
CHECKOUT = Path(__file__).parents[3]


def run(fault: str):
    return ranks.run(f"{FAULTS}:{fault}", 2, "cpu", {"device": "cpu"})


def still_there() -> list[str]:
    """Command lines of ranks that run and were started from here: not by tests beside these."""
    name = "PYTEST_XDIST_WORKER"
    mine = f"{name}={os.environ[name]}\0".encode() if name in os.environ else b""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = process.read_bytes().replace(b"\0", b" ").decode()
            here = (process.parent / "cwd").readlink() == Path.cwd()
            here &= mine in (process.parent / "environ").read_bytes()
        except OSError:
            continue
        if here and ranks.MODULE in line:
            found.append(line)
    return found


@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        ("raises", errors.MeasurementError, "Rank 1: ZeroDivisionError: division by zero"),
        ("killed", errors.MeasurementError, "Rank 1 was ended by SIGKILL"),
        ("hangs", errors.MeasurementError, "rank 1 has not come to the next step within 0.5 s"),
        ("outgrows", errors.OutOfMemory, "Rank 1: It ran out of memory when it asked for"),
        (
            "disagrees",
            errors.DisagreementError,
            "ranks disagree on the shape of x: rank 0 has",
        ),
    ],
)
def test_a_rank_that_fails_ends_all_and_says_which_and_why(fault, kind, said, monkeypatch):
    monkeypatch.setenv("NCCL_NVLS_ENABLE", "2")  # which ranks must not be asked with
    began = time.monotonic()
    with pytest.raises(kind, match=said.replace("[", r"\[")):
        run(fault)
    assert not still_there() and time.monotonic() - began < 300, "a rank would sleep for longer"


def test_ranks_die_with_a_launcher_that_is_killed_as_the_recorder_does_when_its_time_is_up():
    code = (
        "from anatomy.record.processes import ranks; "
        f"ranks.run('{FAULTS}:hangs_long', 2, 'cpu', {{'device': 'cpu'}})"
    )
    launcher = subprocess.Popen([sys.executable, "-c", code], cwd=CHECKOUT, stderr=-3)
    deadline = time.monotonic() + 300  # ranks would sleep for longer
    while not (begun := still_there()) and time.monotonic() < deadline:
        time.sleep(0.1)
    launcher.kill()
    launcher.wait()
    assert begun
    while still_there() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not still_there()


def test_a_port_that_is_taken_is_told_before_anything_starts(monkeypatch):
    with socket.socket() as other:
        other.bind(("localhost", 0))
        other.listen()
        port = other.getsockname()[1]
        monkeypatch.setenv("MASTER_PORT", str(port))
        with pytest.raises(errors.Busy, match=f"Port {port}, which MASTER_PORT names, is taken"):
            run("raises")


@pytest.fixture
def gpus(monkeypatch):
    """A host with two GPUs, for what is asked before any of them is used."""
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(ranks.host, "foreign_processes", lambda device: [])
    monkeypatch.delenv("ANATOMY_ALLOW_FOREIGN", raising=False)


def on_gpus(count: int):
    return ranks.run(f"{FAULTS}:raises", count, "cuda:0", {})


def test_more_gpus_than_there_are_or_no_nccl_is_one_error(gpus, monkeypatch):
    with pytest.raises(errors.DeviceError, match="'cuda:2' does not exist: 2 GPUs are visible"):
        on_gpus(3)
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: False)
    with pytest.raises(errors.DeviceError, match="no NCCL"):
        on_gpus(2)


def test_who_computes_on_the_second_gpu_is_in_the_way(gpus, monkeypatch):
    on = {"cuda:0": [], "cuda:1": [4711]}
    monkeypatch.setattr(ranks.host, "foreign_processes", on.get)
    with pytest.raises(errors.Busy, match="Process 4711 computes on cuda:1 too"):
        on_gpus(2)


def test_ranks_that_somebody_else_started_must_be_as_many(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(errors.BadParameter, match="4 ranks were started, and 2 are asked for"):
        run("raises")


def failed(file: Path, exitcode: int, at: int, said: str = "") -> ProcessFailure:
    """What torchrun tells of a rank that ended at a time."""
    if said:
        told = {"error": "DeviceError", "message": said, "trace": "", "timestamp": at}
        file.write_text(json.dumps(told))
    found = ProcessFailure(0, 4711, exitcode, str(file))
    found.timestamp = at
    return found


def test_of_several_errors_the_first_is_told_and_not_that_torchrun_ended_the_others(tmp_path):
    told = failed(tmp_path / "0", 1, 3, "the peer is gone")
    crashed = failed(tmp_path / "1", -signal.SIGSEGV, 2)
    ended = failed(tmp_path / "2", -signal.SIGTERM, 1)
    assert str(ranks._told({0: told, 1: crashed})) == "Rank 1 was ended by SIGSEGV."
    assert str(ranks._told({2: ended, 0: told})) == "Rank 0: the peer is gone"
    lost = failed(tmp_path / "3", 1, 1, "[pair.cc:1] Connection closed by peer")
    assert str(ranks._told({3: lost, 1: crashed})) == "Rank 1 was ended by SIGSEGV."


def test_who_waited_for_another_in_nccl_says_so(tmp_path):
    failures = {0: failed(tmp_path / "0", -signal.SIGABRT, 5)}
    assert "as NCCL does when another rank does not come" in str(ranks._told(failures))


def test_what_the_time_has_no_room_for_is_not_begun_on_any_rank():
    with of_parts.joined("cpu", left={"large": "out of memory"}, budget_s=-1.0) as group:
        assert group.attempt("small", lambda: 1) == (None, "not begun: the time for all is used up")
        assert group.attempt("large", lambda: 1) == (None, "out of memory")


def test_what_pytorch_refuses_costs_itself_alone_and_what_nobody_foresaw_or_a_lost_rank_all():
    def act(error):
        raise error

    with of_parts.joined("cpu") as group:
        refused = partial(act, RuntimeError("no such bucket"))
        assert group.attempt("op", refused) == (None, "failed: RuntimeError: no such bucket")
        for error in (KeyError("a bug"), torch.distributed.DistBackendError("NCCL error")):
            with pytest.raises(type(error)):
                group.attempt("op", partial(act, error))


def test_of_an_error_of_nccl_its_last_line_is_told():
    said = "NCCL error in: a.cpp:1\nncclUnhandledCudaError\nCuda failure 'out of memory'"
    with pytest.raises(torch.distributed.DistBackendError) as caught, of_parts.joined("cpu"):
        raise torch.distributed.DistBackendError(said)
    assert "Cuda failure 'out of memory'" in worker.failure(caught.value)["message"]


def test_the_slowest_rank_decides_and_each_has_a_row():
    def rows(*blocks):
        told = {"op": "step", "quantity": "step_wall", "launch_inclusive": True}
        control = {"variant": "a", "role": "control", "control": None, "blocks_s": list(blocks)}
        again = {"variant": "a (again)", "role": "again", "control": "a"}
        refused = {"op": "step", "variant": "b", "note": "out of memory"}
        return [{**told, **control}, {**told, **control, **again}, refused]

    table = of_parts.together([rows(1.0, 2.0, 3.0), rows(2.0, 1.0, 3.0)])
    slowest = table[table["rank"].isna()]
    assert list(slowest.variant) == ["a", "a (again)", "b"]
    assert slowest.iloc[0].blocks_s == [2.0, 2.0, 3.0] and slowest.iloc[0].median_s == 2.0
    own = table[table["rank"].notna()]
    assert list(own["rank"]) == [0, 1] and set(own.op) == {"step, each rank"}
    assert list(own.blocks_s) == [[1.0, 2.0, 3.0], [2.0, 1.0, 3.0]]
    watched = [row | {"one_drives": True} for row in rows(1.0, 2.0, 3.0)]
    assert "rank" not in (found := of_parts.together([watched, watched])) and len(found) == 3
    assert "one_drives" not in found


def test_two_nodes_of_torchrun_measure_together(tmp_path):
    def node(number: int, port: int) -> subprocess.Popen:
        words = ["-m", "torch.distributed.run", "--nnodes=2", f"--node-rank={number}"]
        words += ["--nproc-per-node=1", "--master-addr=localhost", f"--master-port={port}"]
        words += [f"--log-dir={tmp_path / 'logs'}"]
        words += ["-m", "anatomy", "distributed", "--device", "cpu", "--gpus", "2"]
        words += ["--scale", "1e-5", "--blocks", "1", "--save", str(tmp_path)]
        words += ["--only", "collectives"] * 2  # they meet anew for each
        own = {"OMP_NUM_THREADS": "1", "ANATOMY_LOCKS": str(tmp_path)}
        command = [sys.executable, *words]
        return subprocess.Popen(
            command, cwd=CHECKOUT, env=os.environ | own, stdout=-3, stderr=subprocess.PIPE
        )

    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    nodes = [node(number, port) for number in range(2)]
    said = [each.communicate(timeout=300)[1].decode() for each in nodes]
    assert [each.returncode for each in nodes] == [0, 0], said
    (file,) = tmp_path.glob("*/distributed.collectives/*.json")
    found = recording.load(file)
    assert found.params["world_size"] == 2 and occasions.count(found) == 2
    assert {row.get("rank") for row in found.rows} == {None, 0, 1}
