"""Python code as a text that is equal for two pieces of code exactly when they run alike: without
comments, docstrings, annotations of functions, the `@experiment` decorator, texts of errors and
warnings, names of locals. `ast.dump` won't do: it prints fields of later versions of Python."""

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

Chain = tuple[str, ...]  # a dotted name: ("counts", "copy_bytes")
Refer = Callable[[Chain, bool], str]

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# Fields that differ between versions, or that carry no meaning at run time.
IGNORED = {"ctx", "kind", "simple"}
NAMED_MODULE = "<module>"  # head of the chain that a text such as "anatomy.table.formulas" gives
# Who calls one of these sees the names of local variables; `vars` and `dir` only without argument.
SEES_LOCALS, SEES_LOCALS_BARE = {"locals", "eval", "exec"}, {"vars", "dir"}
WARNINGS = "warnings"  # lists of this name hold words
DECORATOR = "experiment"


@dataclass
class _Scope:
    """Names that a function, a class or a comprehension binds; local ones get a number each."""

    depth: int
    exact: frozenset[str] = frozenset()  # arguments, which are called by name, and attributes
    local: frozenset[str] = frozenset()
    of_class: bool = False
    numbers: dict[str, int] = field(default_factory=dict)

    def token(self, name: str) -> str | None:
        """What stands for `name` if this scope binds it. No identifier begins with a `$`."""
        if name in self.exact:
            return name
        if name not in self.local:
            return None
        return f"${self.depth}.{self.numbers.setdefault(name, len(self.numbers))}"


Scopes = tuple[_Scope, ...]


def normalised(
    statement: ast.stmt,
    own_name: str | None = None,
    refer: Refer = lambda chain, called: ".".join(chain),
    package: str = "",
) -> str:
    """The text of a statement at the top level of a module. `own_name`, which it defines, does not
    count, and other names that it binds count by their order; without one all count, as of a
    script. `refer` gives the text for a dotted name that is not local, and is told whether it is
    called right there. A text that reads like a module of `package` is referred to as
    `(NAMED_MODULE, "module")`."""
    return _Writer(own_name, refer, package).text(statement, ())


