"""Experiments as their source declares them, read by ast and never imported: pages, commands and
tables need their names, parameters, defaults and help without loading torch."""

import ast
import re
import reprlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from inspect import cleandoc
from itertools import chain
from math import isfinite
from pathlib import Path
from textwrap import dedent
from types import MappingProxyType
from typing import Any

from anatomy.machine import host
from anatomy.record.bounds import Between
from anatomy.record.provenance.definitions import Modules, remembered
from anatomy.record.provenance.syntax import DECORATOR, is_experiment
from anatomy.table.errors import AnatomyError, BadParameter, close_names, lookup

Sources = tuple[tuple[str, bytes], ...]  # path and content of files, sorted
PACKAGE = Path(__file__).resolve().parents[1]
NAME = re.compile(r"[A-Za-z_]\w*\.[A-Za-z_]\w*")  # of an experiment: `topic.what`
TIMEOUT_S, PROCESSES = 300, 1  # the decorator's defaults
TYPES = {"int": int, "float": float, "str": str, "bool": bool}
# Help of parameters that most experiments have; an experiment's docstring has that of the others,
# and its own of these where it means something else.
SHARED_HELP = {
    "device": "Where to run, such as cuda:0 or cpu.",
    "iters": "Least number of timed samples of each variant.",
    "budget_s": "Seconds of timed blocks of each comparison.",
    "scale": "Factor on every size; 1 for a GPU, less for a quick look or a CPU.",
    "world_size": "GPUs that work together, from the device on: a process for each, of all nodes.",
    "dtype": "Number format; tf32 is float32 whose products may use TF32, fp32's do not.",
    "op": "Operation: a matrix product A @ B, F.layer_norm(A), or the streaming A * 2.",
    "m": "Rows M of the matrix A.",
    "n": "Columns N of B.",
    "k": "Columns K of A; the reduction of A @ B.",
    "batch": "Sequences B.",
    "seq": "Tokens T of each sequence.",
    "dmodel": "Width C of a token; a multiple of nhead.",
    "nhead": "Attention heads H.",
    "width": "Width C of a token.",
    "layers": "Layers of the transformer.",
    "sequence": "Tokens T of a sequence.",
    "head_width": "Width D of a head.",
    "full": "Measure a finer map; takes minutes.",
    "backend": "What torch.compile hands its graphs to; eager runs them as they are, for tests.",
}
# The Args section of a Google docstring, and the beginning of each of its entries.
SECTION = re.compile(r"^(?:Args|Arguments):[ \t]*\n((?:[ \t]+.*\n|\n)*)", re.MULTILINE)
ENTRY = re.compile(r"^\*{0,2}(\w+)[ \t]*(?:\([^)]*\))?:", re.MULTILINE)
# What pages and commands call something of their own, so that no parameter of that name would reach
# an experiment. (`op` and `quantity` do, see `anatomy.record.showing.selectors`.)
TAKEN = {"allow_foreign", "format", "help", "machine", "processes", "save", "timeout"}
TAKEN |= {"beyond", "by", "caption", "chart", "columns", "experiment", "fit", "options", "rows"}
TAKEN |= {"marked", "series", "table", "unfold", "value", "variant", "variants", "where", "x", "y"}
TAKEN |= {"beside", "ceiling", "edges", "even", "expected", "itemsize", "kinds", "labels", "names"}
TAKEN |= {"first", "views", "work"}
_held: ContextVar[Sources | None] = ContextVar("anatomy_sources", default=None)
FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True)
class Parameter:
    """One parameter of an experiment."""

    name: str
    type: type  # int, float, str or bool; of a choice, the type of the choices
    default: Any
    choices: tuple | None = None  # the values of a `Literal`
    help: str = ""  # from the docstring's Args section, with its unit, or from `SHARED_HELP`
    optional: bool = False  # None is a value too, as in `int | None`
    bounds: Between | None = None  # of a number, as its annotation has them

    def convert(self, value: Any) -> Any:
        """`value`, which may be text from a command line, as this parameter's type; BadParameter,
        which says what could be, where that is not possible."""
        if value is None or (self.optional and value in ("none", "None")):
            if self.optional:
                return None
            raise BadParameter(f"{self.name} is None; {self._wanted()}.")
        hint = ""
        if self.choices is not None:
            for choice in self.choices:
                if str(choice) == value or (type(choice) is type(value) and choice == value):
                    return choice
            names = [str(choice) for choice in self.choices]
            near = close_names(_shortened(value).strip("'"), names)
            hint = f" Did you mean {near[0]}?" if near else ""
        elif self.type is str and isinstance(value, str):
            if self.name == "device":
                host.parse_device(value)
            return value
        elif self.type is bool and isinstance(value, bool | str):
            if (word := str(value).strip().casefold()) in FLAGS:
                return FLAGS[word]
        elif self.type in (int, float) and not isinstance(value, bool):
            with suppress(ValueError, TypeError, OverflowError):
                number = self.type(value)
                whole = isfinite(number) and (isinstance(value, str) or number == value)
                if whole and (self.bounds is None or number in self.bounds):
                    return number
        raise BadParameter(f"{self.name}={_shortened(value)}: {self._wanted()}.{hint}")

    def _wanted(self) -> str:
        if self.choices is not None:
            return f"it must be one of {', '.join(str(choice) for choice in self.choices)}"
        kinds = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
        within = f" {self.bounds}" if self.bounds else ""
        return f"it must be {kinds[self.type]}{within}{' or none' if self.optional else ''}"


