"""The code's hash moves when a number could, and only then."""

import pytest

from anatomy.record import signatures
from anatomy.record.provenance import codehash
from anatomy.record.provenance.codehash import code_hash
from anatomy.record.provenance.content import Definitions, Layout
from anatomy.table.errors import AnatomyError, BadParameter, UnknownName

TOPIC = '''
"""A topic."""
import json as decoder
import os.path
import toys.tables
import toys.deep.below as below
from torch.nn import functional as F
from toys import counts
from toys.deep import front
from toys.deep.inner import Thing as Renamed
from . import sibling
from ..tables import LIMIT

SIZE = 4  # reached
UNUSED = 5
PAIR, OTHER = 1, 2
count = 0


def helper(x):
    """Help."""
    return x + SIZE + counts.reached(x) + PAIR


def unrelated(x):
    return x


def shadowed():
    return 1


@experiment("topic.measure", page="a.md", command="c01 toy", timeout_s=60, files=("kernel.cu",))
def measure(m: int = 4096, dtype: Literal["fp16", "bf16"] = "fp16"):
    """Measure."""
    shadowed = helper(m)  # a local of that name, not the function
    from toys import late
    global count
    count = late.inside(F.relu(m), os.path.join("a", "b"), decoder)
    toys.tables.lookup(below.down(), LIMIT)
    return front(), Renamed().method(), sibling.brother, shadowed


@experiment("topic.second", files=("kernel.cu",))
def second(m: int = 1):
    return m
'''
FILES = {
    "toys/experiments/topic.py": TOPIC,
    "toys/experiments/sibling.py": "brother = 1\nsister = 2\n",
    "toys/__init__.py": "",
    "toys/counts.py": "def reached(x):\n    return _deep(x)\n\n\ndef _deep(x):\n    return x\n\n\n"
    "def unreached(x):\n    return x\n",
    "toys/tables.py": "LIMIT = 3\nTABLE = {}\nTABLE['a'] = 1\n\n\n"
    "def lookup(a, b):\n    return a\n",
    "toys/late.py": "def inside(*a):\n    return 'toys.named', a\n",
    "toys/named.py": "IN_TEXT = 1\n",
    "toys/deep/__init__.py": "from toys.deep.inner import front\nfrom toys.deep import inner\n",
    "toys/deep/inner.py": "class Thing:\n    kind = 1\n"
    "    def method(self):\n        return 1\n\n\n"
    "def front():\n    return getattr(below_module, 'x')\n\n\n"
    "from toys.deep import below as below_module\n",
    "toys/deep/below.py": "def down():\n    return 1\n\n\ndef by_getattr():\n    return 2\n",
    "kernel.cu": "__global__ void f() {}\n",
}


@pytest.fixture
def toys(tmp_path):
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "toys"


def edited(toys, file, old, new):
    """The hash before and after one edit."""
    path = toys.parent / file
    before = code_hash("topic.measure", root=toys).hash
    text = path.read_text()
    assert text.count(old) == 1, f"the edit must happen once: {text.count(old)} x {old!r}"
    path.write_text(text.replace(old, new))
    return before, code_hash("topic.measure", root=toys).hash


SAME = {
    "a comment": ("# reached", "# a constant"),
    "a docstring": ('"""Measure."""', '"""Measure all of it,\n\n    and more.\n    """'),
    "no docstring": ('    """Help."""\n', ""),
    "the module's docstring": ('"""A topic."""', ""),
    "formatting": (
        "return x + SIZE + counts.reached(x) + PAIR",
        "return (x + SIZE\n  + (counts.reached(x)) + PAIR)",
    ),
    "quotes": ('os.path.join("a", "b")', "os.path.join('a', \"b\",)"),
    "an unrelated function": (
        "def unrelated(x):\n    return x",
        "def unrelated(x):\n    return x * 2",
    ),
    "an unrelated experiment": ("def second(m: int = 1)", "def second(m: int = 2)"),
    "an unrelated constant": ("UNUSED = 5", "UNUSED = 6"),
    "a function whose name a local hides": (
        "def shadowed():\n    return 1",
        "def shadowed():\n    return 2",
    ),
    "the page": ('page="a.md"', 'page="b.md"'),
    "the command and time limit": ('command="c01 toy", timeout_s=60', "timeout_s=90"),
    "a new choice": ('Literal["fp16", "bf16"]', 'Literal["fp16", "bf16", "fp8"]'),
    "a new function": ("def helper(x):", "def new():\n    return 1\n\n\ndef helper(x):"),
    "an unused import": ("import os.path\n", "import os.path\nimport math\n"),
}


