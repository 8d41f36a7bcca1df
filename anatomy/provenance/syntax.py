"""Python syntax trees without what differs between versions of Python or does nothing at run time.

`serialized` gives a text that is equal exactly when two pieces of code would run alike;
`names_used` and `bound_names` tell which names of its module a piece of code needs and makes.
"""

import ast
from collections.abc import Iterable, Iterator

from anatomy.signatures import is_experiment

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# Fields that differ between versions, or that carry no meaning at run time.
IGNORED = {"ctx", "kind", "type_comment", "type_ignores", "returns"}
NAMED_MODULE = "<module>"  # head of the chain that a text such as "anatomy.counts" gives


def serialized(node: ast.AST) -> str:
    """Text of a syntax tree: node types and their fields, in the fields' order.

    Left out are empty fields, positions, comments, texts that stand alone (docstrings), the
    annotations of functions and the `@experiment` decorator. So a field that a later version of
    Python adds changes nothing until it is used.
    """
    fields = []
    for name, value in ast.iter_fields(node):
        if name in IGNORED or (name == "annotation" and isinstance(node, ast.arg)):
            continue
        if name == "decorator_list":
            value = [decorator for decorator in value if not is_experiment(decorator)]
        if name in ("body", "orelse", "finalbody") and isinstance(value, list):
            value = [statement for statement in value if not is_text(statement)]
        if name == "values" and isinstance(node, ast.JoinedStr):
            value = _joined(value)
        if value is None or value == []:
            continue
        if isinstance(value, list):
            fields.append(f"{name}=[{','.join(map(_item, value))}]")
        else:
            fields.append(f"{name}={_item(value)}")
    if isinstance(node, ast.Constant) and node.value is None:
        fields = ["None"]
    return f"{type(node).__name__}({','.join(fields)})"


def _item(value: object) -> str:
    """One field's value. `ascii`, because which characters `repr` prints changes with Unicode."""
    return serialized(value) if isinstance(value, ast.AST) else ascii(value)


def _joined(parts: list[ast.expr]) -> list[ast.expr]:
    """Parts of an f-string with neighbouring texts made one: versions of Python split them apart
    differently."""
    merged: list[ast.expr] = []
    for part in parts:
        text = isinstance(part, ast.Constant)
        if text and not part.value:
            continue
        if text and merged and isinstance(merged[-1], ast.Constant):
            merged[-1] = ast.Constant(merged[-1].value + part.value)
        else:
            merged.append(part)
    return merged


def is_text(statement: ast.stmt) -> bool:
    """Whether a statement is a text that stands alone, such as a docstring."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def names_used(
    node: ast.AST, package: str, hidden: frozenset[str] = frozenset()
) -> Iterator[tuple[str, ...]]:
    """Dotted names that a piece of code takes from its module, as tuples: `("counts", "copy")`.

    Args:
        node: The code.
        package: Name of the package; a text that reads like one of its modules, `package.module`,
            may be imported by that name, and gives `(NAMED_MODULE, "module")`.
        hidden: Names that an enclosing function binds, and so does not take from the module.
    """
    if isinstance(node, ast.Attribute):
        chain, inner = [node.attr], node.value
        while isinstance(inner, ast.Attribute):
            chain.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            if inner.id not in hidden:
                yield (inner.id, *reversed(chain))
        else:
            yield from names_used(inner, package, hidden)
    elif isinstance(node, ast.Name):
        if node.id not in hidden:
            yield (node.id,)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str) and node.value.startswith(f"{package}."):
            yield (NAMED_MODULE, node.value.removeprefix(f"{package}."))
    elif isinstance(node, (*FUNCTIONS, ast.Lambda)):
        for decorator in getattr(node, "decorator_list", []):
            if not is_experiment(decorator):
                yield from names_used(decorator, package, hidden)
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            yield from names_used(default, package, hidden)
        body = node.body if isinstance(node.body, list) else [node.body]
        inside = hidden | _arguments(node.args)
        if isinstance(node, FUNCTIONS):
            inside |= bound_names(body) - _declared_global(body)
        for statement in body:
            if not is_text(statement):
                yield from names_used(statement, package, inside)
    else:
        for child in ast.iter_child_nodes(node):
            yield from names_used(child, package, hidden)


def bound_names(statements: Iterable[ast.AST]) -> frozenset[str]:
    """Names that statements bind in their own scope, but for those that an import binds.

    The variable of a comprehension is not among them: outside it, the name may mean the module's.
    """
    found: set[str] = set()
    waiting = list(statements)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            found.add(node.name)
        if isinstance(node, SCOPES):
            continue  # what they bind inside is theirs; a walrus in a default is too rare to mind
        if isinstance(node, ast.AnnAssign) and node.value is None:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        name = getattr(node, "rest", None) or getattr(node, "name", None)
        if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar | ast.MatchMapping):
            found.update([name] if name else [])
        if isinstance(node, COMPREHENSIONS):
            waiting += [each for each in ast.walk(node) if isinstance(each, ast.NamedExpr)]
        else:
            waiting += ast.iter_child_nodes(node)
    return frozenset(found)


def _arguments(arguments: ast.arguments) -> frozenset[str]:
    """Names of all arguments."""
    return frozenset(each.arg for each in ast.walk(arguments) if isinstance(each, ast.arg))


def _declared_global(statements: Iterable[ast.stmt]) -> set[str]:
    """Names that a function declares to be its module's."""
    return {
        name
        for statement in statements
        for node in ast.walk(statement)
        if isinstance(node, ast.Global)
        for name in node.names
    }
