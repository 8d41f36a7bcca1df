"""The method's id: that it stands for what the measuring room does, and for nothing else."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from anatomy.record import signatures
from anatomy.record.provenance import method
from anatomy.table.errors import AnatomyError
from tests.measure.method import command
from tests.measure.method.command import differences, raise_method, verify
from tests.measure.method.traces import Trace
from tests.record.provenance.test_codehash_pythons import interpreters

CHECKOUT = Path(__file__).resolve().parents[3]
ROOM = signatures.PACKAGE / method.ROOM
# Runs all scenarios with every line and branch of the room counted; prints the traces.
COUNTED = """
import json, sys
import coverage
counting = coverage.Coverage(branch=True, source=[sys.argv[1]], data_file=None, config_file=False)
counting.start()
from tests.measure.method import command
traces = {name: vars(trace) for name, trace in command.run_all().items()}
counting.stop()
missing = {}
for file in counting.get_data().measured_files():
    lines = counting.analysis2(file)[3]
    branches = [n for n, (all_, taken) in counting.branch_stats(file).items() if taken < all_]
    missing[file] = [lines, branches]
print(json.dumps([traces, missing]))
"""


READ = """
import sys
sys.path.insert(0, sys.argv[1])
from anatomy.record.provenance import method
print(method.standing().id)
assert "torch" not in sys.modules
"""


@pytest.fixture(scope="module")
def counted():
    """Traces of all scenarios, and the lines of each file of the room that were not run whole."""
    ran = subprocess.run(
        [sys.executable, "-c", COUNTED, str(ROOM)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(CHECKOUT)])},
    )
    assert ran.returncode == 0, ran.stderr
    traces, missing = json.loads(ran.stdout.splitlines()[-1])
    return {name: Trace(**trace) for name, trace in traces.items()}, missing


@pytest.fixture(scope="module")
def traces(counted):
    return counted[0]


@pytest.fixture
def package(tmp_path):
    """A copy of this package that may be edited: `package("measure/clock.py", old, new)`."""
    copy = tmp_path / "anatomy"
    shutil.copytree(signatures.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))

    def edit(file: str, old: str, new: str) -> Path:
        text = (copy / file).read_text()
        assert old in text
        (copy / file).write_text(text.replace(old, new))
        return copy

    edit.root = copy
    return edit


def test_the_room_does_what_its_method_says(traces):
    assert differences(signatures.PACKAGE, traces) == []
    assert method.standing() == method.Standing(method.load(signatures.PACKAGE)["id"])


def test_every_branch_of_the_room_is_in_a_scenario(counted):
    _, missing = counted
    assert {Path(file).name for file in missing} == {path.name for path in ROOM.glob("*.py")}
    assert {file: lines for file, lines in missing.items() if lines != [[], []]} == {}


def test_only_the_hot_path_reads_a_clock_or_an_event():
    for path in ROOM.glob("*.py"):
        tree = ast.parse(path.read_text())
        used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        found = used & {"perf_counter_ns", "Event", "record", "query", "elapsed_time", "add_"}
        assert not found or path.stem == method.HOT_PATH.split(".")[-1], (path.name, found)


def imports(path: Path) -> set[str]:
    """Modules of this package that a file imports, wherever in it, without the package's name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("anatomy"):
            inside = node.module.removeprefix("anatomy").removeprefix(".")
            names = {f"{inside}.{alias.name}".strip(".") for alias in node.names}
            is_module = {
                (signatures.PACKAGE / f"{name.replace('.', '/')}.py").exists() for name in names
            }
            found |= names if is_module == {True} else {inside}
    return found


def test_the_modules_of_the_room_stand_one_on_another_and_on_nothing_that_judges():
    needs = {path.stem: imports(path) for path in ROOM.glob("*.py") if path.stem != "__init__"}
    assert needs["clock"] == {f"{method.ROOM}.cache"}, "the hot path needs the size of the cache"
    beneath = {"numerics.agreement", "table.errors", "table.intervals", "machine.host"}
    beneath |= {"table.units"}
    order: list[str] = []
    while rest := {name: found for name, found in needs.items() if name not in order}:
        below = beneath | {f"{method.ROOM}.{name}" for name in order}
        free = sorted(name for name, found in rest.items() if found <= below)
        assert free, f"these need each other, or what is none of theirs: {rest}"
        order += free


