"""Day 6: is the ridge where the machines below have it?

python snippets/days/day_06/check.py
"""

import runpy
import sys
from math import isclose
from pathlib import Path

FILE = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("build.py"))
built = runpy.run_path(FILE)
# Made-up machines: operations per second, bytes per second.
MACHINES = {"a large card": (60e12, 4e12), "a small card": (12e12, 0.3e12), "a CPU": (1e12, 50e9)}
COUNTS, ELEMENTS = (1, 2, 4, 16, 64, 256, 1024), 10**7

for name, (peak, bandwidth) in MACHINES.items():
    flops = [2.0 * fmas * ELEMENTS for fmas in COUNTS]
    moved = [8.0 * ELEMENTS for _ in COUNTS]
    pairs = list(zip(flops, moved, strict=True))
    seconds = [max(f / peak, b / bandwidth) for f, b in pairs]
    try:
        found = built["ridge"](flops, moved, seconds)
        reached = [
            built["attainable"](f / b, peak, bandwidth) for f, b in zip(flops, moved, strict=True)
        ]
    except NotImplementedError:
        sys.exit("ridge() and attainable() are both to be written: build.py says what they return.")
    if not isclose(found, peak / bandwidth, rel_tol=1e-6):
        sys.exit(f"{name}: your ridge is at {found:.4g} FLOP/B; it lies at {peak / bandwidth:.4g}.")
    for f, s, each in zip(flops, seconds, reached, strict=True):
        if not isclose(each, f / s, rel_tol=1e-6):
            sys.exit(f"{name}: {each:.4g} FLOP/s at {f / (8 * ELEMENTS):.4g} FLOP/B; "
                     f"{f / s:.4g} can be reached there.")  # fmt: skip
print("Right.")
