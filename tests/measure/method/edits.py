"""Edits of the measuring room, and what is seen of them: by its constants, its hot path, a trace.

`python3 make.py method -- --table` prints what a test holds: no edit of the method goes unseen, and
none that is harmless costs a recording. An edit is made on a copy, by exact replacement of text, so
that one which no longer applies fails rather than passes.
"""

import ast
import multiprocessing
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path

from anatomy.record import signatures
from anatomy.record.provenance import method

Files = dict[str, bytes]
CONSTANTS, HOT_PATH = "constants", "hot path"
AT_ONCE, VERIFIED = "at once", "after --verify"
# Modules that a process forgets before it loads an edited room.
LONGEST_S = 900  # for the traces of all edits, on a machine that others use as well
RELOADED = ("anatomy", "tests.fakes", "tests.measure.method")


@dataclass(frozen=True)
class Edit:
    """One edit of the room.

    Attributes:
        what: What was done, for the table.
        changes: File in the room, text that stands in it once, and what stands there afterwards.
        seen: By what an edit of the method is seen: `CONSTANTS`, `HOT_PATH` or a scenario.
        moved: Files of the room that get another name.
    """

    what: str
    changes: Sequence[tuple[str, str, str]]
    seen: str = ""
    moved: Mapping[str, str] = field(default_factory=dict)

    @property
    def constant(self) -> str:
        """The constant that one of `constant_edits` is of."""
        return self.what.split()[0]


def edited(*edits: Edit) -> Files:
    """The sources of the package after some edits."""
    files = dict(signatures.sources(signatures.PACKAGE))
    for edit in edits:
        for file, old, new in edit.changes:
            path = f"{method.ROOM}/{file}"
            text = files.get(path, b"").decode()
            assert not old or text.count(old) == 1, f"{edit.what}: {file} has no one {old!r}"
            files[path] = (text.replace(old, new) if old else text + new).encode()
            ast.parse(files[path])
    for edit in edits:
        for old, new in edit.moved.items():
            files[f"{method.ROOM}/{new}"] = files.pop(f"{method.ROOM}/{old}")
    return files


@cache
def as_it_is() -> method.Sources:
    """The method as the sources have it."""
    return read(edited())


def read(files: Files) -> method.Sources:
    """The method as these sources have it."""
    return method.read_files(signatures.PACKAGE.name, tuple(sorted(files.items())))


def listed(file: str) -> list[Edit]:
    """The edits in a file beside this one."""
    found = tomllib.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))["edit"]
    for edit in found:
        edit["changes"] = [
            (each["file"], each["old"], each["new"]) for each in edit.pop("change", None) or [edit]
        ]
    names = {each.name for each in fields(Edit)}
    return [Edit(**{name: edit[name] for name in names & edit.keys()}) for edit in found]


def constant_edits() -> Iterator[Edit]:
    """Each constant of the room with another value."""
    for path in sorted((signatures.PACKAGE / method.ROOM).glob("*.py")):
        text = path.read_text(encoding="utf-8")
        for statement in ast.parse(text).body:
            for name, value in _assigned(statement):
                if name.isupper():
                    old = ast.get_source_segment(text, value)
                    whole = ast.get_source_segment(text, statement)
                    other = whole.replace(old, _other(value, old))
                    what = f"{name} of {path.stem} is another"
                    yield Edit(what, ((path.name, whole, other),), CONSTANTS)


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Names that a statement gives values to, each with its own."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    if isinstance(target, ast.Tuple):
        for one, value in zip(target.elts, statement.value.elts, strict=True):
            yield one.id, value
    else:
        yield ast.unparse(target), statement.value


def _other(value: ast.expr, text: str) -> str:
    """Another value of the same type, as text."""
    if isinstance(value, ast.Tuple):
        return f"(*{text}, 96)"
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return f'{text} + "x"'
    return f"3 * {text}"


def static_sight(edit: Edit) -> str:
    """What sees an edit without running anything; nothing if it needs a trace."""
    golden = vars(as_it_is())
    now = read(edited(edit))
    if golden["constants"] != now.constants:
        return CONSTANTS
    return HOT_PATH if golden["hot_path"] != now.hot_path else ""


