"""The quiz's keys: one formula each over four numbers of a machine, for Python and for the
browser.

A formula is arithmetic over the names in `CONSTANTS`. `tree` reads it once; `value` computes it
here, and docs/assets/reflection.js computes the same tree from a reader's own numbers."""

import ast
import operator
from collections.abc import Mapping
from typing import NamedTuple

from anatomy.judge.limits import Ceilings
from anatomy.table import units
from anatomy.table.errors import BadParameter, lookup

A100 = "nvidia-a100-80-sxm"  # its datasheet is the column beside the machine shown
Tree = str | float | list  # a constant's name, a number, or [sign, left, right]
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_DO = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


class Constant(NamedTuple):
    """A number of a machine: the limit that it is, and the unit in which a reader types it."""

    limit: str
    about: str
    unit: str
    size: float  # of the unit, in base units


class Key(NamedTuple):
    """What is right: a formula in the unit printed, and how it comes about, in words."""

    asks: str
    formula: str
    unit: str
    how: str

    def of(self, numbers: Mapping[str, float]) -> str:
        """The key as it is printed, for a machine's numbers in base units."""
        found = units.significant(value(tree(self.formula), numbers))
        return f"{found}{'' if self.unit == '%' else ' '}{self.unit}"


CONSTANTS = {
    "copy": Constant("copy", "Copies from HBM, read and written", "TB/s", 1e12),
    "read": Constant("read", "Reads from HBM", "TB/s", 1e12),
    "bf16": Constant("matmul bf16", "Matmuls in bf16", "TFLOP/s", 1e12),
    "fp32": Constant("matmul fp32", "Matmuls in fp32 without TF32", "TFLOP/s", 1e12),
}
KEYS = {
    "bf16-ridge": Key(
        "Ridge point of bf16 matmuls",
        "bf16 / copy",
        "FLOP/B",
        "Operations in a second over bytes in a second.",
    ),
    "fp32-ridge": Key(
        "Ridge point of fp32 matmuls", "fp32 / copy", "FLOP/B", "The same for the units of FP32."
    ),
    "chain-saved": Key(
        "Time that fusing the chain saves at most",
        "(40 - 16) * 67108864 / copy * 1000",
        "ms",
        "40 bytes an element less 16, times 2^26 elements, over the bandwidth of a copy.",
    ),
    "read-share": Key(
        "Share of its roof of a kernel that reads a GiB in a millisecond",
        "1073741824 / 0.001 / read * 100",
        "%",
        "Its bytes in a second over those that a read reaches.",
    ),
    "relu-busy": Key(
        "Share of the FP32 peak that a ReLU can use",
        "0.125 * copy / fp32 * 100",
        "%",
        "One operation for 8 bytes, at the bandwidth of a copy, over the FP32 peak.",
    ),
}


def tree(formula: str) -> Tree:
    """A formula as nested lists; BadParameter where it is more than arithmetic over `CONSTANTS`."""

    def read(node: ast.expr) -> Tree:
        match node:
            case ast.BinOp(left, sign, right) if type(sign) in _SIGNS:
                return [_SIGNS[type(sign)], read(left), read(right)]
            case ast.Name(name):
                lookup("constant of a key", name, CONSTANTS)
                return name
            case ast.Constant(int() | float() as number):
                return number
        raise BadParameter(f"{formula!r}: {ast.unparse(node)} is no arithmetic over constants.")

    return read(ast.parse(formula, mode="eval").body)


def value(what: Tree, numbers: Mapping[str, float]) -> float:
    """A tree's number, from a machine's constants in base units."""
    if isinstance(what, list):
        sign, left, right = what
        return _DO[sign](value(left, numbers), value(right, numbers))
    return numbers[what] if isinstance(what, str) else float(what)


def names(formula: str) -> set[str]:
    """The constants that a formula needs."""
    return {node.id for node in ast.walk(ast.parse(formula)) if isinstance(node, ast.Name)}


def numbers(ceilings: Ceilings) -> dict[str, float]:
    """A machine's constants in base units; those that nobody knows are left out."""
    found = {name: ceilings.get(each.limit) for name, each in CONSTANTS.items()}
    return {name: ceiling.value for name, ceiling in found.items() if ceiling}
