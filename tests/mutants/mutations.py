"""One-line mutants of a source file: small changes of meaning, each made in the text itself.

Left out is what no behaviour depends on: docstrings, annotations, the texts of errors and logs,
`__all__`, `__repr__`, imports for types alone. What stands in an f-string is left out as well:
Python 3.11 does not say where it stands.
"""

import ast
import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

COMPARED = {
    **{ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")},
    **{ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.In: ("in", "not in")},
    **{ast.Is: ("is", "is not"), ast.IsNot: (r"is\s+not", "is"), ast.NotIn: (r"not\s+in", "in")},
}
COMPUTED = {
    **{ast.Add: (r"\+", "-"), ast.Sub: ("-", "+"), ast.Mult: (r"\*", "/"), ast.Div: ("/", "*")},
    **{ast.FloorDiv: ("//", "/"), ast.Mod: ("%", "*"), ast.Pow: (r"\*\*", "*")},
}
OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any"}
WORD = re.compile(r"[A-Za-z][\w.-]*$")  # a key or a verdict; a message has spaces
SAYING = re.compile(r"(Error|Exception|Warning|Stopped)$|^(print|warn|log|debug|info|warning)$")
# Arguments that change no result here: a text, what another platform needs, and what would only say
# that we were wrong, as `assert` does.
UNCHANGED = ("help", "encoding", "frozen", "strict")
UNSEEN = ("__repr__", "__str__", "_repr_html_")
DROPPED = (ast.AugAssign, ast.Raise, ast.Continue, ast.Break, ast.Delete)


@dataclass(frozen=True)
class Mutant:
    """A file with `text[start:end]` replaced by `put`. `was` and `now` are the lines concerned."""

    file: str
    line: int
    start: int
    end: int
    put: str
    was: str
    now: str

    def within(self, text: str) -> str:
        return text[: self.start] + self.put + text[self.end :]

    def is_program(self, text: str) -> bool:
        with contextlib.suppress(SyntaxError):
            return bool(ast.parse(self.within(text)))
        return False

    def __str__(self) -> str:
        return f"{self.file}:{self.line}  {self.was}  ->  {self.now}"


def mutants(file: str, text: str) -> list[Mutant]:
    """All one-line mutants of a source file; some are no programs."""
    found = {}
    for start, end, put in Source(text).edits():
        lost = text.count("\n", start, end) - put.count("\n")
        if lost > 0:  # the lines below keep their numbers
            put = put + "\n" * lost if put in ("pass", "") else f"({put}{chr(10) * lost})"
        first = text.rfind("\n", 0, start) + 1
        last = (text + "\n").find("\n", end)
        was, now = (
            " ".join(part.split())
            for part in (text[first:last], text[first:start] + put + text[end:last])
        )
        line = text.count("\n", 0, start) + 1
        mutant = Mutant(file, line, start, end, put, was, now)
        found.setdefault((line, now), mutant)
    return list(found.values())


class Source:
    """A parsed text, whose nodes are found again in it."""

    def __init__(self, text: str):
        self.text, self.tree = text, ast.parse(text)
        self.starts, at = [], 0
        for line in text.splitlines(keepends=True):
            self.starts.append((at, line))
            at += len(line)

    def place(self, line: int, byte: int) -> int:
        at, written = self.starts[line - 1]
        return at + len(written.encode()[:byte].decode())

    def start(self, node: ast.AST) -> int:
        return self.place(node.lineno, node.col_offset)

    def end(self, node: ast.AST) -> int:
        return self.place(node.end_lineno, node.end_col_offset)

    def edits(self) -> Iterator[tuple[int, int, str]]:
        """(start, end, what to put there) of every mutant; some do not compile."""
        yield from self.of(self.tree, set())

    def of(self, node: ast.AST, bound: set[str]) -> Iterator[tuple[int, int, str]]:
        """The edits of a node and of what is in it; `bound` are names that have a value by now."""
        if skipped(node):
            return
        if isinstance(node, ast.stmt):
            yield from self.statement(node, bound)
        if isinstance(node, ast.FunctionDef):
            bound = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
        yield from self.expression(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns") or isinstance(node, ast.Raise):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not is_docstring(node, child):
                    yield from self.of(child, bound)

    def statement(self, node: ast.stmt, bound: set[str]) -> Iterator[tuple[int, int, str]]:
        whole = self.start(node), self.end(node)
        if isinstance(node, DROPPED) or (isinstance(node, ast.Expr) and called(node.value)):
            yield (*whole, "pass")
        if isinstance(node, ast.Assign):
            names = {t.id for t in node.targets if isinstance(t, ast.Name)}
            stored = all(isinstance(t, ast.Attribute | ast.Subscript) for t in node.targets)
            if stored or (names and names <= bound):
                yield (*whole, "pass")
            bound |= names

    def expression(self, node: ast.AST) -> Iterator[tuple[int, int, str]]:
        match node:
            case ast.Compare():
                sides = [node.left, *node.comparators]
                for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
                    yield from self.between(left, right, *COMPARED[type(op)])
            case ast.BoolOp():
                words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
                for left, right in zip(node.values, node.values[1:], strict=False):
                    yield from self.between(left, right, *words)
            case ast.BinOp() if type(node.op) in COMPUTED and not (text_(node.left, node.right)):
                yield from self.between(node.left, node.right, *COMPUTED[type(node.op)])
            case ast.AugAssign() if type(node.op) in COMPUTED:
                yield from self.between(node.target, node.value, *COMPUTED[type(node.op)])
            case ast.UnaryOp(op=ast.Not() | ast.USub()):
                length = 3 if isinstance(node.op, ast.Not) else 1
                yield self.start(node), self.start(node) + length, ""
            case ast.Constant():
                for put in constants(node, self.text[self.start(node) : self.end(node)]):
                    yield self.start(node), self.end(node), put
            case ast.Subscript(slice=ast.Constant(value=0)):
                yield self.start(node.slice), self.end(node.slice), "-1"
            case ast.Subscript(slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1))):
                yield self.start(node.slice), self.end(node.slice), "0"
            case ast.Tuple() | ast.List() | ast.Set():
                yield from self.members(node)
            case ast.Call():
                if isinstance(node.func, ast.Name) and node.func.id in OPPOSITES:
                    yield self.start(node.func), self.end(node.func), OPPOSITES[node.func.id]
                for each in node.keywords:
                    yield from self.keyword(node, each)
            case ast.If() | ast.IfExp():
                for put in ("True", "False"):
                    yield self.start(node.test), self.end(node.test), put
            case ast.While(test=ast.expr()) if not isinstance(node.test, ast.Constant):
                yield self.start(node.test), self.end(node.test), "False"
            case ast.comprehension():
                for test in node.ifs:
                    for put in ("True", "False"):
                        yield self.start(test), self.end(test), put

    def between(self, left, right, old: str, new: str) -> Iterator[tuple[int, int, str]]:
        """Another operator between two operands; parentheses may stand there as well."""
        word = rf"\b{old}\b" if old[0].isalpha() else old
        found = re.compile(word).search(self.text, self.end(left), self.start(right))
        if found:
            yield *found.span(), new

    def members(self, node: ast.Tuple | ast.List | ast.Set) -> Iterator[tuple[int, int, str]]:
        """A row of constants without one of them."""
        if len(node.elts) < 2 or not all(isinstance(each, ast.Constant) for each in node.elts):
            return
        pairs = zip(node.elts, node.elts[1:], strict=False)
        for each, after in pairs if len(node.elts) > 2 else ():
            yield self.start(each), self.start(after), ""
        if len(node.elts) == 2:
            (a, b), comma = node.elts, "," * isinstance(node, ast.Tuple)
            yield self.start(a), self.end(b), f"{self.text[self.start(b) : self.end(b)]}{comma}"
            yield self.end(a), self.end(b), comma
        else:
            yield self.end(node.elts[-2]), self.end(node.elts[-1]), ""

    def keyword(self, node: ast.Call, gone: ast.keyword) -> Iterator[tuple[int, int, str]]:
        """A call without one of its keyword arguments."""
        if gone.arg is None or gone.arg in UNCHANGED:
            return
        given = sorted([*node.args, *node.keywords], key=self.start)
        at = given.index(gone)
        if at:
            yield self.text.rindex(",", 0, self.start(gone)), self.end(gone), ""
        else:
            yield self.start(gone), self.start(given[1]) if given[1:] else self.end(gone), ""


