"""Checks build.py, or the file that is named: python check.py [FILE]"""

import runpy
import sys
from pathlib import Path

FILE = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("build.py"))


def is_(found, right, hint):
    if found != right:
        sys.exit(f"You give {found}, and it should be {right}. Think of this: {hint}.")


def check(make):
    a = make()
    first, second = a.take(64), a.take(32)
    is_((first, second), ((0, 0), (1, 0)), "an empty cache asks the driver for each block")
    a.give_back(*first)
    is_(a.take(40), (0, 0), "a free piece that is large enough is used, and no new segment")
    is_(a.segments[0], [[0, 40, True], [40, 24, False]], "what is left of a piece stays free")
    is_(a.take(30), (2, 0), "24 bytes are free, and a block of 30 does not fit there")
    a.give_back(*second)
    is_(a.take(20), (0, 40), "of two pieces with room the smaller one is the better fit")
    a.give_back(0, 40)
    is_(a.segments[0], [[0, 40, True], [40, 24, False]], "free neighbours become one piece again")
    a.give_back(0, 0)
    is_(a.segments[0], [[0, 64, False]], "free neighbours become one piece again")
    is_(a.take(64), (0, 0), "a piece that is whole again has room for what it had before")
    b = make()
    blocks = [b.take(64) for _ in range(4)]
    for block in blocks:
        b.give_back(*block)
    for _ in blocks:
        b.take(40)
    free = sum(p[1] for pieces in b.segments for p in pieces if not p[2])
    is_((free, b.take(48)), (96, (4, 0)), "96 bytes are free in four pieces, and 48 fit in none")


try:
    check(runpy.run_path(FILE)["Allocator"])
except NotImplementedError:
    sys.exit("take() and give_back() are still to be written.")
except Exception as error:
    sys.exit(f"{FILE} stopped with {type(error).__name__}: {error}")
print("Taken, split, merged, and fragmented as PyTorch's. Right.")