@pytest.mark.parametrize("what", SAME)
def test_what_can_change_no_number_leaves_the_hash(toys, what):
    before, after = edited(toys, "toys/experiments/topic.py", *SAME[what])
    assert after == before


CHANGED = {
    "the experiment's body": ("experiments/topic.py", "return front()", "return 1, front()"),
    "a default": ("experiments/topic.py", "m: int = 4096", "m: int = 2048"),
    "another default of the same value": (
        "experiments/topic.py",
        "m: int = 4096",
        "m: float = 4096.0",
    ),
    "a reached function": ("experiments/topic.py", "return x + SIZE", "return x - SIZE"),
    "a reached constant": ("experiments/topic.py", "SIZE = 4", "SIZE = 8"),
    "a constant of a pair": ("experiments/topic.py", "PAIR, OTHER = 1, 2", "PAIR, OTHER = 2, 2"),
    "a global that is only written": ("experiments/topic.py", "count = 0", "count = 1"),
    "where an outside name comes from": (
        "experiments/topic.py",
        "import functional as F",
        "import utils as F",
    ),
    "where another outside name comes from": (
        "experiments/topic.py",
        "import json as decoder",
        "import ujson as decoder",
    ),
    "a decorator that is not the experiment's": (
        "experiments/topic.py",
        "def helper",
        "@cache\ndef helper",
    ),
    "the type of a number": ("experiments/topic.py", "PAIR, OTHER = 1, 2", "PAIR, OTHER = 1.0, 2"),
    "True for 1": ("experiments/topic.py", "PAIR, OTHER = 1, 2", "PAIR, OTHER = True, 2"),
    "a function of another module": ("counts.py", "return _deep(x)", "return 1 + _deep(x)"),
    "what that one reaches": (
        "counts.py",
        "def _deep(x):\n    return x",
        "def _deep(x):\n    return -x",
    ),
    "a dotted import": ("tables.py", "return a", "return b"),
    "a relative import": ("tables.py", "LIMIT = 3", "LIMIT = 4"),
    "what runs on import": ("tables.py", "TABLE['a'] = 1", "TABLE['a'] = 2"),
    "an import inside a function": ("late.py", ", a", ", a, a"),
    "a module named in a text": ("named.py", "IN_TEXT = 1", "IN_TEXT = 2"),
    "a module under another name": (
        "deep/below.py",
        "def down():\n    return 1",
        "def down():\n    return 3",
    ),
    "a module passed as a value": ("deep/below.py", "return 2", "return 3"),
    "a name that a package hands on": ("deep/inner.py", "getattr(", "vars("),
    "a class under another name": ("deep/inner.py", "kind = 1", "kind = 2"),
    "a method": ("deep/inner.py", "return 1", "return 2"),
    "a neighbouring experiment's constant": (
        "experiments/sibling.py",
        "brother = 1",
        "brother = 2",
    ),
}


@pytest.mark.parametrize("what", CHANGED)
def test_what_can_change_a_number_changes_the_hash(toys, what):
    file, old, new = CHANGED[what]
    before, after = edited(toys, f"toys/{file}", old, new)
    assert after != before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("counts.py", "def unreached(x):\n    return x", "def unreached(x):\n    return 2"),
        ("experiments/sibling.py", "sister = 2", "sister = 3"),
    ],
)
def test_what_is_not_reached_in_another_module_leaves_the_hash(toys, file, old, new):
    before, after = edited(toys, f"toys/{file}", old, new)
    assert after == before


def test_a_declared_file_counts_byte_by_byte(toys):
    before, after = edited(toys, "kernel.cu", "f()", "f( )")
    assert after != before


def test_of_a_declared_script_only_what_runs_counts(toys):
    (toys.parent / "script.py").write_text('"""Doc."""\na = 1  # one\nb = 2\nprint(a)\n')
    topic = toys / "experiments" / "topic.py"
    topic.write_text(topic.read_text().replace('"kernel.cu"', '"script.py"'))
    for old, new, counts in (
        ('"""Doc."""', '"""Other."""', False),
        ("# one", "# two", False),
        ("print(a)", "print(b)", True),
        ("b = 2", "b = 3", True),
    ):
        before, after = edited(toys, "script.py", old, new)
        assert (after != before) == counts, new


def test_a_declared_file_that_is_missing_is_named(toys):
    (toys.parent / "kernel.cu").unlink()
    with pytest.raises(
        AnatomyError, match=r"topic.measure declares the file kernel.cu, .*No such.* checkout"
    ):
        code_hash("topic.measure", root=toys)


