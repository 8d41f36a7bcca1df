"""Day 1: does your fuser fuse what it may, and nothing else?

python snippets/days/day_01/check.py
"""

import runpy
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from graph import LAYER, Op, trips

FILE = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("build.py"))
built = runpy.run_path(FILE)
POINTWISE = [Op(b, "pointwise", (a,)) for a, b in ("ab", "bc", "cd")]
CASES = {
    "relu(x @ W + b)": (LAYER, [1, 2]),
    "three pointwise operations": (POINTWISE, [3]),
    "two layers": ([*LAYER, Op("v", "matmul", ("h", "V")), Op("u", "pointwise", ("v",))],
                   [1, 2, 1, 1]),
    "two matmuls": ([LAYER[0], Op("v", "matmul", ("y", "V"))], [1, 1]),
    "nothing": ([], []),
}  # fmt: skip

for name, (ops, wanted) in CASES.items():
    try:
        kernels = built["fuse"](ops)
    except NotImplementedError:
        sys.exit("fuse() is still to be written: build.py says what it returns.")
    found = [len(kernel) for kernel in kernels]
    if found != wanted:
        sys.exit(f"{name}: your kernels have {found} operations, and {wanted} were wanted.")
    if [op for kernel in kernels for op in kernel] != ops:
        sys.exit(f"{name}: the operations are no longer those given, in their order.")
before, after = (trips(built[way](LAYER)) for way in ("eager", "fuse"))
print(f"relu(x @ W + b): {before} trips of a tensor eager, {after} fused.")
print("Right.")