def skipped(node: ast.AST) -> bool:
    """Whether no behaviour hangs on a node, or nothing can be said of it."""
    match node:
        case ast.JoinedStr() | ast.Assert() | ast.Import() | ast.ImportFrom():
            return True
        case ast.FunctionDef(name=name):
            return name in UNSEEN
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.AugAssign(target=ast.Name(id="__all__")):
            return True
        case ast.If(test=test):
            return bool(re.search("TYPE_CHECKING|__main__", ast.unparse(test)))
        case ast.Call():
            return bool(SAYING.search(called(node)))
        case ast.keyword(arg=name):
            return name in UNCHANGED
    return False


def called(node: ast.AST) -> str:
    """The last word of a called function's name; empty for what is no call."""
    if not isinstance(node, ast.Call):
        return ""
    return getattr(node.func, "attr", getattr(node.func, "id", "a call"))


def is_docstring(parent: ast.AST, node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def text_(*operands: ast.AST) -> bool:
    """Whether texts are joined, of which every other operator makes a type error."""
    return any(
        isinstance(each, ast.JoinedStr)
        or (isinstance(each, ast.Constant) and isinstance(each.value, str))
        for each in operands
    )


def constants(node: ast.Constant, written: str) -> Iterator[str]:
    """Other constants in the place of one."""
    match node.value:
        case bool():
            yield str(not node.value)
        case int() | float() | complex():
            yield "1" if node.value == 0 else "0"
            yield from (f"({written} + 1)", f"({written} * 2)") if node.value else ()
        case str() if WORD.match(node.value):
            yield repr(f"{node.value}x")
