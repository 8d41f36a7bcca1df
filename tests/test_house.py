"""The house, by ast: which module lives in which room, and whom it may import.

The two halves of the package meet only in a recording. What measures has torch; what reads must be
quick anywhere and never loads it. Each large library has one door.
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

# Room -> modules; a package stands for all that is in it. A new module is put into its room here.
# Flat lies what measures, for a recording's hash of its code holds the names of these modules, and
# what more than one package stands on. All else lies in the package of its subject.
ROOMS = {
    "shared": (
        *("errors", "units", "intervals", "counts", "limits", "signatures", "docstrings", "table"),
        *("provenance", "recording", "printing", "judge"),
        *("replication", "merging", "handover", "exponents", "bottleneck"),
    ),
    "record": (
        *(
            "driver",
            "machine",
            "versions",
            "agreement",
            "tensors",
            "measuring",
            "comparing",
            "gates",
            "experiment",
            "experiments",
        ),
        *("harnesses", "isolation", "progress", "recorder", "scripts", "worker"),
        *("models", "memory", "counting", "profiles", "diagnosing", "script_diagnosis"),
    ),
    "read": (
        *("rows", "kernel_names", "tables", "showing", "ledger", "page", "rungs", "ladder_scripts"),
        *("claims", "charts", "contest", "exhibits", "pages"),
    ),
    "edge": ("cli", "__init__", "__main__"),
}
MAY_IMPORT = {
    "shared": {"shared"},
    "record": {"shared", "record"},
    "read": {"shared", "read"},
    "edge": {"shared", "record", "read", "edge"},
}
# Library -> the only modules, or packages, that import it.
DOORS = {
    "altair": {
        f"charts.{module}"
        for module in (
            *("grammar", "plain", "clouds", "diagonals", "heatmaps", "lanes", "layered"),
            *("loglog", "stacks", "tradeoffs"),
        )
    },
    "vl_convert": {"charts.svg"},
    "pygments": {"exhibits.changes"},
    "typer": {"cli"},
    "rich": {"cli", "progress"},
    "pynvml": {"driver"},
    "filelock": {"isolation", "pages.building"},
    "yaml": {"pages.frontmatter"},
    "mkdocs": set(),
    "torch": {
        "tensors",
        "agreement",
        "measuring",
        "comparing",
        "experiments",
        "machine",
        "versions",
        "harnesses",
        "models",
        "memory",
        "counting",
        "profiles",
        "diagnosing",
    },
    "triton": {"harnesses"},
    "numpy": {*ROOMS["shared"], *ROOMS["record"], *ROOMS["read"]},
    "pandas": {*ROOMS["shared"], *ROOMS["record"], *ROOMS["read"], "cli"},
}
# Modules of the record half that a process without torch runs: they import it in functions alone.
WITHOUT_TORCH = (
    "driver",
    "machine",
    "versions",
    "experiment",
    "isolation",
    "progress",
    "recorder",
    "scripts",
    "script_diagnosis",
)
NAMES_THAT_SAY_NOTHING = {"utils", "util", "common", "helpers", "helper", "core", "base", "misc"}

FILES = sorted(PACKAGE.rglob("*.py"))
SOURCES = [
    path
    for folder in ("anatomy", "tests", "hooks", "snippets")
    for path in sorted((CHECKOUT / folder).rglob("*.py"))
] + sorted(CHECKOUT.glob("*.py"))


def relative(path: Path) -> str:
    return path.relative_to(CHECKOUT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def top(path: Path) -> str:
    """The module, or the sub-package, of anatomy that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def dotted(path: Path) -> str:
    """The module's name without the package's own: `charts.svg`."""
    name = path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")
    return name.removesuffix(".__init__")


def modules_of(name: str) -> list[str]:
    """All modules of a room, those in its packages too, as they are imported."""
    return [f"anatomy.{dotted(path)}" for path in FILES if top(path) in ROOMS[name]]


def room(module: str) -> str:
    for name, modules in ROOMS.items():
        if module in modules:
            return name
    raise AssertionError(f"anatomy.{module} is in no room: give it one in tests/test_house.py")


