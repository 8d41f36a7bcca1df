"""Names and places make no number, and what they stand for does: a bug in renaming would make two
different codes equal, so Python's own bytecode is the judge."""

import ast
import os
import random
import shutil
import types
from copy import deepcopy
from functools import cache

import pytest

from anatomy.record import signatures
from anatomy.record.provenance import content
from anatomy.record.provenance.codehash import code_hash
from anatomy.record.provenance.syntax import WARNINGS, bound_names, normalised
from tests.record.provenance.test_codehash import toys as toys

SEED = random.SystemRandom().randrange(2**32)  # in the report of a failure, to be set here
THOROUGH = bool(os.environ.get("THOROUGH"))
SHARE = 1.0 if THOROUGH else 0.2  # of the locals of all functions, in turn
SLIPS = 6 if THOROUGH else 2  # of the pen, in each function

# Edits of the toy package that cost nothing: (what, file -> [(old, new), ...]); a file's new name
# is given as {"old.py": "new.py"} in MOVES.
HARMLESS = {
    "a helper renamed": {
        "toys/experiments/topic.py": [("def helper(", "def aide("), ("= helper(", "= aide(")]
    },
    "a constant renamed": {
        "toys/experiments/topic.py": [("SIZE = 4", "EXTENT = 4"), ("x + SIZE", "x + EXTENT")]
    },
    "a local renamed": {
        "toys/experiments/topic.py": [
            ("    shadowed = helper(m)", "    local = helper(m)"),
            ("sibling.brother, shadowed", "sibling.brother, local"),
        ]
    },
    "a helper of another module renamed": {
        "toys/counts.py": [("return _deep(x)", "return _far(x)"), ("def _deep(x)", "def _far(x)")]
    },
    "an import under another name": {
        "toys/experiments/topic.py": [
            ("functional as F", "functional as G"),
            ("late.inside(F.relu", "late.inside(G.relu"),
        ]
    },
    "a class renamed": {
        "toys/deep/inner.py": [("class Thing", "class Matter")],
        "toys/experiments/topic.py": [("import Thing as", "import Matter as")],
    },
    "a definition moved to another module": {
        "toys/counts.py": [("\n\ndef _deep(x):\n    return x\n", "from toys.late import _deep\n")],
        "toys/late.py": [("def inside", "def _deep(x):\n    return x\n\n\ndef inside")],
    },
    "definitions in another order": {
        "toys/counts.py": [
            (
                "def reached(x):\n    return _deep(x)\n\n\ndef _deep(x):\n    return x\n",
                "def _deep(x):\n    return x\n\n\ndef reached(x):\n    return _deep(x)\n",
            )
        ]
    },
    "an error worded": {
        "toys/counts.py": [
            ("return _deep(x)", "if x is ...:\n        raise KeyError('a')\n    return _deep(x)")
        ],
        "then toys/counts.py": [("KeyError('a')", "KeyError('b', x)")],
    },
    "a warning worded": {
        "toys/counts.py": [("return _deep(x)", "x.warnings.append('a')\n    return _deep(x)")],
        "then toys/counts.py": [("append('a')", "append(f'b{x}')")],
    },
    "an annotated local": {
        "toys/experiments/topic.py": [("    shadowed = helper(m)", "    shadowed: int = helper(m)")]
    },
    "a script named otherwise": {},
}
MOVES = {
    "a module renamed": (
        {"toys/counts.py": "toys/sums.py"},
        "import counts",
        "import sums as counts",
    ),
    "a module moved into a package": (
        {"toys/counts.py": "toys/deep/counts.py"},
        "from toys import counts",
        "from toys.deep import counts",
    ),
    "a package renamed": (
        {"toys/deep": "toys/depth"},
        "toys.deep",
        "toys.depth",
    ),
}


def hashed(toys) -> str:
    return code_hash("topic.measure", root=toys).hash


@pytest.mark.parametrize("what", [what for what, edits in HARMLESS.items() if edits])
def test_names_places_and_words_cost_nothing(toys, what):
    before = hashed(toys)
    for place, pairs in HARMLESS[what].items():
        if place.startswith("then "):
            before = hashed(toys)
        file = toys.parent / place.removeprefix("then ")
        text = file.read_text()
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new)
        file.write_text(text)
    assert hashed(toys) == before


@pytest.mark.parametrize("what", MOVES)
def test_moved_modules_cost_nothing(toys, what):
    before = hashed(toys)
    moves, old, new = MOVES[what]
    for there, here in moves.items():
        shutil.move(toys.parent / there, toys.parent / here)
    for file in toys.rglob("*.py"):
        file.write_text(file.read_text().replace(old, new))
    assert hashed(toys) == before


def test_a_name_that_is_read_counts(toys):
    topic = toys / "experiments" / "topic.py"
    topic.write_text(topic.read_text().replace("return front()", "return [helper][0].__name__"))
    before = hashed(toys)
    topic.write_text(topic.read_text().replace("helper", "aide"))
    assert hashed(toys) != before


@pytest.mark.parametrize(
    "code, reads",
    [
        *(("x.__name__", True), ("front().__qualname__", True), ("[f][0].__name__", True)),
        *(("x.real", False), ("type(x).__name__", False), ("__name__", False)),
    ],
)
def test_a_name_is_read_where_anything_but_a_type_is_asked_for_it(code, reads):
    (statement,) = ast.parse(code).body
    assert content._reads_a_name(statement) == reads