def sights_of_constants() -> Iterator[tuple[Edit, str]]:
    """Each of `constant_edits` with what sees it. The room is read once for as many as can be made
    at once, each of a constant and in a statement of its own."""
    left = list(constant_edits())
    while left:
        batch: dict[tuple[str, str], Edit] = {}
        for edit in left:
            ((file, old, _),) = edit.changes
            batch.setdefault((file, old), edit)
        batch = {edit.constant: edit for edit in batch.values()}
        left = [edit for edit in left if edit not in batch.values()]
        now = read(edited(*batch.values())).constants
        for name, edit in batch.items():
            yield edit, CONSTANTS if as_it_is().constants.get(name) != now.get(name) else ""


def traces_of(work: tuple[Files, Sequence[str]]) -> dict[str, str]:
    """Traces of scenarios in an edited room, each in a line; for a process of its own.

    A scenario that the edited room does not get through has the error's name for a trace.
    """
    files, names = work
    for name in [name for name in sys.modules if name.startswith(RELOADED)]:
        del sys.modules[name]
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, signatures.PACKAGE.name)
        (package / method.ROOM).mkdir(parents=True)
        for each in signatures.PACKAGE.iterdir():
            if each.name != method.ROOM:  # edits are of the room alone
                (package / each.name).symlink_to(each)
        for file, content in files.items():
            if file.startswith(f"{method.ROOM}/"):
                (package / file).write_bytes(content)
        sys.path.insert(0, folder)
        from tests.measure.method import command
        from tests.measure.method.traces import SCENARIOS, traced

        found = {}
        for name in names or SCENARIOS:
            try:
                found[name] = command.summary(traced(SCENARIOS[name]))
            except Exception as error:
                found[name] = type(error).__name__
        return found


def traces_of_all(works: Sequence[tuple[Files, Sequence[str]]]) -> list[dict[str, str]]:
    """`traces_of` of each, every one in a fresh fork of this process."""
    import torch  # noqa: F401 - once for all forks

    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        found = pool.map_async(traces_of, works, chunksize=1).get(LONGEST_S)
        # In peace: leaving terminates, which can kill a worker that holds the queue's lock, and
        # then waits for ever for the one that was just forked in its place.
        pool.close()
        pool.join()
    return found


def sights() -> list[tuple[Edit, str]]:
    """Each edit of the method, with what saw it; nothing where it went unseen."""
    golden = method.load(signatures.PACKAGE)["scenarios"]
    constants = list(sights_of_constants())
    edits = listed("edits_of_the_method.toml")
    seen = {edit.what: static_sight(edit) for edit in edits if edit.seen in (CONSTANTS, HOT_PATH)}
    traced = [edit for edit in edits if edit.what not in seen]
    traces = traces_of_all([(edited(edit), [edit.seen]) for edit in traced])
    for edit, found in zip(traced, traces, strict=True):
        seen[edit.what] = next((name for name in found if found[name] != golden[name]), "")
    return [*constants, *((edit, seen[edit.what]) for edit in edits)]


def costs() -> list[tuple[Edit, str]]:
    """Each harmless edit, with when it is free; nothing if it is not."""
    edits = listed("harmless_edits.toml")
    (traces,) = traces_of_all([(edited(*edits), [])])
    same = traces == method.load(signatures.PACKAGE)["scenarios"]
    found = []
    for edit in edits:
        now = read(edited(edit))
        if not same or method.changes(vars(as_it_is()), now):
            found.append((edit, ""))
        else:
            found.append((edit, AT_ONCE if now.code == as_it_is().code else VERIFIED))
    return found


def table() -> str:
    """Both kinds of edits in Markdown."""
    lines = ["| edit of the method | seen by |", "|---|---|"]
    lines += [f"| {edit.what} | {by or 'NOTHING'} |" for edit, by in sights()]
    lines += ["", "| harmless edit | costs no recording |", "|---|---|"]
    lines += [f"| {edit.what} | {when or 'COSTS ALL'} |" for edit, when in costs()]
    return "\n".join(lines)
