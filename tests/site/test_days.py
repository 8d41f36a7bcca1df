"""Exercises in which something is built: the supplied check fails on the blank with a sentence that
says what is wrong, and passes on the solution."""

import subprocess
import sys

import pytest

from tests.fakes.sites import CHECKOUT

DAYS = sorted(path.parent for path in CHECKOUT.glob("snippets/days/*/check.py"))
TOY = {
    "build.py": "def double(x):\n    raise NotImplementedError\n",
    "solution.py": "def double(x):\n    return 2 * x\n",
    "check.py": """\
import runpy
import sys
from pathlib import Path

FILE = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("build.py"))
try:
    got = runpy.run_path(FILE)["double"](3)
except NotImplementedError:
    sys.exit("double() is still to be written.")
sys.exit(f"double(3) is {got}, and should be 6.") if got != 6 else print("Right.")
""",
}


@pytest.fixture(params=["toy", *DAYS], ids=lambda day: getattr(day, "name", day))
def day(request, tmp_path):
    if request.param != "toy":
        return request.param
    for name, text in TOY.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def checked(day, *file: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "check.py", *file]
    return subprocess.run(command, cwd=day, capture_output=True, text=True, timeout=300)


def test_a_check_fails_on_the_blank_and_passes_on_the_solution(day):
    blank, solved = checked(day), checked(day, "solution.py")
    assert blank.returncode == 1 and "Traceback" not in blank.stderr
    assert len((blank.stdout + blank.stderr).split()) > 3, "it does not say what is wrong"
    assert solved.returncode == 0, solved.stdout + solved.stderr
    assert solved.stdout.rstrip().endswith("Right.")