@pytest.mark.parametrize("minor", range(11, 15))
def test_the_sources_are_read_alike_on_every_python(minor):
    python = interpreters().get(f"3.{minor}")
    if python is None:
        pytest.skip(f"this machine has no Python 3.{minor}")
    ran = subprocess.run(
        [python, "-S", "-c", READ, str(signatures.PACKAGE.parent)],
        capture_output=True,
        text=True,
        env={"PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == method.standing().id


def test_a_package_without_a_room_has_no_method(tmp_path):
    assert method.standing(tmp_path).id == "none"


def test_an_edit_of_a_constant_has_another_id_and_says_which(package):
    before = method.standing(package.root).id
    number, digits = before.split("-")
    assert before == method.standing().id and number.isdecimal() and len(digits) == 8
    root = package("measure/sampling.py", "BATCH_S = 400e-6", "BATCH_S = 500e-6")
    seen = method.standing(root)
    assert seen.differences[0] == "BATCH_S is 0.0005, was 0.0004"
    assert seen.id.startswith(f"{number}-not-") and seen.id == method.standing(root).id
    package("measure/sampling.py", "BATCH_S = 500e-6", "BATCH_S = 4e-4")
    assert method.standing(root).id == before


def test_code_that_no_trace_was_compared_with_has_another_id_until_it_is(package, traces):
    before = method.standing(package.root).id
    root = package("measure/sampling.py", "own_s", "surroundings_s")
    assert method.standing(root).id == before, "a local's name"
    package("measure/sampling.py", "left = span_s - clock_s", "left = -clock_s + span_s")
    seen = method.standing(root)
    assert seen.id != before and seen.differences == (
        "code that the traces were not compared with",
    )
    assert differences(root, traces) == [
        "The same traces by other code: take it over with make.py method -- --verify."
    ]
    assert "the same traces" in verify(root, traces)
    assert method.standing(root).id == before and "nothing to verify" in verify(root, traces)


def test_another_hot_path_is_another_method_and_can_not_be_verified(package, traces):
    root = package(
        "measure/clock.py",
        "start.record()\n            call()",
        "call()\n" + " " * 12 + "start.record()",
    )
    assert method.standing(root).differences[0] == "the hot path, measure.clock"
    with pytest.raises(AnatomyError, match="the hot path"):
        verify(root, traces)


def test_a_trace_that_differs_is_told_by_scenario_and_operation(traces):
    golden = method.load(signatures.PACKAGE)
    name = "short_and_composed_calls_cold"
    one = traces[name]

    def told(**changed) -> list[str]:
        other = traces | {name: Trace(**vars(one) | changed)}
        return command.trace_differences(golden, other)

    assert told() == []
    at = one.kinds.index("dS")  # whoever waits for a device selects it first
    assert told(kinds=one.kinds[:at] + one.kinds[at + 1 :], operations="") == [
        f"{name}, operation {at}: expected device, got sync"
    ]
    assert told(kinds=one.kinds[:-1], operations="") == [
        f"{name}, operation {len(one.kinds) - 1}: expected clock, got the end"
    ]
    assert "with other lengths or bytes" in told(operations="")[0]
    assert "other figures made of them" in told(figures="")[0]
    less = {each: trace for each, trace in traces.items() if each != name}
    assert command.trace_differences(golden, less) == [f"{name}: no such scenario"]


def test_a_method_is_raised_with_a_reason_and_only_where_something_differs(package, traces):
    root = package.root
    number = method.load(root)["history"][-1]["number"]
    with pytest.raises(AnatomyError, match=f"Nothing differs from method {number}"):
        raise_method(root, "a whim", traces)
    package("measure/sampling.py", "BATCH_S = 400e-6", "BATCH_S = 500e-6")
    with pytest.raises(AnatomyError, match=r"BATCH_S is 0\.0005, was 0\.0004"):
        verify(root, traces)
    with pytest.raises(AnatomyError, match="Say why"):
        raise_method(root, " ", traces)
    assert f"This is method {number + 1}-" in raise_method(root, "longer batches", traces)
    golden = method.load(root)
    assert method.standing(root).id == golden["id"]
    assert golden["id"].startswith(f"{number + 1}-")
    assert [each["number"] for each in golden["history"]] == [*range(1, number + 2)]
    assert golden["history"][-1]["because"] == "longer batches"


def test_new_scenarios_are_taken_over_if_the_room_is_the_one_that_was_verified(
    package, traces, monkeypatch
):
    root, before = package.root, method.standing(package.root).id
    more = traces | {"another": Trace("cc", "1", "2")}
    with pytest.raises(AnatomyError, match="another: a new scenario"):
        verify(root, more)  # the scenarios' files say that there is none
    monkeypatch.setattr(command, "instrument", lambda: "another")
    verify(root, more)
    assert differences(root, more) == [] and method.standing(root).id == before
    monkeypatch.setattr(command, "instrument", lambda: "a third")
    package("measure/sampling.py", "left = span_s - clock_s", "left = -clock_s + span_s")
    with pytest.raises(AnatomyError, match="changed at once"):
        verify(root, traces)


def test_a_file_that_was_edited_by_hand_is_found(package):
    root, before = package.root, method.standing(package.root).id
    package(method.FILE, '"BATCH_S": "0.0004"', '"BATCH_S": "0.0005"')
    package("measure/sampling.py", "BATCH_S = 400e-6", "BATCH_S = 500e-6")
    with pytest.raises(AnatomyError, match="its seal does not fit"):
        method.load(root)
    assert method.standing(root).id != before and "seal" in method.standing(root).differences[0]
    (root / method.FILE).unlink()
    assert method.standing(root).id.startswith("none-")


def test_only_the_command_writes_the_file():
    folders = (signatures.PACKAGE, CHECKOUT / "tests", CHECKOUT / "hooks")
    files = [path for folder in folders for path in folder.rglob("*.py")]
    # Whoever names the file in a call that writes; the command's function for it is called `write`.
    names = ("method" + ".FILE).write_text(", "METHOD" + '.json").write_text(')
    writers = [path for path in files if any(name in path.read_text() for name in names)]
    assert writers == [CHECKOUT / "tests" / "measure" / "method" / "command.py"]
