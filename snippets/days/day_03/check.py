"""Checks build.py, or the file that is named: python check.py [FILE]"""

import runpy
import sys
from itertools import pairwise
from pathlib import Path

FILE = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("build.py"))
SHAPES = [(1, 4, 4), (3, 4, 12), (3, 4, 10), (2, 8, 100), (4, 32, 5), (1, 1, 7)]


def check(elements_of):
    for blocks, threads, count in SHAPES:
        said = f"{blocks} blocks of {threads} threads, {count} elements"
        each = [
            [list(elements_of(b, t, blocks, threads, count)) for t in range(threads)]
            for b in range(blocks)
        ]
        every = [i for block in each for mine in block for i in mine]
        if beyond := [i for i in every if not 0 <= i < count]:
            sys.exit(f"{said}: element {beyond[0]} does not exist. What does `if (i < count)` do?")
        if missing := sorted(set(range(count)) - set(every)):
            sys.exit(f"{said}: nobody adds element {missing[0]}.")
        if len(every) > count:
            sys.exit(f"{said}: an element is added twice.")
        for block in each:
            for mine, next_one in pairwise(block):
                if any(b - a != 1 for a, b in zip(mine, next_one, strict=False)):
                    sys.exit(f"{said}: threads beside each other are at elements that are not.")


try:
    check(runpy.run_path(FILE)["elements_of"])
except NotImplementedError:
    sys.exit("elements_of() is still to be written.")
except Exception as error:
    sys.exit(f"{FILE} stopped with {type(error).__name__}: {error}")
print("Every element once, neighbours beside each other. Right.")
