"""Checks build.py, or the file that is named: python check.py [FILE]"""

import runpy
import sys
from math import isclose
from pathlib import Path

FILE = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("build.py"))


def ran(*spans, cat="kernel"):
    return [{"ph": "X", "cat": cat, "ts": start, "dur": end - start} for start, end in spans]


OTHERS = [
    {"ph": "M", "name": "process_name", "args": {"name": "python"}},
    {"ph": "X", "cat": "cpu_op", "ts": 0, "dur": 500},
    {"ph": "X", "cat": "cuda_runtime", "ts": 0, "dur": 7},
    {"ph": "X", "cat": "gpu_user_annotation", "ts": 0, "dur": 400},
]
CASES = [
    (ran((100, 200), (200, 400)), 0.0, "kernels that follow each other leave no gap"),
    (ran((100, 200), (300, 400)), 1 / 3, "the time runs from the first start to the last end"),
    (ran((300, 400), (100, 200)), 1 / 3, "events of a trace stand in no order"),
    (OTHERS + ran((100, 200), (300, 400)), 1 / 3, "only what ran on the GPU counts"),
    (ran((0, 100)) + ran((300, 400), cat="gpu_memcpy"), 0.5, "a copy keeps the GPU busy, too"),
    (ran((0, 200), (100, 300), (400, 500)), 0.2, "two kernels at a time count once"),
    (ran((0, 300), (100, 200), (400, 500)), 0.2, "a kernel may lie inside of another one"),
    (OTHERS, None, "a trace may hold no kernel at all"),
]

try:
    idle_share = runpy.run_path(FILE)["idle_share"]
    for events, right, hint in CASES:
        got = idle_share(events)
        if got is None or right is None:
            same = got is right
        else:
            same = isclose(got, right, abs_tol=1e-9)
        if not same:
            sys.exit(f"You say {got}, and it is {right}. Think of this: {hint}.")
except NotImplementedError:
    sys.exit("idle_share() is still to be written.")
except Exception as error:
    sys.exit(f"{FILE} stopped with {type(error).__name__}: {error}")
print(f"All {len(CASES)} traces. Right.")