class _Writer:
    """Writes one top-level statement."""

    def __init__(self, own_name: str | None, refer: Refer, package: str) -> None:
        self.own_name, self.refer, self.package = own_name, refer, package
        self.others: dict[str, int] = {}  # further names that the statement binds

    def text(self, node: ast.AST, scopes: Scopes) -> str:
        """Node types and their fields, in the fields' order, empty fields left out."""
        if _is_place(node):
            return "$place"
        special = getattr(self, f"_{type(node).__name__}", None)
        if special is not None and (text := special(node, scopes)) is not None:
            return text
        return self._plain(node, scopes)

    def _plain(self, node: ast.AST, scopes: Scopes, **instead: object) -> str:
        fields = []
        for name, value in ast.iter_fields(node):
            value = instead.get(name, value)
            if name in IGNORED or value is None or value == []:
                continue
            if isinstance(value, list):
                if name in ("body", "orelse", "finalbody"):
                    value = [each for each in value if not is_text(each)]
                items = (self._item(each, scopes) for each in value)
                if value := ",".join(item for item in items if item):
                    fields.append(f"{name}=[{value}]")
            else:
                fields.append(f"{name}={self._item(value, scopes)}")
        return f"{type(node).__name__}({','.join(fields)})"

    def _item(self, value: object, scopes: Scopes) -> str:
        """One field's value. `ascii`: which characters `repr` prints changes with Unicode."""
        if isinstance(value, ast.AST):
            return self.text(value, scopes)
        return value if isinstance(value, _Token) else ascii(value)

    # Names.

    def _bound(self, name: str, scopes: Scopes) -> str | None:
        """What stands for a name that one of the scopes binds; None where none does."""
        for place, scope in enumerate(reversed(scopes)):
            # What a class binds is seen in its own body, and not in its methods.
            if (not scope.of_class or place == 0) and (token := scope.token(name)):
                return token
        return None

    def _binding(self, name: str, scopes: Scopes) -> str:
        """What stands for a name where it is bound."""
        if token := self._bound(name, scopes):
            return token
        if scopes:  # declared global
            return self.refer((name,), False)
        if self.own_name is None:
            return name
        if name == self.own_name:
            return "$self"
        return f"$other{self.others.setdefault(name, len(self.others))}"

    def _Name(self, node: ast.Name, scopes: Scopes, *, called: bool = False) -> str:
        if isinstance(node.ctx, ast.Load):
            return self._bound(node.id, scopes) or self.refer((node.id,), called)
        return self._binding(node.id, scopes)

    def _Attribute(self, node: ast.Attribute, scopes, *, called: bool = False) -> str | None:
        chain, inner = [node.attr], node.value
        while isinstance(inner, ast.Attribute):
            chain.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name) and not self._bound(inner.id, scopes):
            return self.refer((inner.id, *reversed(chain)), called)
        return None

    def _Call(self, node: ast.Call, scopes: Scopes) -> str | None:
        if not isinstance(node.func, ast.Name | ast.Attribute):
            return None
        name = self._Name if isinstance(node.func, ast.Name) else self._Attribute
        function = name(node.func, scopes, called=True)
        return function and self._plain(node, scopes, func=_Token(function))

    def _Constant(self, node: ast.Constant, scopes: Scopes) -> str | None:
        if node.value is None:
            return "None"
        if isinstance(node.value, str) and self.package:
            head, dot, module = node.value.partition(".")
            if dot and head == self.package:
                return f"{self.refer((NAMED_MODULE, module), False)}"
        return None

    def _Global(self, node: ast.Global | ast.Nonlocal, scopes: Scopes) -> str:
        names = sorted(self._binding(name, scopes) for name in node.names)
        return f"{type(node).__name__}({','.join(names)})"

    _Nonlocal = _Global

    def _ExceptHandler(self, node, scopes: Scopes) -> str | None:
        field = "rest" if isinstance(node, ast.MatchMapping) else "name"
        name = getattr(node, field)
        return name and self._plain(node, scopes, **{field: _Token(self._binding(name, scopes))})

    _MatchAs = _MatchStar = _MatchMapping = _ExceptHandler

    # Scopes.

    def _FunctionDef(self, node: ast.FunctionDef, scopes: Scopes) -> str:
        inner = (*scopes, function_scope(node, len(scopes)))
        body = [self.text(each, inner) for each in node.body if not is_text(each)]
        decorators = [each for each in node.decorator_list if not is_experiment(each)]
        parts = [
            type(node).__name__,
            self._binding(node.name, scopes),
            self._arguments(node.args, scopes),
            *(self.text(each, scopes) for each in decorators),
        ]
        return f"{'|'.join(parts)}:[{','.join(filter(None, body))}]"

    _AsyncFunctionDef = _FunctionDef

    def _Lambda(self, node: ast.Lambda, scopes: Scopes) -> str:
        body = self.text(node.body, (*scopes, function_scope(node, len(scopes))))
        return f"Lambda|{self._arguments(node.args, scopes)}:{body}"

    def _arguments(self, node: ast.arguments, scopes: Scopes) -> str:
        """Arguments with their defaults, which belong to the scope around the function."""

        def names(several: Iterable[ast.arg | None]) -> str:
            return ",".join(each.arg for each in several if each)

        parts = [names(node.posonlyargs), names(node.args), names([node.vararg])]
        parts += [names(node.kwonlyargs), names([node.kwarg])]
        for defaults in (node.defaults, node.kw_defaults):
            texts = [self.text(each, scopes) if each else "-" for each in defaults]
            parts.append(",".join(texts))
        return f"({';'.join(parts)})"

    def _ClassDef(self, node: ast.ClassDef, scopes: Scopes) -> str:
        inner = (*scopes, _Scope(len(scopes), exact=bound_names(node.body), of_class=True))
        body = [self.text(each, inner) for each in node.body if not is_text(each)]
        around = [*node.decorator_list, *node.bases, *node.keywords]
        parts = ["ClassDef", self._binding(node.name, scopes)]
        parts += [self.text(each, scopes) for each in around]
        return f"{'|'.join(parts)}:[{','.join(filter(None, body))}]"

    def _ListComp(self, node, scopes: Scopes) -> str:
        targets = bound_names([each.target for each in node.generators])
        inner = (*scopes, _Scope(len(scopes), local=targets))
        parts = [type(node).__name__]
        for place, each in enumerate(node.generators):
            # The first iterable is evaluated in the scope around the comprehension.
            parts.append(self.text(each.iter, inner if place else scopes))
            parts.append(self.text(each.target, inner))
            parts += [self.text(test, inner) for test in each.ifs] + [str(each.is_async)]
        made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        return f"{'|'.join(parts)}:[{','.join(self.text(each, inner) for each in made)}]"

    _SetComp = _DictComp = _GeneratorExp = _ListComp

    # What only words or places.

    def _Raise(self, node: ast.Raise, scopes: Scopes) -> str | None:
        if not isinstance(node.exc, ast.Call):
            return None
        return self._plain(node, scopes, exc=node.exc.func)

    def _Assert(self, node: ast.Assert, scopes: Scopes) -> str:
        return f"Assert({self.text(node.test, scopes)})"

    def _Expr(self, node: ast.Expr, scopes: Scopes) -> str | None:
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return None
        holder = call.func.value
        of_words = WARNINGS in (getattr(holder, "attr", None), getattr(holder, "id", None))
        if call.func.attr == "add_note" or (of_words and call.func.attr in ("append", "extend")):
            return ""
        return None

    def _AnnAssign(self, node: ast.AnnAssign, scopes: Scopes) -> str | None:
        if scopes and scopes[-1].of_class:
            return None  # a dataclass reads it
        if node.value is None:
            return ""
        return self.text(ast.Assign([node.target], node.value), scopes)

    def _Import(self, node: ast.Import | ast.ImportFrom, scopes: Scopes) -> str:
        """Its names count where they are used; of the package's modules the places do not."""
        origin = node.module or "" if isinstance(node, ast.ImportFrom) else None
        found = []
        for alias in node.names:
            module = alias.name if origin is None else origin
            outside = not getattr(node, "level", 0) and module.split(".")[0] != self.package
            if self.own_name is None:  # nobody says what the names of a script stand for
                bound = f"{alias.name} as {alias.asname or alias.name}"
                found.append(f"Import({module * outside} {bound})")
            elif outside:
                found.append(f"Import({module})")
        return ",".join(dict.fromkeys(found))

    _ImportFrom = _Import

    def _JoinedStr(self, node: ast.JoinedStr, scopes: Scopes) -> str | None:
        """Neighbouring texts are made one: versions of Python split them apart differently."""
        merged: list[ast.expr] = []
        for part in node.values:
            text = isinstance(part, ast.Constant)
            if text and not part.value:
                continue
            if text and merged and isinstance(merged[-1], ast.Constant):
                merged[-1] = ast.Constant(merged[-1].value + part.value)
            else:
                merged.append(part)
        return self._plain(node, scopes, values=merged)


