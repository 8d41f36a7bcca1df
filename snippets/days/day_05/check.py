"""Check a count of sectors:  python check.py [FILE]"""

import runpy
import sys
from pathlib import Path

FILE = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("build.py"))
WARP = range(32)
CASES = {
    "32 neighbouring floats": ([4 * t for t in WARP], 4, 4),
    "32 neighbouring floats from byte 4 on": ([4 + 4 * t for t in WARP], 4, 5),
    "every second float": ([8 * t for t in WARP], 4, 8),
    "one column of a matrix of 4096 fp16 columns": ([8192 * t for t in WARP], 2, 32),
    "all threads the same float": ([64] * 32, 4, 1),
    "16 bytes for each thread": ([16 * t for t in WARP], 16, 16),
    "32 neighbouring doubles from byte 4 on": ([4 + 8 * t for t in WARP], 8, 9),
    "a gather of 4 bytes across the end of a sector": ([29], 4, 2),
}

sectors = runpy.run_path(FILE)["sectors"]
for name, (addresses, size, right) in CASES.items():
    try:
        found = sectors(addresses, size)
    except NotImplementedError:
        sys.exit("sectors() is still to be written.")
    if found != right:
        sys.exit(f"{name}: you count {found} sectors, and there are {right}.")
    print(f"{name}: {right}")
print("Right.")