def imports(path: Path) -> Iterator[tuple[str, str | None, bool]]:
    """(library, module of anatomy or None, whether it happens when the file is imported)."""
    late = {
        id(inner)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        for inner in ast.walk(node)
        if inner is not node
    }
    for node in ast.walk(tree(path)):
        at_once = id(node) not in late
        if isinstance(node, ast.Import):
            for alias in node.names:
                library, _, rest = alias.name.partition(".")
                yield library, rest.partition(".")[0] or None, at_once
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{relative(path)}:{node.lineno} imports relatively"
            library, _, rest = node.module.partition(".")
            if library == "anatomy" and not rest:
                for alias in node.names:
                    yield library, alias.name, at_once
            else:
                yield library, rest.partition(".")[0] or None, at_once


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_a_module_imports_only_what_its_room_may(path):
    for library, module, at_once in imports(path):
        if library != "anatomy" or module is None or module == top(path):
            continue
        if module in ("compare", "diagnose", "__version__"):  # the front door's own names
            continue
        there = room(module)
        assert there in MAY_IMPORT[room(top(path))], (
            f"{relative(path)} is in the {room(top(path))} room and imports anatomy.{module}, "
            f"which is in the {there} room"
        )
        if room(top(path)) == "edge" and there == "record":
            assert not at_once, f"{relative(path)} loads anatomy.{module} even for --help"


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_each_library_has_one_door(path):
    for library, _, at_once in imports(path):
        if library in sys.stdlib_module_names or library in ("anatomy", "__future__"):
            continue
        assert library in DOORS, f"{relative(path)} imports {library}, which has no door yet"
        doors = DOORS[library]
        assert {top(path), dotted(path)} & doors, f"{relative(path)} is no door of {library}"
        if library == "torch" and top(path) in WITHOUT_TORCH:
            assert not at_once, f"{relative(path)} loads torch when it is imported"


def test_mkdocs_is_known_to_the_hooks_alone():
    outside = [path for path in SOURCES if path.is_relative_to(CHECKOUT / "tests")]
    for path in set(SOURCES) - set(outside):
        if path.parent.name != "hooks":
            assert "mkdocs" not in {library for library, _, _ in imports(path)}, relative(path)


def test_no_two_modules_need_each_other_to_be_imported():
    needs = {}
    for path in FILES:
        found = {m for library, m, at_once in imports(path) if library == "anatomy" and at_once}
        needs.setdefault(top(path), set()).update(found - {top(path), None, "compare", "diagnose"})
    done: list[str] = []
    while needs:
        free = sorted(name for name, wants in needs.items() if wants <= set(done))
        assert free, f"these import each other in a circle: {', '.join(sorted(needs))}"
        done += free
        needs = {name: wants for name, wants in needs.items() if name not in free}


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_a_file_has_one_subject_and_says_which(path):
    length = len(path.read_text(encoding="utf-8").splitlines())
    assert length <= LONGEST, f"{relative(path)} has {length} lines: split it by subject"
    words = set(re.split(r"[_/.]", relative(path)))
    assert not words & NAMES_THAT_SAY_NOTHING, f"{relative(path)} is named after nothing"
    assert ast.get_docstring(tree(path)), f"{relative(path)} has no docstring"


@pytest.mark.parametrize("path", FILES, ids=relative)
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


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_only_the_edge_prints_and_only_measuring_has_a_clock(path):
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            # `showing` has the print that page blocks are given, which goes nowhere else.
            speaks = top(path) in ("cli", "recorder", "showing")
            assert node.func.id != "print" or speaks, f"{relative(path)}:{node.lineno} prints"
        if isinstance(node, ast.Attribute) and top(path) != "measuring":
            clock = node.attr in ("perf_counter", "perf_counter_ns", "elapsed_time")
            assert not clock, f"{relative(path)}:{node.lineno} has a clock of its own"


@pytest.mark.parametrize(
    "modules",
    [
        "anatomy",
        "anatomy.cli.app",
        "anatomy.record.recorder, anatomy.machine.host",
        ", ".join(modules_of("shared")),
    ],
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
    done = importing(modules_of("read"), forbidden=["torch"])
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
