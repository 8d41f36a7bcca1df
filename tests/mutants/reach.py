"""Which tests reach which line of the package, by coverage with a context for each test.

Every test file runs once, by itself, in a copy of the checkout in which each function of the
package has a statement more that does nothing. A test that fails there compares the code's text or
hash (or can't run on this machine): it is none of behaviour, and finds no mutant.
"""

import ast
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable
from functools import cache, cached_property
from pathlib import Path

import coverage

CHECKOUT = Path(__file__).resolve().parents[2]
KEPT = CHECKOUT / ".cache" / "mutants"
# Tests that say nothing of behaviour, or can't be asked: pattern of files -> why.
LEFT_OUT = {
    "test_*.py": "they look at the layout, the wheel, make.py and the guide, not at results",
    "browser/*": "they open the built site, which needs a browser",
    "mutants/*": "they try this command",
    "measure/method/test_method.py": "they edit copies of the room, whose text must be as it is",
    "measure/method/test_edits.py": "so do they; the scenarios themselves are in test_scenarios.py",
}
SETTINGS = """[run]
source = {copy}/anatomy,{copy}/tests
data_file = {data}
parallel = true
core = ctrace
disable_warnings = no-data-collected,module-not-imported,dynamic-conflict
context = ${{MUTANTS_CONTEXT}}
patch = _exit,fork
"""


def test_files(within: Iterable[str] = ()) -> list[str]:
    """The test files that may find a mutant, or those of them in some folders."""
    found = []
    for path in sorted((CHECKOUT / "tests").rglob("test_*.py")):
        place = path.relative_to(CHECKOUT / "tests")
        parts = (place.as_posix(), *(f"{each.as_posix()}/*" for each in place.parents))
        out = any(place.match(p) if "/" in p else len(place.parts) == 1 for p in LEFT_OUT)
        if not out and (not within or any(f"tests/{p}".startswith(tuple(within)) for p in parts)):
            found.append(f"tests/{place.as_posix()}")
    return found


@cache
def _shared() -> bytes:
    """Digest of what every test may use: the package, and all of tests/ that is no test file."""
    whole = hashlib.sha256()
    for folder in ("anatomy", "tests"):
        for path in sorted((CHECKOUT / folder).rglob("*")):
            plain = path.is_file() and path.suffix not in (".pyc", "")
            ours = path.parent.name != "mutants" or path.stem in ("reach", "worker")
            if plain and ours and not path.name.startswith("test_"):
                whole.update(str(path.relative_to(CHECKOUT)).encode() + path.read_bytes())
    return whole.digest()


def kept(file: str) -> Path:
    """Where what was learnt of a test file is kept, by content."""
    digest = hashlib.sha256(_shared() + file.encode() + (CHECKOUT / file).read_bytes())
    return KEPT / f"{digest.hexdigest()[:24]}.json"


def learnt(data: Path, copy: Path, came: dict) -> dict:
    """What one test file costs and reaches, from the data of its processes."""
    counted = coverage.Coverage(data_file=str(data), config_file=False)
    counted.combine([str(data.parent)])
    lines: dict[str, dict[int, list[int]]] = {}
    names = {name: at for at, name in enumerate(came["seconds"])} | {"file": -1}
    # What a file calls while it is read is reached by all of its tests.
    on_import = names | {"": -1}
    for path in counted.get_data().measured_files():
        place, at = Path(path).relative_to(copy).as_posix(), {}
        for line, contexts in counted.get_data().contexts_by_lineno(path).items():
            # Where a test has a process of its own, its context comes with that process's.
            parts = {part for each in contexts for part in (each, *each.split("|"))}
            known = on_import if place.startswith("anatomy/") and scope(place, line)[0] else names
            if tests := {known[part] for part in parts & set(known)}:
                at[line] = sorted(tests)
        lines[place] = at
    return {name: came[name] for name in ("seconds", "failed")} | {"lines": lines}