def _shortened(value: Any) -> str:
    """A value for a message, which may be of any type and size."""
    try:
        return reprlib.repr(value)
    except ValueError:  # Python prints no whole number of thousands of digits
        return "a number too long to print"


@dataclass(frozen=True)
class Signature:
    """What the source of one experiment declares."""

    name: str  # `topic.function`, as pages and commands write it
    module: str  # dotted, such as `anatomy.chapters.memory_layout.contiguity`
    function: str  # its name in the module
    summary: str  # first paragraph of the docstring
    parameters: list[Parameter] = field(default_factory=list)
    # From here on what the decorator is told, see `anatomy.record.declare.experiment`.
    page: str | None = None
    command: str | None = None
    timeout_s: float = TIMEOUT_S
    files: tuple[str, ...] = ()
    processes: int = PROCESSES
    on_request: bool = False

    @property
    def defaults(self) -> dict[str, Any]:
        """Every parameter with its default."""
        return {parameter.name: parameter.default for parameter in self.parameters}

    @property
    def regular(self) -> str:
        """The command that every experiment has: `topic-what`."""
        return self.name.replace(".", "-").replace("_", "-")

    @property
    def commands(self) -> tuple[str, ...]:
        """All that it is typed as: first what is listed, last its name."""
        declared = self.command or self.regular
        first = declared if " " in declared else self.regular  # a chapter's own keeps its place
        return tuple(dict.fromkeys((first, declared, self.regular, f"run {self.name}", self.name)))

    def not_default(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the parameters whose value is not the default."""
        defaults = self.defaults
        return {name: value for name, value in params.items() if value != defaults.get(name)}

    def title(self, params: Mapping[str, Any]) -> str:
        """One call for a person: `contiguity.bench dtype=bf16`."""
        given = self.not_default(params).items()
        return " ".join([self.name, *(f"{name}={value}" for name, value in given)])

    def words(self, params: Mapping[str, Any]) -> str:
        """One call as commands take it: `contiguity.bench --dtype bf16`."""
        given = self.not_default(params).items()
        options = (f"--{name.replace('_', '-')} {value}" for name, value in given)
        return " ".join([self.name, *options])

    def bind(self, /, **given: Any) -> dict[str, Any]:
        """All parameters: those given, converted to their types, and the defaults of the rest.
        Raises UnknownName for a parameter that there is not, and BadParameter as `convert` does."""
        known = {parameter.name: parameter for parameter in self.parameters}
        kind = f"parameter of {self.name} called"
        asked = [(lookup(kind, name, known), value) for name, value in given.items()]
        try:
            converted = {parameter.name: parameter.convert(value) for parameter, value in asked}
        except BadParameter as error:
            raise BadParameter(f"{self.name}: {error}") from None
        return self.defaults | converted


def signature(name: str, root: Path | None = None) -> Signature:
    """The experiment called `name`; UnknownName, with the closest, where there is none."""
    return lookup("experiment", name, experiments(root))


def experiments(root: Path | None = None) -> Mapping[str, Signature]:
    """Every experiment of the package in `root`, by default this one, in order of name;
    AnatomyError where a file does not parse, or declares something that is not a literal."""
    root = PACKAGE if root is None else Path(root).resolve()
    return MappingProxyType(_experiments(root.name, sources(root)))


def sources(root: Path) -> Sources:
    """Every Python file of a package: path relative to it, and content; sorted."""
    if (held := _held.get()) is not None and root == PACKAGE:
        return held
    files = sorted(root.rglob("*.py"))
    return tuple((path.relative_to(root).as_posix(), path.read_bytes()) for path in files)


def declaring(name: str) -> Sources:
    """The files of this package without those that declare experiments and none called `name`: to
    read what one of them is, a process need not parse all others."""
    told, wanted = f"@{DECORATOR}".encode(), f'"{name}"'.encode()
    return tuple(
        (path, text) for path, text in sources(PACKAGE) if told not in text or wanted in text
    )


@contextmanager
def unchanging(files: Sources | None = None) -> Iterator[Sources]:
    """Have `sources` of this package return these files, by default those that are there now: a
    build asks for them some thousand times."""
    token = _held.set(sources(PACKAGE) if files is None else files)
    try:
        yield _held.get()
    finally:
        _held.reset(token)


@remembered
def _experiments(package: str, files: tuple[tuple[str, bytes], ...]) -> dict[str, Signature]:
    """Experiments of a package with these files; only an edit makes them be read again."""
    modules = Modules(package, files)
    found: dict[str, Signature] = {}
    for module, text in modules.texts.items():
        if f"@{DECORATOR}".encode() not in text:
            continue
        scope = _Scope(modules, module)
        for node in chain.from_iterable(modules.module(module).names.values()):
            if not isinstance(node, ast.FunctionDef):
                continue
            for decorator in filter(is_experiment, node.decorator_list):
                declared = _read(node, decorator, scope)
                if known := found.get(declared.name):
                    already = f"{known.module} has an experiment called {known.name} already"
                    raise scope.error(node, already)
                found[declared.name] = declared
    return dict(sorted(found.items()))


def _read(node: ast.FunctionDef, decorator: ast.expr, scope: "_Scope") -> Signature:
    told = decorator if isinstance(decorator, ast.Call) else ast.Call(decorator, [], [])
    name = scope.value(told.args[0]) if len(told.args) == 1 else None
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise scope.error(
            node, f'{node.name} needs a name of two words: @{DECORATOR}("topic.{node.name}")'
        )
    doc = ast.get_docstring(node) or ""
    helps = SHARED_HELP | arguments(doc)
    plain = node.args
    for argument in plain.args + plain.kwonlyargs:
        if argument.arg in TAKEN:
            what = f"{name} has a parameter called {argument.arg}, which pages and commands take"
            raise scope.error(argument, f"{what} for themselves; choose another name")
    if plain.vararg or plain.kwarg or plain.posonlyargs:
        raise scope.error(node, f"{name} must name every parameter (no *args, **kwargs or /)")
    defaults = [None] * (len(plain.args) - len(plain.defaults)) + plain.defaults + plain.kw_defaults
    parameters = []
    for argument, default in zip(plain.args + plain.kwonlyargs, defaults, strict=True):
        if default is None or argument.annotation is None:
            raise scope.error(argument, f"{name}({argument.arg}) needs a type and a default")
        parameters.append(_parameter(argument, default, helps.get(argument.arg, ""), scope))
    declared = {keyword.arg: scope.value(keyword.value) for keyword in told.keywords}
    module = f"{scope.modules.name}.{scope.name}"
    found = Signature(name, module, node.name, summary(doc), parameters, **declared)
    if type(found.processes) is not int or found.processes < 1:
        raise scope.error(node, f"{name} has processes={found.processes!r}; it must be 1 or more")
    return found


def summary(doc: str) -> str:
    """First paragraph of a docstring as one line."""
    return " ".join(cleandoc(doc).split("\n\n", 1)[0].split())


def arguments(doc: str) -> dict[str, str]:
    """Help of each argument in the Args section, by name, each as one line."""
    section = SECTION.search(f"{cleandoc(doc)}\n")
    _, *found = ENTRY.split(dedent(section[1])) if section else [""]
    pairs = zip(found[::2], found[1::2], strict=True)
    return {name: " ".join(text.split()) for name, text in pairs}


def _parameter(argument: ast.arg, default: ast.expr, help: str, scope: "_Scope") -> Parameter:
    members = _members(argument.annotation, scope)
    types = {member for member in members if isinstance(member, type)}
    bounds = next((each for each in members if isinstance(each, Between)), None)
    no_choice = (type, Between, type(None))
    choices = tuple(each for each in members if not isinstance(each, no_choice))
    kinds = types or {type(choice) for choice in choices}
    if len(kinds) != 1 or not kinds <= {*TYPES.values()} or (types and choices):
        raise scope.error(
            argument,
            f"the type of {argument.arg}, {ast.unparse(argument.annotation)}, is none of int, "
            "float, str, bool, Literal[...] of one type, Annotated[int or float, Between(least, "
            "most)], or one of these with | None",
        )
    value, kind = scope.value(default), kinds.pop()
    possible = None in members if value is None else type(value) is kind
    if possible and value is not None:
        possible = value in (choices or bounds or (value,))
    if not possible:
        raise scope.error(argument, f"the default {value!r} of {argument.arg} is not of its type")
    return Parameter(argument.arg, kind, value, choices or None, help, None in members, bounds)


def _members(annotation: ast.expr, scope: "_Scope") -> list[Any]:
    """What an annotation is the union of: types (`object` for any other), values of a `Literal`,
    bounds of a number, and None."""
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        return _members(annotation.left, scope) + _members(annotation.right, scope)
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return _members(ast.parse(annotation.value, mode="eval").body, scope)  # a quoted type
    if isinstance(annotation, ast.Constant) and annotation.value is None:
        return [None]
    if isinstance(annotation, ast.Subscript):
        name = ast.unparse(annotation.value).rpartition(".")[2]
        if name == "Optional":
            return [*_members(annotation.slice, scope), None]
        if name == "Literal":
            values = scope.value(annotation.slice)
            return list(values) if isinstance(values, tuple) else [values]
        if name == "Annotated":
            kind, *told = annotation.slice.elts
            return _members(kind, scope) + [each for one in told for each in _members(one, scope)]
    if isinstance(annotation, ast.Call) and ast.unparse(annotation.func).endswith("Between"):
        return [Between(*map(scope.value, annotation.args))]
    name = ast.unparse(annotation)
    if isinstance(annotation, ast.Name) and name not in TYPES and (found := scope.definition(name)):
        return _members(*found)
    return [TYPES.get(name, object)]


@dataclass(frozen=True)
class _Scope:
    """A module, in which declarations are read: constants may stand in others of its package."""

    modules: Modules
    name: str

    def error(self, node: ast.AST, what: str) -> AnatomyError:
        """An error that names the line of `node`."""
        file = self.modules.files[self.name]
        return AnatomyError(f"{self.modules.name}/{file}:{node.lineno}: {what}.")

    def definition(self, name: str) -> "tuple[ast.expr, _Scope] | None":
        """The expression that a module-level name stands for, and the scope to read it in."""
        for (at, found), _ in sorted(self.modules.targets(self.name, (name,))):
            for node in self.modules.module(at).names[found]:
                if isinstance(node, ast.Assign | ast.AnnAssign):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    if any(isinstance(each, ast.Name) and each.id == found for each in targets):
                        return node.value, _Scope(self.modules, at)
        return None

    def value(self, node: ast.expr) -> Any:
        """The value of a literal, of a tuple of literals, or of a constant's name."""
        if isinstance(node, ast.Name) and (found := self.definition(node.id)):
            expression, scope = found
            return scope.value(expression)
        if isinstance(node, ast.Tuple | ast.List):
            return tuple(self.value(item) for item in node.elts)
        try:
            return ast.literal_eval(node)
        except ValueError:
            raise self.error(
                node, f"{ast.unparse(node)} is not a literal, so it can't be read without running"
            ) from None
