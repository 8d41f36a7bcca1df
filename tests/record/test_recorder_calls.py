"""What the recorder asks of workers and tells of them, where no worker is started."""

import io
import itertools
import json
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from anatomy.machine import host
from anatomy.record import failures, measuring, recorder, recording
from anatomy.record.processes import isolation
from anatomy.record.processes.isolation import TimeLimit
from anatomy.record.processes.nursery import Nursery
from anatomy.record.provenance.freshness import Freshness
from anatomy.record.recorder import Item, Outcome
from anatomy.table.errors import AnatomyError, BadParameter, DeviceError, MeasurementError
from tests.fakes.toy_recording import made

STALE = Freshness("missing", "It has not been measured.")
FINE = {"device": "cpu"}
pytestmark = pytest.mark.usefixtures("own_lock")


@pytest.fixture
def asked(monkeypatch):
    """What workers are asked, each of which fails; `answer` is what with."""
    asked = SimpleNamespace(specs=[], limits=[], environments=[], answer=MeasurementError("No."))

    def ask(spec, *, timeout_s, environment=None, warm=None):
        asked.specs.append(spec)
        asked.limits.append(timeout_s)
        asked.environments.append(environment)
        raise asked.answer

    monkeypatch.setattr(isolation, "ask", ask)
    for module in (measuring, recorder):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: 0.0))
    return asked


def test_a_process_has_a_minute_to_start_beside_its_own_time_or_the_time_that_is_asked_for(
    asked, toylab, tmp_path
):
    for options in ({}, {"timeout_s": 7.0}, {"allow_foreign": True, "root": tmp_path}):
        with pytest.raises(MeasurementError, match=r"^No\."):
            recorder.run("toy.fine", {"size": "8"}, package=toylab, **options)
    assert asked.limits == [120, 7, 120]  # the toy declares a minute
    assert asked.environments == [{}, {}, {"ANATOMY_RECORDINGS": str(tmp_path)}]
    assert [spec["allow_foreign"] for spec in asked.specs] == [False, False, True]
    assert asked.specs[0]["experiment"] == "toy.fine" and asked.specs[0]["params"]["size"] == 8
    assert asked.specs[0]["package"] == str(toylab)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each worker begins from nothing")
@pytest.mark.parametrize(
    ("more", "gpus", "begun"), [(0, 1, False), (1, 1, False), (2, 1, True), (2, 2, False)]
)
def test_what_the_others_import_is_imported_beside_the_ceilings(
    asked, monkeypatch, tmp_path, more, gpus, begun
):
    told = []
    monkeypatch.setattr(recorder.lanes, "cards", lambda count: [object()] * count)
    monkeypatch.setattr(Nursery, "begin", lambda self: told.append("begin"))
    monkeypatch.setattr(
        isolation, "ask", lambda spec, **_: told.append(spec["experiment"]) or 1 / 0
    )
    items = [Item(each, FINE, STALE) for each in ["limits.ceilings", *["toy.fine"] * more]]
    with pytest.raises(ZeroDivisionError):
        recorder.record(items, root=tmp_path, gpus=gpus)
    assert told == ["begin"] * begun + ["limits.ceilings"]


def test_a_machine_is_described_by_a_worker_with_two_minutes(asked):
    with pytest.raises(MeasurementError):
        measuring.describe("cpu")
    assert (asked.specs, asked.limits) == ([{"describe": "cpu"}], [120])
    with pytest.raises(BadParameter, match="is not a device"):
        measuring.describe("gpu")


def test_who_waits_is_told_which_process_begins(asked, toylab):
    told = []
    for name, params in (("toy.fine", {"size": 8}), ("toy.thrice", {})):
        with pytest.raises(MeasurementError):
            recorder.run(name, params, package=toylab, tell=told.append)
    assert told == ["toy.fine size=8", "toy.thrice, process 1 of 3"]


@pytest.mark.parametrize(
    ("answer", "budget_s", "end"),
    [
        (TimeLimit("It was late."), 119.0, "left"),
        (TimeLimit("It was late."), 120.0, "failed"),
        (TimeLimit("It was late."), None, "failed"),
        (MeasurementError("It broke."), 119.0, "failed"),
    ],
)
def test_what_the_budget_ended_is_left_and_what_its_own_limit_ended_has_failed(
    asked, toylab, tmp_path, capsys, answer, budget_s, end
):
    asked.answer = answer
    answer.output = "last\nwords"
    items = [Item("toy.fine", FINE, STALE, title="toy.fine")]
    done = recorder.record(items, root=tmp_path, budget_s=budget_s, package=toylab)
    again = not isinstance(answer, TimeLimit)
    assert asked.limits == [min(120, budget_s or 120)] * (1 + again)
    assert [spec["allow_foreign"] for spec in asked.specs] == [False] * (1 + again)
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "[1/1] toy.fine"
    if end == "left":
        assert (done.left, done.failed) == (items, [])
        assert told[1:] == ["toy.fine: did not fit into the budget; left for the next call"]
    else:
        assert (done.left, done.failed) == ([], [(items[0], answer)])
        once_more = [f"toy.fine: failed, so once more from nothing: {answer}", told[0]] * again
        assert told[1:] == [*once_more, f"toy.fine: failed: {answer}", "    last", "    words"]