class _Token(str):
    """What stands for a name, where a field of a tree is written."""


def function_scope(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, depth: int) -> _Scope:
    """What a function binds: its arguments by name, all else by number."""
    body = node.body if isinstance(node.body, list) else [node.body]
    arguments = frozenset(each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg))
    # What is declared to be the module's, or an enclosing function's.
    outer = (each for each in _in_one_scope(body) if isinstance(each, ast.Global | ast.Nonlocal))
    local = bound_names(body) - arguments - {name for each in outer for name in each.names}
    inside = [each for statement in body for each in ast.walk(statement)]
    if any(map(_sees_locals, inside)):
        return _Scope(depth, exact=arguments | local)
    return _Scope(depth, exact=arguments, local=local)


def _is_place(node: ast.AST) -> bool:
    """Whether an expression is `Path(__file__)` or a folder above it: where the code lies."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr == "resolve" and _is_place(node.func.value)
    if isinstance(node, ast.Call):
        of_path = isinstance(node.func, ast.Name) and node.func.id == "Path"
        return of_path and ast.unparse(node) == "Path(__file__)"  # which takes long
    above = isinstance(node, ast.Attribute) and node.attr in ("parent", "parents")
    numbered = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute)
    return (above or numbered) and _is_place(node.value)


def _sees_locals(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    return node.func.id in SEES_LOCALS or (node.func.id in SEES_LOCALS_BARE and not node.args)


def bound_names(statements: Iterable[ast.AST]) -> frozenset[str]:
    """Names that statements bind in their own scope, but for those that an import binds, and the
    variable of a comprehension: outside it, the name may mean the module's."""
    found: set[str] = set()
    for node in _in_one_scope(statements):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            found.add(node.name)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar | ast.MatchMapping):
            name = getattr(node, "rest", None) or getattr(node, "name", None)
            found.update([name] if name else [])
        if isinstance(node, COMPREHENSIONS):
            inside = [each for each in ast.walk(node) if isinstance(each, ast.NamedExpr)]
            found.update(each.target.id for each in inside)
    return frozenset(found)


def _in_one_scope(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes that are evaluated in the statements' own scope; scopes inside are not entered."""
    waiting = list(statements)
    while waiting:
        node = waiting.pop()
        yield node
        # A walrus in a default of an inner function is too rare to mind.
        declared_alone = isinstance(node, ast.AnnAssign) and node.value is None
        if not isinstance(node, (*SCOPES, *COMPREHENSIONS)) and not declared_alone:
            waiting += ast.iter_child_nodes(node)


def is_text(statement: ast.stmt) -> bool:
    """Whether a statement is a text that stands alone, such as a docstring."""
    alone = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(alone, ast.Constant) and isinstance(alone.value, str)


def is_experiment(decorator: ast.expr) -> bool:
    """Whether a decorator is `@experiment`, called or bare, plain or as an attribute."""
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", None)
    return name == DECORATOR
