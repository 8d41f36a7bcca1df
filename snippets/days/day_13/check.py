"""Checks build.py, or the file that is named: python check.py [FILE]"""

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent
FILE = sys.argv[1] if len(sys.argv) > 1 else str(HERE / "build.py")
Op = runpy.run_path(str(HERE / "build.py"))["Op"]
POINTWISE, ROW, FULL, MATMUL = "pointwise", "row sum", "full sum", "matmul"
CASES = {
    "sigmoid(relu(x * w + b))": (
        [Op("p", POINTWISE, ("x", "w")), Op("q", POINTWISE, ("p", "b")),
         Op("r", POINTWISE, ("q",)), Op("y", POINTWISE, ("r",))], [0, 0, 0, 0]),
    "x.sin(), x.cos()": ([Op("s", POINTWISE, ("x",)), Op("c", POINTWISE, ("x",))], [0, 0]),
    "x / x.sum(-1)": ([Op("s", ROW, ("x",)), Op("y", POINTWISE, ("x", "s"))], [0, 0]),
    "x / x.sum()": ([Op("s", FULL, ("x",)), Op("y", POINTWISE, ("x", "s"))], [0, 1]),
    "x / x.sum() + x.cos()": (
        [Op("s", FULL, ("x",)), Op("c", POINTWISE, ("x",)), Op("d", POINTWISE, ("x", "s")),
         Op("y", POINTWISE, ("d", "c"))], [0, 0, 1, 1]),
    "relu(a @ b + bias)": (
        [Op("p", MATMUL, ("a", "b")), Op("q", POINTWISE, ("p", "bias")),
         Op("y", POINTWISE, ("q",))], [0, 0, 0]),
    "(x * 2) @ w": ([Op("t", POINTWISE, ("x",)), Op("y", MATMUL, ("t", "w"))], [0, 1]),
    "a @ b @ c": ([Op("p", MATMUL, ("a", "b")), Op("y", MATMUL, ("p", "c"))], [0, 1]),
}  # fmt: skip


def check(kernel_of):
    for said, (ops, wanted) in CASES.items():
        found = kernel_of(ops)
        made = [found[op.makes] for op in ops]
        if made != wanted:
            sys.exit(f"{said}: your kernels are {made}, and {wanted} were wanted.")
        print(f"{said:26} {max(made) + 1} kernel{'s' * (max(made) > 0)}")


try:
    check(runpy.run_path(FILE)["kernel_of"])
except NotImplementedError:
    sys.exit("kernel_of() is still to be written.")
except Exception as error:
    sys.exit(f"{FILE} stopped with {type(error).__name__}: {error}")
print("Right.")