def test_a_file_that_an_experiment_runs_must_be_there(asked, tmp_path):
    root = tmp_path / "lab_of_files"
    (root / "experiments").mkdir(parents=True)
    (root / "experiments" / "filed.py").write_text(
        '@experiment("filed.one", files=("kernel.cu",))\ndef one(device: str = "cpu"): ...\n'
    )
    said = "filed.one runs kernel.cu, which belongs to the project's checkout and is not here"
    with pytest.raises(AnatomyError, match=said):
        recorder.run("filed.one", {}, package=root)
    (tmp_path / "kernel.cu").write_text("")
    with pytest.raises(MeasurementError, match=r"^No\."):
        recorder.run("filed.one", {}, package=root)


def test_where_all_is_current_nothing_is_touched(tmp_path):
    current = Item("toy.fine", FINE, Freshness("current", "It is."))
    root = tmp_path / "new"
    done = recorder.record([current], root=root)
    assert done.report() == "Everything is current; nothing was measured." and not root.exists()


@pytest.mark.parametrize(
    ("last", "budget_s", "begun"),
    [(None, 0.9, False), (None, 1.5, True), (9.0, 8.9, False), (9.0, 9.0, True), (9.0, None, True)],
)
def test_an_item_is_begun_if_the_budget_has_time_for_it(
    tmp_path, monkeypatch, capsys, last, budget_s, begun
):
    asked = []
    monkeypatch.setattr(recorder, "time", SimpleNamespace(monotonic=lambda: 5.0))
    monkeypatch.setattr(recorder.Round, "_attempt", lambda _, item, *how: asked.append(item))
    item = Item("toy.fine", FINE, STALE, last_seconds=last, title="toy.fine")
    done = recorder.record([item], root=tmp_path, budget_s=budget_s)
    assert (asked, done.left) == (([item], []) if begun else ([], [item]))
    said = "" if begun else "toy.fine: left for the next call\n"
    assert capsys.readouterr().err == said and done.seconds == 0


