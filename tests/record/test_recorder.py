"""The recorder: what is planned, what is measured, and what a failure costs."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from anatomy.cli import targets
from anatomy.machine import host
from anatomy.record import loading, measuring, recorder, recording
from anatomy.record.processes import isolation
from anatomy.record.provenance.freshness import Freshness
from anatomy.record.recorder import Item
from anatomy.table.errors import BadParameter, Busy, DeviceError, MeasurementError, RecordingError
from tests.record.processes.test_isolation import CHECKOUT, gone, numbers, written

STALE = Freshness("missing", "It has not been measured.")
pytestmark = pytest.mark.usefixtures("own_lock", "warm")


def plan(toylab, root, *shown):
    return recorder.plan(shown, root, None, package=toylab)


def record(toylab, root, *shown, **options):
    return recorder.record(plan(toylab, root, *shown), root=root, package=toylab, **options)


def test_a_plan_has_each_call_once_with_all_places_that_show_it(toylab, tmp_path):
    items = plan(
        toylab,
        tmp_path,
        ("toy.fine", {"size": 4}, "a.md:3"),
        ("toy.prints", {}, "a.md:9"),
        ("toy.fine", {}, "b.md:5"),  # 4 is the default
        ("toy.fine", {"size": "8"}),
    )
    assert [(item.title, item.places) for item in items] == [
        ("toy.fine", ("a.md:3", "b.md:5")),
        ("toy.prints", ("a.md:9",)),
        ("toy.fine size=8", ()),
    ]
    assert all(item.freshness.state == "missing" and item.last_seconds is None for item in items)
    assert [item.occasions for item in items] == [0, 0, 0]


def test_ceilings_are_measured_first(tmp_path):
    shown = [("contiguity.bench", {}), ("limits.ceilings", {}), ("tensor_layout.report", {})]
    names = [item.name for item in recorder.plan(shown, tmp_path, None)]
    assert names == ["limits.ceilings", "contiguity.bench", "tensor_layout.report"]


def test_a_plan_refuses_what_does_not_exist(toylab, tmp_path):
    with pytest.raises(BadParameter, match="size='big'"):
        plan(toylab, tmp_path, ("toy.fine", {"size": "big"}))


def test_what_was_recorded_is_current_and_not_measured_again(toylab, tmp_path):
    done = record(toylab, tmp_path, ("toy.fine", {"slowdown": 3.0}))
    (file,) = done.saved
    assert file.relative_to(tmp_path).as_posix() == (
        f"{host.cpu_slug()}/toy.fine/slowdown=3.0.json"
    )
    found = recording.load(file)
    assert found.table.variant.tolist() == ["contiguous", "sliced", "contiguous (again)", "fp8"]
    assert found.data["noise_floor"] == {"matmul gpu_warm": 0.004}
    assert found.data["seconds"] > found.data["method"]["start_s"] > 0
    assert found.data["seconds"] == round(found.data["seconds"], 3)
    assert found.data["software"]["torch"] and found.data["machine"]["slug"].startswith("cpu-")
    (item,) = plan(toylab, tmp_path, ("toy.fine", {"slowdown": 3.0}))
    assert item.freshness.current and item.last_seconds == found.data["seconds"]
    before = file.stat().st_mtime_ns
    assert record(toylab, tmp_path, ("toy.fine", {"slowdown": 3.0})).saved == []
    assert file.stat().st_mtime_ns == before


def test_remeasure_measures_what_is_current(toylab, tmp_path, monkeypatch):
    item = Item("toy.fine", {"device": "cpu"}, Freshness("current", "It is."))
    asked = []
    monkeypatch.setattr(recorder.Round, "measure", lambda _, item, *how: asked.append(item.name))
    recorder.record([item], root=tmp_path, package=toylab)
    assert asked == []
    recorder.record([item], root=tmp_path, mode="remeasure", package=toylab)
    assert asked == ["toy.fine"]


def test_what_was_never_measured_here_is_expected_to_take_as_long_as_elsewhere():
    root = CHECKOUT / "recordings"
    here = {"slug": "nvidia-some", "card": None, "torch": None, "driver": None}
    (item,) = recorder.plan([("limits.floors", {})], root, here)
    elsewhere = recording.find(root, item.there, "limits.floors")
    assert item.freshness.state == "missing"
    assert item.last_seconds == elsewhere.data["seconds"]
    there = recording.find(root, "nvidia-h200", "limits.floors")
    (own,) = recorder.plan([("limits.floors", {})], root, None, slug="nvidia-h200")
    assert own.there == "" and own.last_seconds == there.data["seconds"]


def test_a_slow_machine_may_take_longer_than_an_experiment_declares(tmp_path, monkeypatch, toylab):
    limits = []

    def measured(measurer, *_, **__):
        limits.append(measurer.timeout_s)
        raise ZeroDivisionError

    monkeypatch.setattr(recorder.Measurer, "measure", measured)
    items = [Item("toy.fine", {"device": "cpu"}, Freshness("missing", "Not measured."))]
    for timeout_s in (None, 900.0):
        with pytest.raises(ZeroDivisionError):
            recorder.record(items, root=tmp_path, timeout_s=timeout_s, package=toylab)
    assert limits == [None, 900.0]


def test_a_full_disk_ends_the_recording_of_them_all(tmp_path, monkeypatch, toylab):
    def refused(*_, **__):
        try:
            raise OSError(28, "No space left on device")
        except OSError:
            raise RecordingError("It could not be written.") from None

    found = {"experiment": "toy.fine", "params": {}, "machine": {"slug": "cpu-x"}}
    monkeypatch.setattr(recorder.Measurer, "measure", lambda *_, **__: found)
    monkeypatch.setattr(recorder.recording, "save", refused)
    stale = Freshness("missing", "Not measured.")
    items = [Item("toy.fine", {"device": "cpu"}, stale)] * 2
    with pytest.raises(RecordingError, match="could not be written"):
        recorder.record(items, root=tmp_path, package=toylab)


def test_what_fails_costs_itself_alone(toylab, tmp_path, capfd):
    done = record(
        toylab,
        tmp_path,
        ("toy.crashes", {}),
        ("toy.is_careful", {}),
        ("toy.has_a_bug", {}),
        ("toy.returns_a_list", {}),
        ("toy.thrice", {"fails_in": 1}),
        ("toy.fine", {}),
    )
    assert [file.parent.name for file in done.saved] == ["toy.fine"]
    assert [item.title for item, _ in done.failed] == [
        "toy.crashes",
        "toy.is_careful",
        "toy.has_a_bug",
        "toy.returns_a_list",
        "toy.thrice fails_in=1",
    ]
    assert [file.parent.name for file in loading.files(tmp_path)] == ["toy.fine"]
    assert len(list(tmp_path.rglob("*.failed.json"))) == 5
    assert "5 could not be measured:\n  toy.crashes: It crashed (SIGSEGV)" in done.report()
    out, err = capfd.readouterr()
    assert out == "" and "[2/6] toy.is_careful" in err and "last words" in err


def test_a_broken_recording_is_planned_anew(toylab, tmp_path, in_this_process):
    (file,) = record(toylab, tmp_path, ("toy.fine", {})).saved
    file.write_text(file.read_text()[:200])
    (item,) = plan(toylab, tmp_path, ("toy.fine", {}))
    assert item.freshness.state == "missing" and "breaks off" in item.freshness.reason


def test_a_budget_leaves_what_does_not_fit_for_the_next_call(toylab, tmp_path, capfd):
    slow = Item("toy.fine", {"device": "cpu"}, STALE, last_seconds=1000.0)
    cut = Item("toy.hangs", {"device": "cpu", "pids": str(tmp_path / "pids")}, STALE)
    done = recorder.record([slow, cut], root=tmp_path, budget_s=4, package=toylab)
    assert [item.name for item in done.left] == ["toy.fine", "toy.hangs"]
    assert (done.saved, done.failed) == ([], []) and done.seconds < 60  # its own limit
    assert "did not fit into the budget" in capfd.readouterr().err


def test_an_experiment_that_hangs_fails_at_its_own_limit(toylab, tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "START_S", 0.5)  # beside the toy's own 2 s
    done = record(toylab, tmp_path, ("toy.hangs", {"pids": str(tmp_path / "pids")}))
    ((_, error),) = done.failed
    assert "its time limit, and was ended" in str(error)


def test_code_edited_during_a_measurement_belongs_to_no_recording(toylab, monkeypatch):
    hashes = iter(["before", "after"])
    monkeypatch.setattr(measuring, "code_hash", lambda *_, **__: next(hashes))
    monkeypatch.setattr(isolation, "ask", lambda *_, **__: {"rows": []})
    with pytest.raises(MeasurementError, match="was edited while it was measured"):
        recorder.run("toy.fine", {}, package=toylab)


def test_a_disk_that_refuses_ends_the_recorder_at_once(toylab, tmp_path):
    root = tmp_path / "recordings"
    root.write_text("a file where the folder should be")
    with pytest.raises(RecordingError, match="Nothing can be saved in"):
        record(toylab, root, ("toy.fine", {}), ("toy.prints", {}))
    assert root.read_text() == "a file where the folder should be"


@pytest.mark.skipif(host.here() is not None, reason="this host has a GPU")
def test_without_a_gpu_nothing_is_even_started(toylab, tmp_path):
    with pytest.raises(DeviceError, match=r"^CUDA requested but torch\.cuda\.is_availab"):
        record(toylab, tmp_path, ("toy.fine", {"device": "cuda:0"}))


def test_two_recorders_can_not_run_at_once(toylab, tmp_path):
    with isolation.only_recorder(), pytest.raises(Busy, match=f"Process {os.getpid()} has been"):
        record(toylab, tmp_path, ("toy.fine", {}))


def test_a_list_on_standard_input_is_recorded(tmp_path):
    shown = [["tensor_layout.report", {"device": "cpu", "m": 8, "k": 8}, "page.md:3"]]
    told = {"shown": shown, "root": str(tmp_path), "mode": "auto", "budget_s": None}
    command = [sys.executable, "-m", "anatomy.record.recorder"]
    for expected in ("1 measured in", "Everything is current"):
        done = subprocess.run(
            command, input=json.dumps(told), capture_output=True, text=True, cwd=CHECKOUT
        )
        assert done.returncode == 0, done.stderr
        assert expected in done.stderr and done.stdout == ""
    told["shown"][0][0] = "tensor_layout.rapport"
    done = subprocess.run(
        command, input=json.dumps(told), capture_output=True, text=True, cwd=CHECKOUT
    )
    assert done.returncode == 2 and "Did you mean 'tensor_layout.report'?" in done.stderr


def test_ctrl_c_ends_the_worker_and_leaves_no_half_written_file(toylab, tmp_path, own_lock):
    pids, root = tmp_path / "pids", tmp_path / "recordings"
    code = (
        "import sys; from pathlib import Path; from anatomy.cli import main\n"
        f"main(['run', 'toy.hangs', '--pids', {str(pids)!r}, '--save', {str(root)!r}, "
        f"'--timeout', '100'], Path({str(toylab)!r}))"
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = subprocess.Popen([sys.executable, "-c", code], cwd=CHECKOUT, **pipes)
    worker, child = numbers(pids)
    command.send_signal(signal.SIGINT)
    out, err = command.communicate(timeout=120)
    assert command.returncode == 130
    assert out == "" and err.endswith("none is cut.\n") and "Traceback" not in err
    assert gone(worker) and gone(child)
    assert not list(root.iterdir())
    left = [path.name for path in own_lock.rglob("*") if path.is_file()]
    assert set(left) <= {"measuring.lock"}  # no temporary result, no name of a process that is gone


def test_a_recording_that_names_a_folder_of_this_machine_is_not_written(
    toylab, tmp_path, in_this_process
):
    done = record(toylab, tmp_path, ("toy.thrice", {"log": str(tmp_path / "log")}))
    assert done.failed[0][1].args[0].startswith("The recording of toy.thrice was not written")
    assert done.saved == []


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder to measure in: a file is named without the path that no recording may hold."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_as_many_processes_as_are_declared_make_one_recording_that_says_so(toylab, here, capfd):
    (file,) = record(toylab, here, ("toy.thrice", {"log": "log"})).saved
    err = capfd.readouterr().err
    assert [f"[1/1] toy.thrice log=log, process {n} of 3" in err for n in (1, 2, 3)] == [True] * 3
    assert len(set(Path("log").read_text().split())) == 3, "each wrote down its number"
    found = recording.load(file)
    method = found.data["method"]
    assert (method["process"], method["processes"]) == ("3 fresh processes", 3)
    starts = [each["started_at"] for each in method["runs"]]
    assert starts == sorted(starts) and starts[0] == found.data["started_at"]
    assert method["start_s"] == pytest.approx(sum(r["start_s"] for r in method["runs"]), abs=2e-3)
    assert found.data["seconds"] > method["start_s"]
    control, sliced = found.data["rows"]
    assert sliced["run_ratios"] == pytest.approx([1.011, 1.012, 1.013])
    assert (sliced["runs"], sliced["verdict"], control["verdict"]) == (3, "slower", "control")
    (item,) = plan(toylab, here, ("toy.thrice", {"log": "log"}))
    assert item.freshness.current and item.last_seconds == found.data["seconds"]


def test_a_recording_of_one_process_says_so_and_nothing_else(toylab, tmp_path):
    (file,) = record(toylab, tmp_path, ("toy.fine", {})).saved
    data = recording.load(file).data
    assert data["method"]["process"] == "one process, fresh"
    assert set(data["method"]) == {"process", "start_s", "measured_s"}
    assert not {"runs", "run_ratios", "run_blocks", "interval"} & set(data["rows"][0])


def test_processes_can_be_asked_for_and_are_then_planned_for(toylab, tmp_path, in_this_process):
    shown = ("toy.fine", {})
    (file,) = record(toylab, tmp_path, shown).saved
    (item,) = recorder.plan([shown], tmp_path, None, package=toylab, processes=2)
    last = recording.load(file).data["seconds"]
    assert item.freshness.reason == "It was measured in 1 process, and is to be in 2."
    assert (item.processes, item.last_seconds) == (2, 2 * last)
    (file,) = recorder.record([item], root=tmp_path, package=toylab).saved
    assert recording.load(file).data["method"]["process"] == "2 fresh processes"
    assert plan(toylab, tmp_path, shown)[0].freshness.current  # more than it declares


def test_one_process_that_fails_fails_the_item_and_is_named(toylab, here, in_this_process):
    done = record(toylab, here, ("toy.thrice", {"log": "log", "fails_in": 2}))
    ((_, error),) = done.failed
    assert str(error) == "Process 2 of 3: It did not feel like it."
    assert isinstance(error, BadParameter) and done.saved == []
    assert len(Path("log").read_text().split()) == 2


def test_a_row_that_one_process_lacks_fails_the_item(toylab, here, in_this_process):
    with pytest.raises(MeasurementError, match=r"variant=sliced.* is missing in process 3 of 3"):
        recorder.run("toy.thrice", {"log": "log", "loses_a_row_in": 3}, package=toylab)


def test_the_time_limit_is_each_processs_own(toylab, here, monkeypatch, time_is_up):
    monkeypatch.setattr(measuring, "START_S", 2.0)
    time_is_up(lambda: written(here / "log", 2))
    done = record(toylab, here, ("toy.thrice", {"log": "log", "hangs_in": 2}))
    ((_, error),) = done.failed
    assert str(error) == "Process 2 of 3: It ran for 4 s, its time limit, and was ended."


def test_all_processes_of_an_item_share_its_budget(toylab, here, monkeypatch, time_is_up):
    budget_s = 900.0
    # Each alone could have all of the budget, and the third, with less left, is over it.
    monkeypatch.setattr(measuring, "START_S", budget_s - 2.0)
    time_is_up(lambda: written(here / "log", 3))
    shown = ("toy.thrice", {"log": "log", "hangs_in": 3})
    done = recorder.record(plan(toylab, here, shown), root=here, budget_s=budget_s, package=toylab)
    assert [item.name for item in done.left] == ["toy.thrice"]
    assert (done.saved, done.failed) == ([], [])
    assert len(Path("log").read_text().split()) == 3


def test_a_process_that_the_budget_has_no_time_for_is_not_begun(toylab, here, monkeypatch):
    asked, now = [], [0.0]
    for module in (recorder, measuring):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def slow(spec, *, timeout_s, **how):
        asked.append(timeout_s)
        now[0] += 1.2
        return {}

    monkeypatch.setattr(isolation, "ask", slow)
    items = plan(toylab, here, ("toy.thrice", {}))
    done = recorder.record(items, root=here, budget_s=1.1, package=toylab)
    assert [item.name for item in done.left] == ["toy.thrice"]
    assert asked == [1.1]


def test_the_commit_comes_from_git_or_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("ANATOMY_COMMIT", raising=False)
    monkeypatch.delenv("ANATOMY_DIRTY", raising=False)
    package = tmp_path / "anatomy"
    package.mkdir()
    (package / "code.py").write_text("x = 1\n")
    assert measuring.source_state(package) == (None, None)
    monkeypatch.setenv("ANATOMY_COMMIT", "abc123")
    assert measuring.source_state(package) == ("abc123", None)
    monkeypatch.setenv("ANATOMY_DIRTY", "0")
    assert measuring.source_state(package) == ("abc123", False)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "anatomy")
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "first")
    commit, dirty = measuring.source_state(package)
    assert len(commit) == 40 and dirty is False
    (tmp_path / "recordings").mkdir()
    (tmp_path / "recordings" / "new.json").write_text("{}")
    assert measuring.source_state(package) == (commit, False)  # a recording measures nothing
    (package / "code.py").write_text("x = 2\n")
    assert measuring.source_state(package) == (commit, True)


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)


def test_what_is_measured_on_request_alone_is_left_out_of_what_pages_show():
    shown = [("harnesses.estimates", {"process": 1}), ("contiguity.bench", {})]
    assert recorder.for_builds(shown) == shown[1:]
    assert all(name != "harnesses.estimates" for name, *_ in targets.wanted([]))
    page = {name for name, *_ in targets.wanted(["how-we-measure.md"])}
    page |= {name for name, *_ in targets.wanted(["how-good-is-the-stopwatch.md"])}
    assert "worked_example.kernel" in page and "harnesses.reference" not in page
    assert {name for name, *_ in targets.wanted(["harnesses.reference"])} == {"harnesses.reference"}
