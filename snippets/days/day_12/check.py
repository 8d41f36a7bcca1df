"""Checks build.py, or the file that is named: python check.py [FILE]"""

import runpy
import sys
from pathlib import Path

FILE = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("build.py"))


def straight(x):
    return (x + 3) * 2


def twice(x):
    x * 5  # nobody takes this result
    return x + 1


def branch(x):
    if x > 0:
        return x * 2
    return x + -1


def check(trace, replay):
    for function in (straight, twice):
        tape = trace(function, 4)
        for x in (4, 7, -2):
            if (found := replay(tape, x)) != function(x):
                sys.exit(f"{function.__name__}({x}) is {function(x)}, and your tape gives {found}.")
    if len(trace(twice, 4)) != 2:
        sys.exit("twice() does two operations, so its tape has two lines.")
    tape = trace(branch, 4)
    if tape != [("*", 0, 2)]:
        sys.exit(f"branch(4) only multiplies, and your tape says {tape}.")
    print(f"branch(-3) is {branch(-3)}. Your tape of branch(4) says {replay(tape, -3)}.")


try:
    built = runpy.run_path(FILE)
    check(built["trace"], built["replay"])
except NotImplementedError:
    sys.exit("record(), trace() or replay() is still to be written.")
except Exception as error:
    sys.exit(f"{FILE} stopped with {type(error).__name__}: {error}")
print("Wrong on purpose, as jit.trace is. Right.")
