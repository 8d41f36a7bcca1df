"""The command that tries the tests: which mutants it makes, and that it finds what tests would."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.mutants import command, reach
from tests.mutants.mutations import mutants

CHECKOUT = Path(__file__).resolve().parents[2]


def made(source: str) -> set[str]:
    """What the last line of a source becomes, in the mutants of that line."""
    text = f"{source}\n"
    last = text.count("\n")
    found = (each for each in mutants("a.py", text) if each.is_program(text))
    return {each.now for each in found if each.line == last}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a <= b", {"x = a < b"}),
        ("x = (a) is not (b)", {"x = (a) is (b)"}),
        ("x = a and not b", {"x = a or not b", "x = a and b"}),
        ("x = a / b", {"x = a * b"}),
        ("LOOKS = (12, 24)", {"LOOKS = (24,)", "LOOKS = (12,)"}),
        ("x = True", {"x = False"}),
        ("x = rows[-1]", {"x = rows[0]"}),
        ("x = min(a, key=b)", {"x = max(a, key=b)", "x = min(a)"}),
        ("x = any(a for a in b if a)", {"x = all(a for a in b if a)"}),
        ("x = 'two words', f'{a + 1}'", set()),
        ("x: int | None = None", set()),
        ("def f() -> 'a': raise ValueError('no', 1)", {"def f() -> 'a': pass"}),
        ("def f():\n    'Docs.'", set()),
        ("__all__ = ['a', 'b']", set()),
        ("before = 1\nbefore = after", {"pass"}),
        ("only = after", set()),
        ("for a in b:\n    continue", {"pass"}),
        ("a.b = c", {"pass"}),
        ("a.append(c)", {"pass"}),
    ],
)
def test_a_line_has_these_mutants(source, expected):
    found = made(source)
    assert expected <= found and (expected or not found)


def test_a_mutant_changes_its_own_line_and_moves_no_other():
    file = CHECKOUT / "anatomy" / "judge" / "gates.py"
    text = file.read_text(encoding="utf-8")
    found = mutants("gates.py", text)
    assert len(found) > 50
    for each in found:
        assert each.within(text).count("\n") == text.count("\n"), str(each)


def test_each_mutant_that_is_called_equivalent_is_one_that_is_made():
    for each in command.equivalent():
        text = (CHECKOUT / each["file"]).read_text(encoding="utf-8")
        found = {(mutant.was, mutant.now) for mutant in mutants(each["file"], text)}
        assert (each["from"], each["to"]) in found and each["why"], each


TOY = '''"""A toy."""

from functools import cache

LEAST = 6


@cache
def enough(blocks):
    return blocks >= LEAST


def unknown(blocks):
    return blocks > 1


def told():
    return __import__("pathlib").Path(__file__).read_text().count("assert")
'''
TESTS = '''"""Tests of a toy."""

import subprocess
import sys

import pytest

from anatomy import toy


@pytest.fixture(scope="module")
def six():
    return toy.enough(6)


def test_five():
    assert not toy.enough(5)


def test_nothing():
    pass


def test_six(six):
    assert six


def test_elsewhere():
    code = "from anatomy import toy; assert toy.enough(6) and not toy.enough(5)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_of_text():
    assert toy.told() == 1
'''


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A checkout of a package with one module."""
    for folder in command.COPIED:
        (tmp_path / folder).mkdir()
    shutil.copytree(Path(__file__).parent, tmp_path / "tests" / "mutants")
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    # Without it another package of the same name would go before it, wherever it lies.
    (tmp_path / "anatomy" / "__init__.py").touch()
    (tmp_path / "anatomy" / "toy.py").write_text(TOY)
    (tmp_path / "tests" / "room").mkdir()
    (tmp_path / "tests" / "room" / "test_toy.py").write_text(TESTS)
    for module in (command, reach):
        monkeypatch.setattr(module, "CHECKOUT", tmp_path)
    monkeypatch.setattr(reach, "KEPT", tmp_path / "kept")
    for each in (reach._shared, reach._scopes, reach.mentions):
        each.cache_clear()
    yield tmp_path
    for each in (reach._shared, reach._scopes, reach.mentions):
        each.cache_clear()


def test_what_lives_is_said_and_the_status_is_1(toy, monkeypatch, capsys):
    arguments = ["mutants", "anatomy/toy.py", "--count", "0", "--jobs", "1", "--all"]
    monkeypatch.setattr(sys, "argv", arguments)
    assert command.main() == 1
    said = capsys.readouterr().out
    assert "4 tests of behaviour; 1 others left out" in said  # one looks at the text
    for wrong in ("LEAST = 0", "LEAST = (6 + 1)", "return blocks > LEAST"):
        (line,) = {line for line in said.splitlines() if line.endswith(f"->  {wrong}")}
        assert line.startswith("found by ['tests/room/test_toy.py::test_"), line
    assert "unreached: anatomy/toy.py:14  return blocks > 1  ->  return blocks >= 1" in said
    assert (toy / "anatomy" / "toy.py").read_text() == TOY
    reached = reach.Reach(
        {"tests/room/test_toy.py": command.json.loads(next((toy / "kept").iterdir()).read_text())}
    ).tests("anatomy/toy.py", 5)
    assert {name.rpartition("_")[2] for name in reached} >= {"five", "six", "elsewhere"}