def test_parameters_count_and_defaults_need_not_be_given(toys):
    plain = code_hash("topic.measure", root=toys).hash
    assert code_hash("topic.measure", {"m": 4096, "dtype": "fp16"}, root=toys).hash == plain
    assert code_hash("topic.measure", {"m": "4096"}, root=toys).hash == plain
    assert code_hash("topic.measure", {"m": 2048}, root=toys).hash != plain


def test_the_files_are_those_that_hold_the_reached_code(toys):
    assert code_hash("topic.measure", root=toys).files == sorted(
        name for name in FILES if name not in ("toys/__init__.py", "toys/deep/__init__.py")
    )
    assert code_hash("topic.second", root=toys).files == ["kernel.cu", "toys/experiments/topic.py"]


def test_unknown_experiments_and_parameters_are_refused(toys):
    with pytest.raises(UnknownName, match=r"topic.measure"):
        code_hash("topic.mesure", root=toys)
    with pytest.raises(UnknownName, match="Known: dtype, m"):
        code_hash("topic.measure", {"n": 1}, root=toys)
    with pytest.raises(BadParameter, match="fp16, bf16"):
        code_hash("topic.measure", {"dtype": "fp8"}, root=toys)


def test_a_star_import_of_the_package_is_refused(toys):
    (toys / "counts.py").write_text("from toys.tables import *\n")
    with pytest.raises(AnatomyError, match=r"counts, line 1: `import \*` of the package"):
        code_hash("topic.measure", root=toys)


def test_two_modules_that_import_from_each_other_end(toys):
    (toys / "counts.py").write_text("from toys.tables import reached\n")
    (toys / "tables.py").write_text("from toys.counts import reached, LIMIT, lookup\n")
    assert len(code_hash("topic.measure", root=toys).hash) == 64


def test_a_name_made_at_run_time_counts_its_whole_module(toys):
    (toys / "counts.py").write_text("SECRET = 1\ndef __getattr__(name):\n    return len\n")
    before, after = edited(toys, "toys/counts.py", "SECRET = 1", "SECRET = 2")
    assert after != before


def test_names_under_try_and_if_count(toys):
    (toys / "counts.py").write_text(
        "try:\n    import fast\nexcept ImportError:\n    fast = None\n"
        "if fast:\n    def reached(x):\n        return 1\n"
        "else:\n    def reached(x):\n        return 2\n"
        "if __name__ == '__main__':\n    print(3)\n"
    )
    for old, new, moves in (
        ("return 2", "return 4", True),
        ("fast = None", "fast = False", True),
        ("print(3)", "print(5)", False),
    ):
        before, after = edited(toys, "toys/counts.py", old, new)
        assert (after != before) == moves, (old, new)


def test_another_method_is_another_hash_of_who_measures_by_it_and_of_no_one_else(toys):
    def hashes(*method, number):
        layout = Layout(method, unfollowed=(), method_id=number)
        package = Definitions("toys", signatures.sources(toys), layout)
        return [package.reached("experiments.topic", name).hash for name in ("measure", "second")]

    first, second = (hashes("counts", number=number) for number in "12")
    assert first[0] != second[0], "it calls what is in counts"
    assert first[1] == second[1] == hashes(number="1")[1]
    (toys / "counts.py").write_text(FILES["toys/counts.py"].replace("return x", "return 2 * x"))
    assert hashes("counts", number="1") == first, "the method's id stands for its code"


# The package itself.

PRESENT = codehash.present(signatures.PACKAGE)


@pytest.mark.parametrize("name", signatures.experiments())
def test_every_experiment_reaches_its_own_file_and_no_bookkeeping(name):
    declared, files = signatures.signature(name), code_hash(name).files
    assert f"{declared.module.replace('.', '/')}.py" in files
    for part in (*PRESENT.unfollowed, *PRESENT.method):
        if ":" not in part:
            place = f"anatomy/{part.replace('.', '/')}"
            assert not [file for file in files if file.startswith((f"{place}.py", f"{place}/"))]


def test_bookkeeping_names_modules_that_exist():
    assert PRESENT.method == ("measure", "comparison"), "what times, and what is told of it"
    package = Definitions("anatomy", signatures.sources(signatures.PACKAGE), PRESENT)
    for part in (*PRESENT.unfollowed, *PRESENT.method):
        module, _, name = part.partition(":")
        assert (source := package.module(module)), part
        assert not name or name in source.names, part


def test_the_median_that_an_experiment_keeps_is_no_bookkeeping():
    assert "anatomy/table/intervals.py" in code_hash("never.costs").files