def test_equal_helpers_of_two_modules_are_one(toys):
    topic = toys / "experiments" / "topic.py"
    before = hashed(toys)
    topic.write_text(
        topic.read_text().replace("counts.reached(x)", "again(x)")
        + "\n\ndef again(x):\n    return other(x)\n\n\ndef other(x):\n    return x\n"
    )
    assert hashed(toys) == before


def test_definitions_that_call_each_other_are_told_apart_and_seen_through(toys):
    counts = toys / "counts.py"
    circle = (
        "def reached(x):\n    return one(x)\n\n\ndef one(x):\n    return two(x - 1)\n\n\n"
        "def two(x):\n    return three(x - 1)\n\n\ndef three(x):\n    return one(x - 2)\n"
    )
    counts.write_text(circle)
    before = hashed(toys)
    counts.write_text(circle.replace("one(x - 2)", "two(x - 2)"))
    assert hashed(toys) != before
    counts.write_text(circle.replace("three", "drei").replace("two", "zwei"))
    assert hashed(toys) == before


@cache
def functions() -> list[ast.FunctionDef]:
    """Functions of the experiments as they are, which is code of every kind."""
    found = []
    for file, text in signatures.sources(signatures.PACKAGE):
        if file.startswith(("chapters/", "measure/")):
            found += [each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef)]
    return found


@cache
def source(function: ast.FunctionDef) -> str:
    return ast.unparse(function)


def bare(function: ast.FunctionDef) -> ast.FunctionDef:
    """A copy without what the text leaves out: words, annotations and docstrings."""
    copy = ast.parse(source(function)).body[0]
    for node in ast.walk(copy):
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
            node.decorator_list = []
    return copy


@cache
def text(function: ast.FunctionDef) -> str:
    """The text of a function as it stands."""
    return normalised(bare(function), function.name)


class _Apart(ast.NodeTransformer):
    """A generator for each comprehension, which Python 3.12 and later write into the function
    itself: there a variable that a comprehension shares with it by name alone would count."""

    def _generator(self, node: ast.ListComp | ast.SetComp | ast.DictComp) -> ast.expr:
        self.generic_visit(node)
        pair = isinstance(node, ast.DictComp)
        element = ast.Tuple([node.key, node.value], ast.Load()) if pair else node.elt
        name = ast.Name(type(node).__name__, ast.Load())
        return ast.Call(name, [ast.GeneratorExp(element, node.generators)], [])

    visit_ListComp = visit_SetComp = visit_DictComp = _generator


def bytecode(function: ast.FunctionDef) -> tuple:
    """What Python makes of it, in which local variables are numbers."""
    tree = ast.Module([_Apart().visit(deepcopy(function))], [])
    return _plain(compile(ast.fix_missing_locations(tree), "x", "exec", optimize=2))


def _plain(code: types.CodeType) -> tuple:
    constants = tuple(
        _plain(each) if isinstance(each, types.CodeType) else repr(each)
        for each in code.co_consts
        if not (isinstance(each, str) and "<locals>" in each)
    )
    free = len(code.co_freevars), len(code.co_cellvars)
    return code.co_code, constants, code.co_names, code.co_varnames[: code.co_argcount], free


def local_names(function: ast.FunctionDef) -> list[str]:
    arguments = {each.arg for each in ast.walk(function) if isinstance(each, ast.arg)}
    outside = {n for each in ast.walk(function) if isinstance(each, ast.Global) for n in each.names}
    # By its name alone a list of words is known: WARNINGS is the one local whose name counts.
    return sorted(bound_names(function.body) - arguments - outside - {WARNINGS})


def test_a_renamed_local_leaves_every_function_as_it_was():
    print("seed", SEED)
    renamed, dice = 0, random.Random(SEED)
    for function in functions():
        if any(word in source(function) for word in ("locals()", " exec(", " eval(")):
            continue
        for name in local_names(function):
            if dice.random() > SHARE:
                continue
            copy = bare(function)
            for node in ast.walk(copy):
                if isinstance(node, ast.Name) and node.id == name:
                    node.id = f"{name}_renamed"
                elif getattr(node, "name", None) == name and not isinstance(node, ast.alias):
                    node.name = f"{name}_renamed"
                elif isinstance(node, ast.Nonlocal):
                    node.names = [f"{n}_renamed" if n == name else n for n in node.names]
            assert normalised(copy, function.name) == text(function)
            renamed += 1
    assert renamed > 1500 * SHARE


def test_code_that_runs_otherwise_never_reads_alike():
    """One name in a function is put in the place of another, as a slip of the pen would."""
    dice = random.Random(14)
    told_apart = 0
    for function in functions():
        # What an error or a warning says does not count.
        if any(word in source(function) for word in ("raise ", "warnings", "add_note", "assert ")):
            continue
        names = sorted({n.id for n in ast.walk(function) if isinstance(n, ast.Name)})
        as_it_is = bytecode(bare(function))
        for _ in range(SLIPS):
            copy = bare(function)
            places = [n for n in ast.walk(copy) if isinstance(n, ast.Name)]
            dice.choice(places).id = dice.choice(names)
            try:
                runs_alike = bytecode(copy) == as_it_is
            except SyntaxError:
                continue
            if not runs_alike:
                assert normalised(copy, function.name) != text(function), ast.unparse(copy)
                told_apart += 1
    assert told_apart > 200 * SLIPS
