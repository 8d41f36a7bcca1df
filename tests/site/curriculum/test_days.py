"""Exercises in which something is built: the supplied check fails on the blank with a sentence that
says what is wrong, and so on a solution that forgets something; it passes on the right one."""

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
# What a solution may forget, as a change of the right one.
FORGOTTEN = {
    "day_01": (' == "pointwise"', ""),  # whether it may be fused at all
    "day_02": ("2048 // (32 * warps),", ""),  # that threads have a limit of their own
    "day_03": ("count, blocks * threads", "first + 1"),  # the elements beyond the grid
    "day_04": ("follows[here] = there", "follows = order"),  # that it is to be one cycle
    "day_05": ("size - 1", "0"),  # an element across the end of a sector
    "day_06": ("min(peak, bandwidth * intensity)", "bandwidth * intensity"),
    "day_07": ("on.l2_bytes / 2", "on.l2_bytes"),
    "day_08": ("1 + floor", "1"),  # that equals differ, too
    "day_09": (" and key in table", ""),  # that an operator has no code for some keys
    "day_10": ("merged and not merged[-1][2]", "False"),  # that free neighbours become one
    "day_11": ("max(start, reached)", "start"),  # that two streams run at the same time
    "day_12": ("values[place]", "values[-1]"),  # that a line may take an older value
    "day_13": (' or op.kind == "matmul"', ""),  # that a matmul waits for whole matrices
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


@pytest.mark.parametrize("name", [day.name for day in DAYS])
def test_a_check_notices_what_is_forgotten(name, tmp_path):
    day, (right, wrong) = CHECKOUT / "snippets" / "days" / name, FORGOTTEN[name]
    solution = (day / "solution.py").read_text(encoding="utf-8")
    assert solution.count(right) == 1
    (tmp_path / "forgetful.py").write_text(solution.replace(right, wrong), encoding="utf-8")
    found = checked(day, str(tmp_path / "forgetful.py"))
    assert found.returncode == 1 and "Traceback" not in found.stderr
    assert len((found.stdout + found.stderr).split()) > 3, "it does not say what is wrong"
