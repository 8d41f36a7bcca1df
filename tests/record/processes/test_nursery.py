"""Workers that are forked off a process which has imported what they need."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from anatomy.record import measuring, recorder
from anatomy.record.measuring import Measurer
from anatomy.record.processes import isolation, nursery
from anatomy.record.provenance.freshness import Freshness
from anatomy.record.recorder import Item
from anatomy.table.errors import MeasurementError, OutOfMemory
from tests.record.processes.test_isolation import CHECKOUT, gone, numbers

pytestmark = [
    pytest.mark.usefixtures("own_lock"),
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each worker begins from nothing"),
]
CPU = {"device": "cpu"}


@pytest.fixture(scope="module")
def warm():
    with isolation.nursery() as begun:
        yield begun


@pytest.fixture
def measurer(toylab, warm):
    return Measurer(package=toylab, nursery=warm)


def test_a_fork_measures_as_a_process_from_nothing_does(measurer):
    found = measurer.measure("toy.fine", CPU)
    mother = measurer.nursery._process
    again = measurer.measure("toy.fine", CPU)
    assert measurer.nursery._process is mother
    printed = os.readlink(f"/proc/{mother._process.pid}/fd/1")
    assert printed == os.devnull, "nobody reads what the mother prints: a full pipe would stop her"
    assert [row["variant"] for row in found["rows"]] == [row["variant"] for row in again["rows"]]
    assert found["method"]["process"] == "one process, forked before it touched a GPU"
    assert again["method"]["start_s"] < 30  # nothing is imported twice, however busy the host


def test_no_file_of_a_worker_stays_open_when_it_has_ended(measurer):
    def counted() -> list[int]:
        mother = measurer.nursery._process._process.pid
        return [len(os.listdir(f"/proc/{pid}/fd")) for pid in ("self", mother)]

    measurer.measure("toy.fine", CPU)
    before = counted()
    for _ in range(2):
        measurer.measure("toy.fine", CPU)
    assert counted() == before


def printed(code: str) -> str:
    """What a process of its own prints that has `nursery`."""
    code = f"from anatomy.record.processes import nursery\n{code}"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_to_import_what_forks_share_asks_the_driver_nothing():
    told = printed(
        "import sys, torch\n"
        "asked = []\n"
        "torch.version.cuda = '13.0'\n"  # as a torch that is built for CUDA
        "for name in ('is_available', 'device_count', '_lazy_init', 'get_device_properties'):\n"
        "    setattr(torch.cuda, name, lambda *_, name=name: asked.append(name) or 1 / 0)\n"
        "nursery.import_all()\n"
        "print(*asked, *(name in sys.modules for name in nursery.IMPORTS))\n"
    )
    assert told.split() == ["True"] * len(nursery.IMPORTS)


def test_what_forks_share_leaves_what_is_measured_as_it_was():
    """The compiler looks once for all that writes code, where it knows none of them yet; and what
    libraries are told by the environment costs each call."""
    told = printed(
        "import os\n"
        "before = dict(os.environ)\n"
        "nursery.import_all()\n"
        "from torch._inductor.codegen import common\n"
        "known = len(common.device_op_overrides_dict), len(common.device_codegens)\n"
        "print(*known, {k: v for k, v in os.environ.items() if before.get(k) != v})\n"
    )
    assert told == "0 0 {}\n"


def test_a_nursery_can_import_while_its_recorder_does_something_else(toylab):
    with isolation.nursery() as mother:
        mother.begin()
        begun = mother._process
        mother.begin()
        Measurer(package=toylab, nursery=mother).measure("toy.fine", CPU)
        assert mother._process is begun


def test_several_fresh_processes_begin_from_nothing(measurer, monkeypatch):
    asked = []
    monkeypatch.setattr(isolation, "ask", lambda *_, warm, **__: asked.append(warm) or 1 / 0)
    for count in (1, 2):
        with pytest.raises(ZeroDivisionError):
            measurer.measure("toy.fine", CPU, processes=count)
    assert asked == [measurer.nursery, None]


def test_what_it_prints_and_where_it_crashes_is_told_as_ever(measurer, capfd):
    assert measurer.measure("toy.prints", CPU | {"lines": 2000})["rows"]
    with pytest.raises(MeasurementError, match=r"crashed \(SIGSEGV\)") as caught:
        measurer.measure("toy.crashes", CPU)
    assert caught.value.output
    assert capfd.readouterr() == ("", "")
    assert measurer.measure("toy.fine", CPU)["rows"], "and the next one begins all the same"


def test_a_time_limit_ends_it_and_its_children(measurer, tmp_path, time_is_up):
    file = tmp_path / "pids"
    time_is_up(lambda: file.exists() and len(file.read_text().split()) == 2)
    with pytest.raises(MeasurementError, match="its time limit, and was ended"):
        measurer.measure("toy.hangs", CPU | {"pids": str(file)})
    assert all(gone(pid) for pid in numbers(file))


def test_no_fork_outlives_a_recorder_that_was_killed(toylab, tmp_path):
    file = tmp_path / "pids"
    code = (
        "from pathlib import Path\n"
        "from anatomy.record.processes import isolation\n"
        "from anatomy.record.measuring import Measurer\n"
        "with isolation.nursery() as warm:\n"
        f"    given = Measurer(package=Path({str(toylab)!r}), nursery=warm)\n"
        f"    given.measure('toy.hangs', {{'device': 'cpu', 'pids': {str(file)!r}}}, processes=1)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=CHECKOUT) as reader:
        worker, child = numbers(file)
        files = [os.readlink(each) for each in Path(f"/proc/{worker}/fd").iterdir()]
        printed = os.readlink(f"/proc/{worker}/fd/1")
        assert files.count(printed) == 2, "its output and its errors, and no third that keeps it"
        mother = int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1])
        reader.kill()
    assert gone(worker) and gone(child) and gone(mother)


def test_where_the_mother_is_killed_the_worker_is_and_the_next_one_begins_another(
    measurer, warm, tmp_path, monkeypatch
):
    killed = []

    def kill_mother(forked, deadline, ended=nursery.Forked.ended):
        while forked._pid is None:
            ended(forked, time.monotonic() + 0.1)
        if not killed:
            stat = Path(f"/proc/{forked._pid}/stat").read_text()
            killed.append(int(stat.rpartition(")")[2].split()[1]))
            os.kill(killed[0], signal.SIGKILL)
        return ended(forked, deadline)

    monkeypatch.setattr(nursery.Forked, "ended", kill_mother)
    with pytest.raises(OutOfMemory, match="The system killed it"):
        measurer.measure("toy.hangs", CPU | {"pids": str(tmp_path / "pids")})
    assert measurer.measure("toy.fine", CPU)["rows"]


def test_what_fails_is_tried_once_more_from_nothing(toylab, tmp_path, monkeypatch, capfd):
    asked = []

    def measure(measurer, name, *_, **__):
        asked.append((name, measurer.nursery is not None))
        raise MeasurementError("It moved.")

    monkeypatch.setattr(Measurer, "measure", measure)
    items = [Item("toy.fine", CPU, Freshness("missing", ""), title="toy.fine") for _ in range(2)]
    done = recorder.record(items, root=tmp_path, package=toylab)
    assert [(name, warm) for name, warm in asked] == [("toy.fine", True), ("toy.fine", False)] * 2
    assert [str(error) for _, error in done.failed] == ["It moved."] * 2
    assert capfd.readouterr().err.count("failed, so once more from nothing: It moved.") == 2


def test_what_takes_too_long_is_not_tried_twice(toylab, tmp_path, monkeypatch):
    asked = []

    def measure(*_, **__):
        asked.append(1)
        raise isolation.TimeLimit("It ran for 4 s.")

    monkeypatch.setattr(Measurer, "measure", measure)
    item = Item("toy.fine", CPU, Freshness("missing", ""))
    assert len(recorder.record([item], root=tmp_path, package=toylab).failed) == 1 == len(asked)


def test_its_start_counts_against_the_budget(toylab, tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "START_S", -1.5)  # so that half a second is the toy's own limit
    with isolation.nursery() as begun:
        given = Measurer(package=toylab, nursery=begun)
        with pytest.raises(isolation.TimeLimit):
            given.measure("toy.hangs", CPU | {"pids": str(tmp_path / "pids")})


@pytest.mark.parametrize("how", ["closed", "gone"])
def test_who_listens_while_another_lane_ends_it_hears_that_it_has_ended(how):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    begun = nursery.Nursery(None)
    if how == "closed":
        begun._socket = ours
        ours.close()
    with theirs:
        assert begun.hear() == {}
    ours.close()
