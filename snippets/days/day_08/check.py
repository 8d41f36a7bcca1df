"""Day 8: does your verdict stand up to drift, to outliers, and to equals?

python snippets/days/day_08/check.py
"""

import random
import runpy
import sys
from pathlib import Path

FILE = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("build.py"))
built = runpy.run_path(FILE)
BLOCKS, NOISE = 12, 0.002


def blocks(ratio: float, drift: list[float], noise: random.Random, sigma: float = NOISE) -> list:
    """Twelve block medians around `ratio` microseconds, on a machine that drifts."""
    return [ratio * each * (1 + sigma * noise.gauss(0, 1)) for each in drift]


def main() -> None:
    """Ask for verdicts on made-up comparisons."""
    got = built["interval"]([5, 1, 12, 3, 8, 2, 11, 7, 4, 10, 6, 9])
    if tuple(got) != (3, 10):
        sys.exit(f"interval() of the numbers from 1 to 12 is {tuple(got)}, and should be (3, 10).")
    noise = random.Random(8)
    drifting = [1 + 0.03 * block for block in range(BLOCKS)]
    jumping = [noise.choice((1.0, 1.0, 1.0, 2.0)) for _ in range(BLOCKS)]
    cases = [
        ("5 % slower, while the clock falls by a third", 1.05, drifting, NOISE, "slower"),
        ("5 % faster, with blocks that take twice as long", 0.95, jumping, NOISE, "faster"),
        ("the same thing under another name", 1.0, drifting, NOISE, "undecided"),
        ("3 % slower, where equals differ by more", 1.03, drifting, 0.04, "undecided"),
    ]
    for name, ratio, drift, floor, expected in cases:
        control, again = blocks(1.0, drift, noise), blocks(1.0, drift, noise, floor)
        found = built["verdict"](blocks(ratio, drift, noise), control, again)
        if found != expected:
            sys.exit(f"{name}: your verdict is {found!r}, and should be {expected!r}.")
    print("Right.")


try:
    main()
except NotImplementedError:
    sys.exit("interval() and verdict() are both to be written: build.py says what they return.")
