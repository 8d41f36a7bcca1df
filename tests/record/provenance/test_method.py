"""What of a method is read from the sources of a measuring room, here of a toy."""

import json

import pytest

from anatomy.record.provenance import codehash, method
from anatomy.table.errors import AnatomyError

CLOCK = """
from toys.table import sizes
from toys.judge import UNSEEN

BATCH_S = 4e-4
HALF, (WIDE, NAMES) = 1 / 2, (-(2**20), ("a", 1.5, None))
BY_NAME: dict = {"a": 3 * 2, sizes.KEY: [1]}
COMPUTED = sizes.of(1)
UNPACKED = {**BY_NAME}
low = 1
FIRST = SECOND = True
ADDED = 1 + 1


class Timer:
    least: int = 3
    said: str = "one"
    told: str = "some words"
    none: int

    def run(self, times=7):
        return UNSEEN


def tick(call, /, plain, warm=2, *rest, words="a b", cold=False, needed, other=BATCH_S):
    async def inner(deeper="x"): ...
    return sizes.TABLE


async def wait(until=-1.0): ...
"""
FILES = {
    "__init__.py": "",
    "measure/__init__.py": "",
    "measure/clock.py": CLOCK,
    "measure/rules.py": "FIRST = 9\nORDER = 2\nfrom toys import table\n",
    "table/__init__.py": "",
    "table/sizes.py": "KEY = 'k'\nTABLE = (KEY,)\nUNUSED = 1\nMOST = 5\n"
    "def of(x=12): return MOST\n",
    "judge.py": "UNSEEN = 1\n",
    "measured.py": "BESIDE = 1\n",
}
CONSTANTS = {
    "ADDED": "1 + 1",
    "BATCH_S": "0.0004",
    "BY_NAME": "{'a': 6, 'sizes.KEY': (1,)}",
    "COMPUTED": "sizes.of(1)",
    "FIRST": "9 and True",
    "HALF": "0.5",
    "KEY": "'k'",
    "MOST": "5",
    "NAMES": "('a', 1.5, None)",
    "ORDER": "2",
    "SECOND": "True",
    "TABLE": "(KEY,)",
    "UNPACKED": "{**BY_NAME}",
    "WIDE": "-1048576",
    "cold": "False",
    "deeper": "'x'",
    "least": "3",
    "said": "'one'",
    "times": "7",
    "until": "-1.0",
    "warm": "2",
    "x": "12",
}


@pytest.fixture
def toys(tmp_path):
    """A package with a measuring room, and a METHOD.json that fits it."""
    root = tmp_path / "toys"
    for name, text in FILES.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    seal(root)
    return root


def seal(root, **other) -> None:
    now = method.read(root)
    golden = {**vars(now), "number": 4, "id": "4-0123abcd", "history": []} | other
    file = root / "measure" / "METHOD.json"
    file.write_text(json.dumps(golden | {"seal": method.short_hash(golden)}))


def edit(root, file, old, new) -> None:
    text = (root / file).read_text()
    assert text.count(old) == 1
    (root / file).write_text(text.replace(old, new))


def test_constants_and_defaults_are_read_by_name(toys):
    assert dict(method.read(toys).constants) == CONSTANTS


def test_a_method_that_nobody_touched_keeps_its_hashes(toys):
    now = method.read(toys)
    assert [len(now.hot_path), len(now.code)] == [32, 32]
    assert (now.hot_path[:8], now.code[:8]) == ("a7d5bed8", "7726f83d")
    assert method.short_hash({"b": 1, "a": [None]}) == method.short_hash({"a": [None], "b": 1})


def test_sources_that_the_file_was_made_of_have_its_id(toys):
    assert method.standing(toys) == method.Standing("4-0123abcd")


CODE = "code that the traces were not compared with"
HOT = "the hot path, measure.clock"


@pytest.mark.parametrize(
    ("file", "old", "new", "differs"),
    [
        ("measure/rules.py", "ORDER = 2", "ORDER = 3", ["ORDER is 3, was 2", CODE]),
        (
            "measure/rules.py",
            "ORDER",
            "PLACE",
            ["ORDER is gone, was 2", "PLACE is 2, was not there"],
        ),
        ("table/sizes.py", "MOST = 5", "MOST = 6", ["MOST is 6, was 5", CODE]),
        ("measure/clock.py", "times=7", "times=8", ["times is 8, was 7", HOT, CODE]),
        ("measure/clock.py", "cold=False", "cold=0", ["cold is 0, was False", HOT, CODE]),
        ("measure/clock.py", "return UNSEEN", "return -UNSEEN", [HOT, CODE]),
        ("measure/clock.py", "some words", "other words", [HOT, CODE]),
        ("table/sizes.py", "return MOST", "return -MOST", [CODE]),
        ("measure/rules.py", "from toys import", "print(1)\nfrom toys import", [CODE]),
        ("table/sizes.py", "UNUSED = 1", "UNUSED = 2", []),
        ("judge.py", "UNSEEN = 1", "UNSEEN = 2", []),
        ("measured.py", "BESIDE = 1", "BESIDE = 2", []),
        ("measure/clock.py", "4e-4", "0.0004", []),
    ],
)
def test_other_sources_have_an_id_of_their_own_and_say_why(toys, file, old, new, differs):
    edit(toys, file, old, new)
    seen = method.standing(toys)
    assert seen.differences == tuple(differs)
    if differs:
        assert seen.id.startswith("4-not-") and len(seen.id) == len("4-not-") + 8
        edit(toys, file, new, old)
        seen = method.standing(toys)
    assert seen == method.Standing("4-0123abcd")


def test_code_depends_on_the_number_of_a_method_that_fits_and_else_on_all_that_it_is(toys):
    assert codehash.present(toys).method_id == "4"
    edit(toys, "measure/clock.py", "times=7", "times=8")
    assert codehash.present(toys).method_id == method.standing(toys).id
    assert codehash.present(toys).method_id.startswith("4-not-")
    assert codehash.present(toys / "table").method_id == "none"


def test_a_file_that_is_missing_or_was_edited_has_no_number(toys):
    file = toys / "measure" / "METHOD.json"
    file.write_text(file.read_text().replace('"number": 4', '"number": 5'))
    with pytest.raises(AnatomyError, match="its seal does not fit"):
        method.load(toys)
    for content in (file.read_text(), "{}", "{", None):
        if content is None:
            file.unlink()
        else:
            file.write_text(content)
        seen = method.standing(toys)
        assert seen.id.startswith("none-") and len(seen.id) == len("none-") + 8
        assert len(seen.differences) == 1 and "METHOD.json" in seen.differences[0]


def test_what_measures_nothing_has_no_method(tmp_path):
    assert method.standing(tmp_path) == method.Standing("none")