def test_what_needs_a_gpu_is_begun_where_there_is_one(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(recorder.Round, "measure", lambda _, item, *how: asked.append(item))
    items = [Item("toy.fine", {"device": "cuda:0"}, STALE), Item("toy.fine", FINE, STALE)]
    monkeypatch.setattr(host, "here", lambda: None)
    monkeypatch.setattr(host, "no_cuda", lambda: DeviceError("None here."))
    with pytest.raises(DeviceError, match="None here"):
        recorder.record(items, root=tmp_path)
    recorder.record(items[1:], root=tmp_path)
    monkeypatch.setattr(host, "here", lambda: {"slug": "nvidia-h200"})
    recorder.record(items[:1], root=tmp_path)
    assert asked == [items[1], items[0]]


def test_ceilings_are_measured_alone_before_the_gpus_share_the_rest(tmp_path, monkeypatch):
    asked, gpus = [], [object(), object()]

    def share(lane, cards):
        asked.append(cards)
        lane({"CUDA_VISIBLE_DEVICES": "0"})

    def measure(round_, item, measurer):
        asked.append((item.name, measurer.environment))

    monkeypatch.setattr(recorder.lanes, "cards", lambda count: gpus[:count])
    monkeypatch.setattr(recorder.lanes, "run", share)
    monkeypatch.setattr(recorder.Round, "measure", measure)
    names = ("limits.ceilings", "limits.ceilings", "toy.fine", "limits.ceilings")
    recorder.record([Item(name, FINE, STALE) for name in names], root=tmp_path, gpus=2)
    rest = [(name, {"CUDA_VISIBLE_DEVICES": "0"}) for name in names[2:]]
    assert asked == [(names[0], {}), (names[1], {}), gpus, *rest]


def test_what_was_recorded_is_told_with_how_long_it_took(tmp_path, monkeypatch, capsys, toylab):
    found = {"seconds": 61.0, "method": {"start_s": 4.0}, "machine": {"slug": "cpu-x"}}
    monkeypatch.setattr(recorder.occasions, "adding", lambda found, root, defaults: found)
    monkeypatch.setattr(recorder.occasions, "count", lambda found: 1)
    monkeypatch.setattr(recording, "load", lambda file: file)
    monkeypatch.setattr(recorder.Measurer, "measure", lambda *_, **__: found)
    monkeypatch.setattr(recording, "save", lambda found, root, defaults: root / defaults["dtype"])
    monkeypatch.setattr(recorder, "time", SimpleNamespace(monotonic=itertools.count(3).__next__))
    items = [Item("toy.fine", FINE, STALE, title="toy.fine")]
    done = recorder.record(items, root=tmp_path, package=toylab)
    assert done.saved == [tmp_path / "fp16"] and done.seconds == 1
    assert capsys.readouterr().err == "toy.fine: 1 min 1 s, of which 4 s to start\n"


def test_a_report_has_all_that_was_measured_is_left_or_failed():
    one, two = (Item("toy.fine", {}, STALE, title=title) for title in ("toy.one", "toy.two"))
    measured = Outcome(saved=[Path("a"), Path("b")], seconds=61.0)
    assert measured.report() == "2 measured in 1 min 1 s."
    assert Outcome(left=[one, two], seconds=2.0).report() == (
        "0 measured in 2 s.\n2 left for the next call, which goes on from there:\n"
        "  toy.one\n  toy.two"
    )
    assert Outcome(failed=[(two, MeasurementError("It broke."))]).report() == (
        "0 measured in 0.0 s.\n1 could not be measured:\n  toy.two: It broke."
    )


def test_what_is_current_takes_no_time():
    def item(state, seconds):
        return Item("toy.fine", FINE, Freshness(state, ""), last_seconds=seconds)

    items = [item("current", 100.0), item("missing", 3.0), item("code-changed", 4.0)]
    assert recorder.estimate_s(items) == 7.0
    assert recorder.estimate_s(items[:1]) == 0.0


def test_a_recording_that_can_not_be_read_says_nothing_of_how_long_it_takes(tmp_path):
    files = {}
    for slug, seconds in (("nvidia-a100", 5.0), ("nvidia-h200", 7.0)):
        machine = made()["machine"] | {"slug": slug}
        params = recorder.signatures.signature("contiguity.bench").defaults
        data = made(machine=machine, params=params, seconds=seconds)
        files[slug] = recording.save(data, tmp_path)
    here = {"slug": "nvidia-b200", "card": None, "torch": None, "driver": None}

    def planned():
        (item,) = recorder.plan([("contiguity.bench", {})], tmp_path, here)
        return item.there, item.last_seconds

    assert planned() == ("nvidia-a100", 5.0)
    files["nvidia-a100"].write_text("{")
    assert planned() == ("nvidia-h200", 7.0)
    files["nvidia-h200"].unlink()
    assert planned() == ("", None)


def test_a_recording_of_an_older_default_is_planned_from(tmp_path):
    declared = recorder.signatures.signature("contiguity.bench")
    data = made(params=declared.bind(m=2048))
    recording.save(data, tmp_path, defaults=declared.defaults | {"m": 2048})
    (item,) = recorder.plan([("contiguity.bench", {"m": 2048})], tmp_path, None, slug="nvidia-h200")
    assert (item.last_seconds, item.there, item.occasions) == (data["seconds"], "", 1)


def test_what_fails_on_a_gpu_is_noted_for_it_with_its_versions(
    asked, toylab, tmp_path, monkeypatch
):
    here = {"slug": "nvidia-h200", "torch": "2.13.0", "driver": "580.1"}
    monkeypatch.setattr(host, "here", lambda: here)
    params = {"device": "cuda:0"}
    recorder.record([Item("toy.fine", params, STALE)], root=tmp_path, package=toylab)
    noted = failures.find(tmp_path, here["slug"], "toy.fine", **params, package=toylab)
    assert (noted.message, noted.torch, noted.driver) == ("No.", "2.13.0", "580.1")


# Where the code is from.


@pytest.mark.parametrize(
    ("dirty", "told"),
    [("0", False), (" False ", False), ("no", False), ("1", True), ("yes", True), ("", None)],
)
def test_outside_of_a_checkout_the_environment_says_what_the_code_is(
    tmp_path, monkeypatch, dirty, told
):
    monkeypatch.setenv("ANATOMY_COMMIT", "")
    monkeypatch.setenv("ANATOMY_DIRTY", dirty)
    assert measuring.source_state(tmp_path / "anatomy") == (None, told)


@pytest.mark.parametrize("error", [OSError("no git"), subprocess.TimeoutExpired("git", 30)])
def test_a_git_that_does_not_answer_says_nothing(tmp_path, monkeypatch, error):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(subprocess, "run", refuse)
    monkeypatch.setenv("ANATOMY_COMMIT", "abc")
    monkeypatch.delenv("ANATOMY_DIRTY", raising=False)
    assert measuring.source_state(tmp_path) == ("abc", None)


def test_a_checkout_around_that_of_the_package_is_not_its_own(tmp_path, monkeypatch):
    answers = {"rev-parse --show-toplevel": str(tmp_path), "rev-parse HEAD": "abc"}
    monkeypatch.setattr(measuring, "_git", lambda root, *words: answers.get(" ".join(words)))
    monkeypatch.setenv("ANATOMY_COMMIT", "of the environment")
    monkeypatch.delenv("ANATOMY_DIRTY", raising=False)
    assert measuring.source_state(tmp_path / "anatomy") == ("abc", None), "nobody knows of edits"
    assert measuring.source_state(tmp_path / "a" / "anatomy") == ("of the environment", None)


# Its own command.


@pytest.fixture
def command(monkeypatch):
    """`python -m anatomy.record.recorder` with a request, in this process."""
    before = signal.getsignal(signal.SIGTERM)

    def command(request, outcome, here=None):
        asked = {}

        def record(items, **how):
            asked.update(how, items=items)
            return outcome()

        monkeypatch.setattr(recorder, "record", record)
        monkeypatch.setattr(host, "here", lambda: here)
        monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(request)))
        return recorder.main(), asked

    yield command
    signal.signal(signal.SIGTERM, before)


