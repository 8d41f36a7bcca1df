"""The method's id: one name for how every number here is taken, kept in METHOD.json. A recording
depends on the measuring room through it alone, so that the room can be mended without a GPU as long
as these stay as they were:

* the constants of the room and of what it reaches, by name, with all defaults of parameters;
* the syntax of the hot path, since a virtual clock can't see what the host does between readings;
* golden traces: what the room asks of a virtual GPU in some fifty scenarios, and what it makes of
  the answers. A test, or `python3 make.py method`, runs them.

The file keeps a hash of all code that the traces were last compared with. Other code has an id of
its own, and recordings are stale, until `make.py method -- --verify` has seen the same traces. Only
`--raise --because ...` makes a new method, which every timed recording must then be measured with.
Both seal the file."""

import ast
import json
import operator
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from anatomy.record import signatures
from anatomy.record.provenance.content import UNFOLLOWED, Definitions, Layout
from anatomy.record.provenance.definitions import remembered
from anatomy.record.provenance.syntax import FUNCTIONS
from anatomy.table.errors import AnatomyError

ROOM = "measure"  # the room's folder in the package, the one place that names it
HOT_PATH = f"{ROOM}.clock"
FILE = f"{ROOM}/METHOD.json"
NO_ROOM = "none"  # the id of a package in which nothing is timed
OPERATORS = {ast.Mult: operator.mul, ast.Pow: operator.pow, ast.Div: operator.truediv}


@dataclass(frozen=True)
class Sources:
    """What of the method can be read from the sources."""

    constants: Mapping[str, str]  # value of each constant and default, as text, by name
    hot_path: str  # hash of its module
    code: str  # hash of the room and of all that it reaches


@dataclass(frozen=True)
class Standing:
    """The id of the method that the sources follow, and how they differ from METHOD.json's."""

    id: str  # that of METHOD.json where nothing differs, else one of its own
    differences: tuple[str, ...] = ()  # a phrase each, of what is no known part of that method


def standing(root: Path | None = None) -> Standing:
    """Compare the sources of the package in `root`, by default this one, with its METHOD.json."""
    root = Path(root or signatures.PACKAGE).resolve()
    if not (root / ROOM).is_dir():
        return Standing(NO_ROOM)
    now = read(root)
    try:
        golden = load(root)
    except AnatomyError as error:
        return Standing(f"none-{short_hash(vars(now))[:8]}", (str(error),))
    differences = changes(golden, now)
    if golden["code"] != now.code:
        differences += ("code that the traces were not compared with",)
    if not differences:
        return Standing(golden["id"])
    return Standing(f"{golden['number']}-not-{short_hash(vars(now))[:8]}", differences)


def changes(golden: Mapping[str, Any], now: Sources) -> tuple[str, ...]:
    """Constants that differ from the file's, and the hot path if it does; a phrase for each."""
    before = golden["constants"]
    found = [
        f"{name} is {now.constants.get(name, 'gone')}, was {before.get(name, 'not there')}"
        for name in sorted({*before, *now.constants})
        if before.get(name) != now.constants.get(name)
    ]
    if golden["hot_path"] != now.hot_path:
        found.append(f"the hot path, {HOT_PATH}")
    return tuple(found)


def load(root: Path) -> dict[str, Any]:
    """What METHOD.json says; AnatomyError where there is none, or one that was written by hand."""
    try:
        golden = json.loads((root / FILE).read_text(encoding="utf-8"))
        sealed = golden.pop("seal")
    except (OSError, ValueError, KeyError) as error:
        raise AnatomyError(f"{FILE} can't be read: {error}.") from None
    if sealed != short_hash(golden):
        raise AnatomyError(
            f"{FILE} is not as `make.py method` wrote it: its seal does not fit. Put back the "
            "version that does; the file is never edited by hand."
        )
    return golden


def read(root: Path) -> Sources:
    """Read the method from the sources of a package; AnatomyError where one does not parse."""
    return read_files(root.name, signatures.sources(root))


@remembered
def read_files(name: str, files: tuple[tuple[str, bytes], ...]) -> Sources:
    """As `read`, of files by path in the package; only an edit makes it be done again."""
    package = Definitions(name, files, Layout((), UNFOLLOWED, ""))
    room = [each for each in package.files if each == ROOM or each.startswith(f"{ROOM}.")]
    elsewhere = tuple(each for each in package.files if each != HOT_PATH and each)
    alone = Definitions(name, files, Layout((), elsewhere, ""))
    in_room = [target for module in room for target in package.of_module(module)]
    constants: dict[str, set[str]] = {}
    for target in package.with_all_reached(in_room):
        for statement in package.statements(target):
            for constant, value in _constants(statement):
                constants.setdefault(constant, set()).add(value)
    return Sources(
        # Two of one name, in two modules, are told by both of their values.
        {constant: " and ".join(sorted(values)) for constant, values in sorted(constants.items())},
        short_hash(sorted({alone.hash(target) for target in alone.of_module(HOT_PATH)})),
        short_hash(sorted({package.hash(target) for target in in_room})),
    )


def _constants(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """Name and value of every constant, field and default that a top-level statement gives."""
    if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            yield from _assigned(target, statement.value)
    elif isinstance(statement, FUNCTIONS):
        yield from _defaults(statement)
    elif isinstance(statement, ast.ClassDef):
        for inner in statement.body:
            if isinstance(inner, ast.AnnAssign) and inner.value is not None:
                yield from _given(ast.unparse(inner.target), inner.value)
            elif isinstance(inner, FUNCTIONS):
                yield from _defaults(inner)


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, str]]:
    """Names in capitals that are given a value."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, its in zip(target.elts, value.elts, strict=True):
            yield from _assigned(one, its)
    elif isinstance(target, ast.Name) and target.id.isupper():
        try:  # numbers are computed, so that `2**20` and `1048576` are the same
            yield target.id, ascii(_computed(value))
        except ValueError:
            yield target.id, ast.unparse(value)


def _defaults(outer: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, str]]:
    """Parameters with a default, of a function and of those inside it, by their own names."""
    for function in ast.walk(outer):
        if isinstance(function, FUNCTIONS):
            given = function.args
            ordered = [*given.posonlyargs, *given.args]
            last = ordered[len(ordered) - len(given.defaults) :]
            values = *given.defaults, *given.kw_defaults
            for parameter, value in zip((*last, *given.kwonlyargs), values, strict=True):
                yield from _given(parameter.arg, value)


def _given(name: str, value: ast.expr | None) -> Iterator[tuple[str, str]]:
    """A default; not one that is another constant, has to be computed, or is a phrase of words.
    None is no default at all, and nothing comes of it."""
    with suppress(ValueError):
        computed = _computed(value)
        if not isinstance(computed, str) or " " not in computed:
            yield name, ascii(computed)


def _computed(node: ast.expr | None) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(_computed(each) for each in node.elts)
    if isinstance(node, ast.Dict) and None not in node.keys:
        keys = [k.value if isinstance(k, ast.Constant) else ast.unparse(k) for k in node.keys]
        return dict(zip(keys, map(_computed, node.values), strict=True))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_computed(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](_computed(node.left), _computed(node.right))
    raise ValueError


def short_hash(value: object) -> str:
    """Half a sha256 of what JSON holds; as METHOD.json's seal it shows that a command wrote it."""
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]