def harmless(text: str) -> str:
    """A source with a statement more in each function, which does nothing; the lines stay."""
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            body = [s for s in ast.walk(node) if isinstance(s, ast.stmt) and not hasattr(s, "body")]
            plain = [s for s in body if not (isinstance(s, ast.Expr) and _is_text(s.value))]
            if plain and not hasattr(plain[0], "cases"):
                at = plain[0].lineno - 1
                before = lines[at].encode()[: plain[0].col_offset].decode()
                if not before.strip():
                    lines[at] = f"{before}assert True; {lines[at][len(before) :]}"
    return "".join(lines)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


class Reach:
    """Which tests reach what, by what was learnt of each test file."""

    def __init__(self, learnt: dict[str, dict]):
        self.files = learnt

    @cached_property
    def seconds(self) -> dict[str, float]:
        return {name: s for each in self.files.values() for name, s in each["seconds"].items()}

    @cached_property
    def failed(self) -> set[str]:
        """Tests that are none of behaviour."""
        return {name for each in self.files.values() for name in each["failed"]}

    @cached_property
    def by_line(self) -> dict[str, dict[int, set[str]]]:
        found: dict = defaultdict(lambda: defaultdict(set))
        for each in self.files.values():
            names = list(each["seconds"])
            for path, lines in each["lines"].items():
                for line, tests in lines.items():
                    here = found[path][int(line)]
                    here.update(names if -1 in tests else (names[at] for at in tests))
        return found

    def tests(self, file: str, line: int) -> set[str]:
        """The tests of behaviour that reach what stands in a line of the package."""
        return self._of(file, line, set()) - self.failed

    def _of(self, file: str, line: int, seen: set[str]) -> set[str]:
        lines, names = scope(file, line)
        found = {test for at in lines for test in self.by_line[file].get(at, ())}
        # Who calls a function that reads a name has reached what that name stands for already.
        new = set() if seen and lines else names - seen
        seen |= new
        for name in new:  # what runs on import is reached by whoever reads what it names
            word = re.compile(rf"\b{re.escape(name)}\b")
            for path in list(self.by_line):
                for at in mentions(path, word):
                    found |= self._of(path, at, seen)
        return found


@cache
def mentions(file: str, word: re.Pattern) -> list[int]:
    lines = (CHECKOUT / file).read_text(encoding="utf-8").splitlines()
    return [at for at, line in enumerate(lines, 1) if word.search(line)]


def scope(file: str, line: int) -> tuple[range, frozenset[str]]:
    """The lines that are run with a line, and the names it gives if it runs on import."""
    return _scopes(file).get(line, (range(0), frozenset()))


@cache
def _scopes(file: str) -> dict[int, tuple[range, frozenset[str]]]:
    found: dict[int, tuple[range, frozenset[str]]] = {}

    def put(lines: range, run_with: range, names: Iterable[str] = ()) -> None:
        found.update(dict.fromkeys(lines, (run_with, frozenset(names))))

    def statements(body: list[ast.stmt], inside: bool, owner: str = "") -> None:
        for node in body:
            outer = [node, *getattr(node, "decorator_list", [])]
            whole = range(min(each.lineno for each in outer), node.end_lineno + 1)
            if isinstance(node, ast.FunctionDef):
                # Defaults and decorators; the names are for who asks about the function itself.
                put(whole, range(node.body[0].lineno, whole.stop), {node.name})
                statements(node.body, True)
                continue
            if isinstance(node, ast.ClassDef):
                put(whole, range(0), {node.name})
                statements(node.body, inside, node.name)
                continue
            stored = (n for n in ast.walk(node) if isinstance(getattr(n, "ctx", 0), ast.Store))
            names = {getattr(n, "id", owner) for n in stored} | {owner}
            put(whole, whole if inside else range(0), () if inside else names - {""})
            parts = [getattr(node, part, []) for part in ("body", "orelse", "finalbody")]
            for part in ("handlers", "cases"):
                parts += [each.body for each in getattr(node, part, [])]
            if parts[0] and inside:
                head = range(node.lineno, max(parts[0][0].lineno, node.lineno + 1))
                put(head, head)
            for each in parts:
                statements(each, inside, owner)

    statements(ast.parse((CHECKOUT / file).read_text(encoding="utf-8")).body, False)
    return found