REQUEST = {"shown": [["tensor_layout.report", FINE, "a.md:1"]], "root": "nowhere"}


def raises(error):
    def raise_():
        raise error

    return raise_


@pytest.mark.parametrize(
    ("outcome", "status", "said"),
    [
        (lambda: Outcome(), 0, "Everything is current; nothing was measured.\n"),
        (lambda: Outcome(failed=[(Item("a.b", {}, STALE), AnatomyError("No."))]), 1, "0 measured"),
        (raises(BadParameter("It can't be.")), 2, "error: It can't be.\n"),
        (raises(KeyboardInterrupt), 130, "Interrupted. What was finished is kept; the next call"),
    ],
)
def test_the_status_says_how_it_went(command, capsys, outcome, status, said):
    found, asked = command(REQUEST, outcome)
    assert found == status and capsys.readouterr().err.startswith(said)
    (item,) = asked.pop("items")
    assert (item.name, item.places) == ("tensor_layout.report", ("a.md:1",))
    assert asked == {"root": Path("nowhere")}


def test_a_request_may_say_how(command):
    _, asked = command(REQUEST | {"mode": "remeasure", "budget_s": 9, "other": 1}, Outcome)
    del asked["items"]
    assert asked == {"root": Path("nowhere"), "mode": "remeasure", "budget_s": 9}
    with pytest.raises(SystemExit) as end:
        signal.raise_signal(signal.SIGTERM)
    assert end.value.code == 143


@pytest.mark.parametrize(
    ("changes", "mode", "tried"),
    [
        ({}, "auto", False),
        ({}, "remeasure", True),
        ({"torch": "2.14.0"}, "auto", True),
        ({"driver": "590.1"}, "auto", True),
        ({"slug": "nvidia-b200"}, "auto", True),
    ],
)
def test_what_failed_with_this_code_torch_and_driver_would_fail_again(
    command, tmp_path, changes, mode, tried
):
    here = {"slug": "nvidia-h200", "card": None, "torch": "2.13.0", "driver": "580.1"}
    versions = {name: here[name] for name in ("torch", "driver")}
    failures.note(tmp_path, here["slug"], "contiguity.bench", {}, AnatomyError("No."), **versions)
    request = {"shown": [["contiguity.bench", {}]], "root": str(tmp_path), "mode": mode}
    _, asked = command(request, Outcome, here | changes)
    assert [item.name for item in asked["items"]] == ["contiguity.bench"] * tried


def test_what_another_card_measured_is_told_before_it_is_measured_anew(
    tmp_path, monkeypatch, capfd
):
    """A machine that is rented is another card each time, and half an hour is lost unawares."""
    monkeypatch.setattr(recorder.Round, "measure", lambda *_: None)
    items = [
        Item("toy.fine", FINE, Freshness("machine-other", "It is.")),
        Item("toy.hangs", FINE, STALE),
    ]
    recorder.record(items, root=tmp_path)
    told = capfd.readouterr().err
    assert "1 of 2 were measured on another card" in told and "ANATOMY_CARD=any" in told
    recorder.record(items, root=tmp_path, mode="remeasure")
    recorder.record(items[1:], root=tmp_path)
    assert "another card" not in capfd.readouterr().err
