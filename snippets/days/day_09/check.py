"""Day 9: does your dispatcher stop where it should, and pass by where it should?

python snippets/days/day_09/check.py
"""

import runpy
import sys
from pathlib import Path

FILE = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("build.py"))
built = runpy.run_path(FILE)
ran: list[str] = []


def kernel(name: str, compute=None):
    """One that notes that it ran, and computes, or leaves that to the keys below."""

    def run(go_on, *numbers):
        ran.append(name)
        return compute(*numbers) if compute else go_on(*numbers)

    return run


ADD = {"Autograd": kernel("Autograd"), "CPU": kernel("CPU", lambda a, b: a + b)}
ADD["CUDA"] = kernel("CUDA", lambda a, b: a + b)
# What autocast does to a matmul: it rounds, and goes on.
MATMUL = {
    **ADD,
    "Autocast": lambda go_on, a, b: ran.append("Autocast") or go_on(round(a), round(b)),
}
CASES = [
    ("a call without autograd", ADD, {"CPU"}, ["CPU"], 3.75),
    ("a call with autograd", ADD, {"CPU", "Autograd"}, ["Autograd", "CPU"], 3.75),
    ("an addition under autocast", ADD, {"CUDA", "Autocast"}, ["CUDA"], 3.75),
    ("a matmul under autocast", MATMUL, {"CPU", "Autocast"}, ["Autocast", "CPU"], 4),
]

for name, table, keys, expected, result in CASES:
    ran.clear()
    try:
        got = built["call"](table, set(keys), 1.5, 2.25)
    except NotImplementedError:
        sys.exit("call() is still to be written: build.py says what it does.")
    except RecursionError:
        sys.exit(f"{name}: a kernel went on, and came to itself again. Go on below its key.")
    except Exception as error:
        sys.exit(f"{name}: your call() raised {type(error).__name__}: {error}.")
    if ran != expected or got != result:
        sys.exit(f"{name}: {ran} ran and gave {got}; {expected} should, and give {result}.")
try:
    built["call"](ADD, {"Autocast"}, 1.5, 2.25)
except LookupError:
    print("Right.")
else:
    sys.exit("A call for which no kernel is left must raise a LookupError.")
