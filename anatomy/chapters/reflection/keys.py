"""The quiz's keys: each a factor times powers of four numbers of a machine, which Python computes
from its limits, and docs/assets/reflection.js from a reader's own numbers."""

import json
from collections.abc import Mapping
from html import escape
from math import prod
from typing import NamedTuple

from anatomy.judge.limits import Ceilings
from anatomy.table import units

A100 = "nvidia-a100-80-sxm"  # whose keys, by its datasheet, stand beside those of the machine shown


class Constant(NamedTuple):
    """A number of a machine: the limit that it is, and 10^12 of what a reader types."""

    limit: str
    about: str
    unit: str


class Key(NamedTuple):
    """What is right, in the unit printed: a factor times powers of constants in base units."""

    factor: float
    powers: dict[str, int]
    unit: str

    def of(self, numbers: Mapping[str, float]) -> str | None:
        """The key as it is printed; None where one of its constants is not known."""
        if not self.powers.keys() <= numbers.keys():
            return None
        value = self.factor * prod(numbers[name] ** power for name, power in self.powers.items())
        return f"{units.significant(value)}{'' if self.unit == '%' else ' '}{self.unit}"


CONSTANTS = {
    "copy": Constant("copy", "Copies from HBM, read and written", "TB/s"),
    "read": Constant("read", "Reads from HBM", "TB/s"),
    "bf16": Constant("matmul bf16", "Matmuls in bf16", "TFLOP/s"),
    "fp32": Constant("matmul fp32", "Matmuls in fp32 without TF32", "TFLOP/s"),
}
KEYS = {
    "bf16-ridge": Key(1, {"bf16": 1, "copy": -1}, "FLOP/B"),
    "fp32-ridge": Key(1, {"fp32": 1, "copy": -1}, "FLOP/B"),
    "chain-saved": Key((40 - 16) * 2**26 * 1000, {"copy": -1}, "ms"),  # 40 bytes an element less 16
    "read-share": Key(2**30 / 0.001 * 100, {"read": -1}, "%"),
    "relu-busy": Key(1 / 8 * 100, {"copy": 1, "fp32": -1}, "%"),  # one operation for 8 bytes
}


def numbers(ceilings: Ceilings) -> dict[str, float]:
    """A machine's constants in base units; those that nobody knows are left out."""
    found = {name: ceilings.get(each.limit) for name, each in CONSTANTS.items()}
    return {name: ceiling.value for name, ceiling in found.items() if ceiling}


def own_numbers() -> str:
    """Where a script lets readers type the four numbers of their machine, or paste them."""
    fields = [{"name": name, **each._asdict()} for name, each in CONSTANTS.items()]
    without = "Keys by your own numbers need JavaScript. The formulas are in the table of all keys."
    return f'<div class="own-numbers" data-fields="{escape(json.dumps(fields))}">{without}</div>\n'
