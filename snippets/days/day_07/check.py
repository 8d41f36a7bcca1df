"""Day 7: are these operations under the right roofs, on two machines?

python snippets/days/day_07/check.py
"""

import runpy
import sys
from math import isclose
from pathlib import Path

FILE = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("build.py"))
built = runpy.run_path(FILE)
# Made-up machines: peak, HBM, L2, bytes of the L2.
LARGE, SMALL = (500e12, 4e12, 8e12, 60e6), (40e12, 0.4e12, 1.6e12, 30e6)
RELU, MATMUL = (1e8, 8e8), (2 * 4096**3, 3 * 2 * 4096**2)
CASES = [
    ("a relu over 800 MB", RELU, LARGE, 250e-6, ("HBM", 0.8)),
    ("the same on a small card", RELU, SMALL, 2.5e-3, ("HBM", 0.8)),
    ("a relu over 8 MB", (1e6, 8e6), LARGE, 2e-6, ("L2", 0.5)),
    ("a relu over 40 MB, more than half the L2", (5e6, 4e7), LARGE, 2e-5, ("HBM", 0.5)),
    ("a matmul", MATMUL, LARGE, 400e-6, ("arithmetic", 2 * 4096**3 / 500e12 / 400e-6)),
    ("the same on a small card", MATMUL, SMALL, 4e-3, ("arithmetic", 2 * 4096**3 / 40e12 / 4e-3)),
    ("a copy, which computes nothing", (0, 8e8), LARGE, 400e-6, ("HBM", 0.5)),
]

for name, (flops, moved), machine, seconds, (roof, share) in CASES:
    try:
        found, reached = built["place"](flops, moved, seconds, built["Machine"](*machine))
    except NotImplementedError:
        sys.exit("place() is still to be written: build.py says what it returns.")
    if found != roof:
        sys.exit(f"{name}: you say {found}; it is {roof} that takes the longest.")
    if not isclose(reached, share, rel_tol=1e-6):
        sys.exit(f"{name}: you say a share of {reached:.3g}; its least time is {share:.3g} of it.")
print("Right.")
