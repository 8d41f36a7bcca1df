"""Checks build.py, or the file that is named: python check.py [FILE]"""

import runpy
import sys
from pathlib import Path

FILE = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("build.py"))
# Threads, registers of each, KiB of shared memory -> blocks, and what a wrong answer forgets.
CASES = [
    ((256, 16, 0), 8, "the SM has room for 2,048 threads"),
    ((32, 16, 0), 32, "an SM holds 32 blocks at most, however small"),
    ((1024, 64, 0), 1, "1,024 threads of 64 registers each take all 65,536"),
    ((128, 128, 0), 4, "registers: each thread of each block has its own"),
    ((256, 32, 100), 2, "shared memory: 228 KiB for all blocks together"),
    ((256, 32, 113), 2, "1 KiB of shared memory is kept back for every block"),
    ((256, 32, 114), 1, "1 KiB of shared memory is kept back for every block"),
    ((48, 200, 0), 5, "48 threads are two warps, and take the registers of 64 threads"),
]

try:
    blocks_per_sm = runpy.run_path(FILE)["blocks_per_sm"]
    for (threads, registers, kib), right, hint in CASES:
        got = blocks_per_sm(threads, registers, kib * 1024)
        if got != right:
            asked = f"{threads} threads of {registers} registers, {kib} KiB of shared memory"
            sys.exit(f"{asked}: {got} blocks, and it should be {right}. Think of this: {hint}.")
except NotImplementedError:
    sys.exit("blocks_per_sm() is still to be written.")
except Exception as error:
    sys.exit(f"{FILE} stopped with {type(error).__name__}: {error}")
print(f"All {len(CASES)} cases. Right.")
