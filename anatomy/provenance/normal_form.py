"""Code without its words: what an error says, and what a function calls its own variables."""

import ast
import copy

from anatomy.provenance.syntax import FUNCTIONS, SCOPES, bound_names

WARNINGS = "warnings"  # a list of that name holds sentences for people


def normal_form(statement: ast.stmt) -> ast.stmt:
    """A copy of a top-level statement in which words do not count.

    What is raised keeps its type and loses its text, and so does a warning that is appended to a
    list of that name. Local variables of functions are numbered in the order of a walk through the
    tree. A variable that an inner scope binds too keeps its name, as parameters do, by which
    callers may pass them: to rename one of these is taken for a change.
    """
    statement = _Wordless().visit(copy.deepcopy(statement))
    for function in _outermost(statement):
        _number_locals(function)
    return statement


class _Wordless(ast.NodeTransformer):
    """Takes the sentences out of errors and warnings."""

    def visit_Raise(self, node: ast.Raise) -> ast.Raise:
        if isinstance(node.exc, ast.Call):
            node.exc = node.exc.func
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.Expr:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            into = call.func.value
            named = getattr(into, "attr", None) or getattr(into, "id", None)
            if (named, call.func.attr) == (WARNINGS, "append"):
                call.args = []
        return node


def _outermost(node: ast.AST) -> list[ast.AST]:
    """Functions and methods that are in no other function."""
    if isinstance(node, FUNCTIONS):
        return [node]
    return [inner for child in ast.iter_child_nodes(node) for inner in _outermost(child)]


def _number_locals(function: ast.AST) -> None:
    """Rename the variables that are this function's and nobody else's."""
    taken = {each.arg for each in ast.walk(function) if isinstance(each, ast.arg)}
    for node in ast.walk(function):
        if node is not function and isinstance(node, SCOPES):
            body = node.body if isinstance(node.body, list) else [node.body]
            taken |= bound_names(body)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            taken |= set(node.names)
        elif isinstance(node, ast.comprehension):
            taken |= {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
        elif isinstance(node, ast.Import | ast.ImportFrom):
            taken |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
    own = bound_names(function.body) - taken
    numbers: dict[str, str] = {}
    for statement in function.body:
        for node in ast.walk(statement):
            for field in ("id", "name"):
                if getattr(node, field, None) in own:
                    name = getattr(node, field)
                    setattr(node, field, numbers.setdefault(name, f"<{len(numbers)}>"))
