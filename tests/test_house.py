"""The house, by ast: a room imports only rooms below it, and a chapter no other chapter.

A module's room is its folder. The two halves of the package meet only in a recording: what measures
has torch; what reads must be quick anywhere and never loads it. Each large library has one door.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from anatomy.cli import measure
from anatomy.record import signatures

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGE = CHECKOUT / "anatomy"
LONGEST = 400  # lines; a file beyond it has two subjects
MOST_FILES = 15  # in a folder; beyond it two folders are meant

# Room -> the rooms that it may import, beside itself. Whoever stands in the root is a door: it
# hands on what lies deeper, and may import anything.
ROOMS = {
    "table": set(),
    "numerics": {"table", "machine"},
    "machine": {"table"},
    "measure": {"table", "numerics", "machine"},
    "judge": {"table"},
    "record": {"table", "judge", "machine"},
    "claims": {"table", "judge", "record"},
    "figures": {"table", "judge", "record", "claims"},
    "parts": {"table", "numerics", "machine", "measure", "judge", "record"},
    "diagnosis": {"table", "numerics", "machine", "measure", "judge", "record", "parts"},
}
ROOMS["chapters"] = {*ROOMS}
ROOMS["site"] = {"table", "judge", "record", "claims", "figures"}
ROOMS["cli"] = {*ROOMS}
# What a file of a room imports only when it runs: the worker asks the clock of the experiment that
# it has run for what the clock has to say of itself.
LATE = {("record/processes/worker.py", "measure")}
# Rooms that have torch, and may import it at once; in all others it stands in functions alone.
MEASURING = {"numerics", "measure", "parts", "diagnosis", "chapters"}
# Rooms that know neither torch nor a GPU.
READING = {"table", "judge", "record", "claims", "figures", "site", "cli"}
# Library -> the folders, or modules, that import it.
DOORS = {
    "altair": {"figures/charts"},
    "vl_convert": {"figures/charts/svg.py"},
    "typer": {"cli"},
    "rich": {"cli", "record/progress.py"},
    "pynvml": {"machine/driver.py"},
    "filelock": {"record/processes/isolation.py", "site/processes.py"},
    "yaml": {"figures/text/frontmatter.py"},
    "pygments": {"chapters/ladder/shown/changes.py"},
    "triton": {"chapters/harnesses/stopwatches"},
    "torch": {*MEASURING, "machine", "record", "comparison.py"},
    "numpy": {*ROOMS},
    "pandas": {*ROOMS, "comparison.py"},
}
# Calls that read or write a file, or say something.
OUTSIDE = {"open", "read_text", "write_text", "read_bytes", "write_bytes", "print", "write", "log"}
NAMES_THAT_SAY_NOTHING = {"utils", "util", "common", "helpers", "helper", "core", "base", "misc"}

FILES = sorted(PACKAGE.rglob("*.py"))
SOURCES = [
    path
    for folder in ("anatomy", "tests", "hooks", "snippets")
    for path in sorted((CHECKOUT / folder).rglob("*.py"))
] + sorted(CHECKOUT.glob("*.py"))
# Lines that a day of the curriculum may add: to its chapter's folder, and to that of its tests.
PRICE = 300, 200
# Chapters that cost more, with what they cost, rounded up; they may become cheaper.
DEARER = {
    "allocator": (525, 200),
    "capture": (425, 220),
    "coalescing": (440, 180),
    "dispatch": (385, 160),
    "fusion": (605, 220),  # eleven statements of the ledger among its claims
    "launches": (375, 215),
    "memory_ladder": (620, 230),
    "occupancy": (460, 235),
    "profiling": (435, 200),  # a trace's first calls, drawn
    "reflection": (410, 195),  # a map and a quiz
    "roofline": (1200, 355),  # for three days
    "timing": (425, 170),
}


def relative(path: Path) -> str:
    return path.relative_to(CHECKOUT).as_posix()


def inside(path: Path) -> str:
    """The file within the package: `figures/charts/svg.py`."""
    return path.relative_to(PACKAGE).as_posix()


def room(place: str) -> str:
    """The room of a file within the package; empty for a door in the root."""
    if chapter(place) and place.endswith("/commands.py"):
        return "cli"  # a chapter's own command
    head, slash, _ = place.partition("/")
    return head if slash else ""


def chapter(place: str) -> str:
    """The chapter of a file, or empty."""
    parts = place.split("/")
    return parts[1] if parts[0] == "chapters" and len(parts) > 2 else ""


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> list[tuple[str, str, bool]]:
    """(library, file within the package or empty, whether it happens on import of `path`)."""
    return list(_imports(path))


def _imports(path: Path) -> Iterator[tuple[str, str, bool]]:
    late = {
        id(inner)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for inner in ast.walk(node)
        if inner is not node
    }
    typing_only = {
        id(inner)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree(path)):
        if id(node) in typing_only:
            continue
        at_once = id(node) not in late
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.partition(".")[0], file_of(alias.name), at_once
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{relative(path)}:{node.lineno} imports relatively"
            for alias in node.names:
                named = file_of(f"{node.module}.{alias.name}") or file_of(node.module)
                yield node.module.partition(".")[0], named, at_once


def file_of(module: str) -> str:
    """The file of a module of the package, within it; empty for anything else."""
    if module.partition(".")[0] != "anatomy":
        return ""
    place = PACKAGE.joinpath(*module.split(".")[1:])
    if place.with_suffix(".py").is_file() and place != PACKAGE:
        return inside(place.with_suffix(".py"))
    if place.is_dir() and place != PACKAGE:
        return inside(place / "__init__.py")
    return ""


@pytest.mark.parametrize("path", FILES, ids=inside)
def test_a_room_imports_only_rooms_below_it(path):
    place = inside(path)
    here = room(place)
    assert here in ROOMS or not here, f"{relative(path)}: the room {here} is not in ROOMS"
    for library, other, at_once in imports(path):
        if library != "anatomy" or not other or not here:
            continue
        there = room(other)
        if not there:  # a door of the package, which loads what it hands on when that is asked for
            continue
        if (place, there) in LATE:
            assert not at_once, f"{relative(path)} loads anatomy/{other} when it is imported"
            continue
        assert there == here or there in ROOMS[here], (
            f"{relative(path)} is in {here} and imports anatomy/{other}, which is not below it"
        )
        if here == "cli" and there in MEASURING and chapter(other) != chapter(place):
            assert not at_once, f"{relative(path)} loads anatomy/{other} even for --help"


@pytest.mark.parametrize("path", [p for p in FILES if chapter(inside(p))], ids=inside)
def test_no_chapter_imports_another(path):
    for _, other, _ in imports(path):
        assert chapter(other) in ("", chapter(inside(path))), (
            f"{relative(path)} imports anatomy/{other}: what two chapters share lies in a room"
        )


def test_machinery_knows_no_chapter_by_name():
    chapters = {chapter(inside(path)) for path in FILES} - {""}
    for path in FILES:
        if not chapter(inside(path)):
            for _, other, _ in imports(path):
                assert not chapter(other), f"{relative(path)} imports anatomy/{other}"
    assert len(chapters) > 10


def test_only_doors_stand_in_the_root():
    doors = {path.name for path in PACKAGE.glob("*.py")}
    assert doors == {"__init__.py", "__main__.py", "comparison.py", "notebook.py", "page.py"}


@pytest.mark.parametrize("path", FILES, ids=inside)
def test_each_library_has_one_door(path):
    place = inside(path)
    for library, _, at_once in imports(path):
        if library in sys.stdlib_module_names or library in ("anatomy", "__future__"):
            continue
        assert library in DOORS, f"{relative(path)} imports {library}, which has no door yet"
        through = any(place == door or place.startswith(f"{door}/") for door in DOORS[library])
        through = through or room(place) in DOORS[library]  # a chapter's own command
        assert through, f"{relative(path)} is no door of {library}"
        if library == "torch" and room(place) not in MEASURING | {""}:
            assert not at_once, f"{relative(path)} loads torch when it is imported"


def test_mkdocs_is_known_to_the_hooks_alone():
    for path in SOURCES:
        if not path.is_relative_to(CHECKOUT / "tests") and path.parent.name != "hooks":
            assert "mkdocs" not in {library for library, _, _ in imports(path)}, relative(path)


def test_no_modules_need_each_other_to_be_imported():
    needs = {}
    for path in FILES:
        found = {other for library, other, at_once in imports(path) if at_once and other}
        needs[inside(path)] = found - {inside(path)}
    done: set[str] = set()
    while needs:
        free = sorted(name for name, wants in needs.items() if wants <= done)
        assert free, f"these import each other in a circle: {', '.join(sorted(needs))}"
        done |= set(free)
        needs = {name: wants for name, wants in needs.items() if name not in free}


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_a_file_has_one_subject_and_says_which(path):
    length = len(path.read_text(encoding="utf-8").splitlines())
    assert length <= LONGEST, f"{relative(path)} has {length} lines: split it by subject"
    words = set(re.split(r"[_/.]", relative(path)))
    assert not words & NAMES_THAT_SAY_NOTHING, f"{relative(path)} is named after nothing"
    assert ast.get_docstring(tree(path)), f"{relative(path)} has no docstring"


def test_no_folder_holds_more_than_a_reader_takes_in():
    for folder in {path.parent for path in SOURCES}:
        files = [each for each in folder.iterdir() if each.is_file()]
        assert len(files) <= MOST_FILES + 1, f"{relative(folder)} holds {len(files)} files"


@pytest.mark.parametrize("path", FILES, ids=inside)
def test_what_is_public_says_what_it_is_for(path):
    classes = {node.name: node for node in tree(path).body if isinstance(node, ast.ClassDef)}
    silent = [
        f"{relative(path)}:{node.lineno} {name}"
        for name, node, overrides in public(tree(path).body, classes)
        if not ast.get_docstring(node) and not overrides
    ]
    assert not silent, f"without docstring: {', '.join(silent)}"


def public(body, classes, prefix="", bases=()) -> Iterator[tuple[str, ast.AST, bool]]:
    """Public functions, classes and methods, and whether a class of this file explains them."""
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        inherited = {inner.name for base in bases for inner in methods(base, classes)}
        yield prefix + node.name, node, node.name in inherited
        if isinstance(node, ast.ClassDef):
            names = [ast.unparse(base) for base in node.bases]
            yield from public(node.body, classes, f"{node.name}.", names)


def methods(name: str, classes: dict[str, ast.ClassDef]) -> Iterator[ast.FunctionDef]:
    if name in classes:
        yield from (node for node in classes[name].body if isinstance(node, ast.FunctionDef))
        for base in classes[name].bases:
            yield from methods(ast.unparse(base), classes)


@pytest.mark.parametrize("path", FILES, ids=inside)
def test_only_the_edge_prints_and_only_measuring_has_a_clock(path):
    place = inside(path)
    # `showing` has the print that page blocks are given, which goes nowhere else.
    speaks = room(place) == "cli" or place in ("record/recorder.py", "record/showing.py")
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print" or speaks, f"{relative(path)}:{node.lineno} prints"
        if isinstance(node, ast.Attribute) and room(place) != "measure":
            clock = node.attr in ("perf_counter", "perf_counter_ns", "elapsed_time")
            assert not clock, f"{relative(path)}:{node.lineno} has a clock of its own"


def test_the_clock_knows_nothing_of_limits_files_or_printing():
    reached, new = set(), {path for path in FILES if room(inside(path)) == "measure"}
    while new:
        reached |= new
        found = {PACKAGE / other for path in new for _, other, _ in imports(path) if other}
        new = found - reached
    assert {room(inside(path)) for path in reached} == {"measure", "numerics", "machine", "table"}
    found = set()
    for path in sorted(path for path in reached if room(inside(path)) == "measure"):
        called = {
            getattr(node.func, "attr", getattr(node.func, "id", ""))
            for node in ast.walk(tree(path))
            if isinstance(node, ast.Call)
        }
        found |= {(path.name, name) for name in called & OUTSIDE}
    # The size of the host's cache stands in a file of its kernel, and processes meet at two files.
    assert found == {("cache.py", "read_text"), ("turns.py", "open")}


def modules_of(rooms: set[str]) -> list[str]:
    """All modules of some rooms, as they are imported."""
    places = [inside(path) for path in FILES if room(inside(path)) in rooms]
    names = [place.removesuffix(".py").removesuffix("/__init__") for place in places]
    return [f"anatomy.{name.replace('/', '.')}" for name in names]


@pytest.mark.parametrize(
    "modules",
    ["anatomy", "anatomy.cli.app", "anatomy.record.recorder", ", ".join(modules_of({"table"}))],
)
def test_importing_does_not_load_torch_or_altair(modules):
    heavy = "sorted({'torch', 'altair', 'mkdocs'} & set(sys.modules))"
    code = f"import sys, {modules}; print({heavy})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=CHECKOUT, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_read_half_runs_where_torch_can_not_be_imported():
    pytest.importorskip("altair", reason="the site's packages are not installed here")
    done = importing([*modules_of(READING - {"cli"}), "anatomy.page"], forbidden=["torch"])
    assert done.returncode == 0, done.stderr


def test_pages_are_collected_where_only_measuring_is_installed():
    done = importing(["anatomy.page", "anatomy.site.collecting"], ["torch", "altair", "vl_convert"])
    assert done.returncode == 0, done.stderr


def importing(modules: list[str], forbidden: list[str]) -> subprocess.CompletedProcess:
    """Import modules in a process in which the forbidden libraries can not be imported."""
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({forbidden})); import {', '.join(modules)}"
    )
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, cwd=CHECKOUT)


def test_no_experiment_has_a_parameter_that_a_command_needs_for_itself():
    reserved = {*measure.OPTIONS, "machine", "plan", "budget", "prune", "remeasure", "help"}
    for name, experiment in signatures.experiments().items():
        taken = reserved & {parameter.name for parameter in experiment.parameters}
        assert not taken, f"{name} has parameters called {taken}, as its command's own options are"


def chapters_of_days() -> dict[str, int]:
    """Each chapter that measures for days of the curriculum, and for how many."""
    days = {(name.partition(".")[0], each.page) for name, each in signatures.experiments().items()}
    names = [name for name, page in days if page.startswith("curriculum/day_")]
    return {name: names.count(name) for name in sorted(names)}


@pytest.mark.parametrize(("name", "days"), chapters_of_days().items())
def test_a_day_costs_no_more_lines_than_its_price(name, days):
    folders = PACKAGE / "chapters" / name, CHECKOUT / "tests" / "chapters" / name
    lines = tuple(
        sum(len(path.read_text(encoding="utf-8").splitlines()) for path in folder.rglob("*.py"))
        for folder in folders
    )
    most = DEARER.get(name, tuple(days * each for each in PRICE))
    said = f"{lines} lines for {days} days, and {most} are allowed"
    assert lines[0] <= most[0] and lines[1] <= most[1], said
