"""What an experiment requires of a device, said before it starts and without torch: by experiments,
which leave out what can't be had, and by a plan, on a machine that need not have a GPU.

A chapter's requirements lie in its `requirements.py`, one function for each experiment that takes
any memory to speak of. It is given the device, as far as it is known, and what it names of the
experiment's parameters:

    @requires("channels_last.map")
    def map(on: Capacity, dtype: str, scale: float, full: bool) -> Iterator[Requirement]:
        ...
            yield Requirement("C=64 inference bf16 N=64", 3 * images, "bf16")
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from anatomy.table import chapters, units

# What is taken beside an experiment's own tensors: the buffer that empties the cache, libraries'
# workspaces, gaps between the allocator's blocks.
BESIDE_BYTES = 2**29
ITEM_BYTES = {"fp8": 1, "fp16": 2, "bf16": 2, "fp32": 4, "tf32": 4, "fp64": 8}
# Number format -> the first compute capability that has it in hardware. Before, PyTorch computes
# bf16 by way of float32, and takes no notice of the switch for TF32.
LEAST_CAPABILITY = {"bf16": (8, 0), "tf32": (8, 0), "fp8": (8, 9)}
UNKNOWN_CACHE_BYTES = 64 * 2**20  # about what the larger cards of today have


@dataclass(frozen=True)
class Capacity:
    """What a device has for an experiment; what is None is not known, and keeps nothing away."""

    free_bytes: int | None = None
    capability: tuple[int, int] | None = None  # None of a CPU, too, which has every format
    cache_bytes: int = UNKNOWN_CACHE_BYTES  # of its last level


@dataclass(frozen=True)
class Requirement:
    """What the rows of one `op` take of a device, at the worst moment."""

    op: str
    bytes: int  # in tensors, those of the check against a reference among them
    dtype: str = "fp32"  # the number format that the hardware must have

    @property
    def needed(self) -> int:
        """Bytes with what is taken beside the experiment's own tensors."""
        return self.bytes + BESIDE_BYTES

    def why_not(self, on: Capacity) -> str:
        """Why these rows can't be measured there, as their note; empty where they can."""
        if why := without_format(self.dtype, on):
            return why
        if on.free_bytes is None or self.needed <= on.free_bytes:
            return ""
        place = "on this host" if on.capability is None else "on this card"
        free = units.byte_count(on.free_bytes)
        return f"needs {units.byte_count(self.needed)}; {free} are free {place}"


Declared = Callable[..., Iterable[Requirement]]
_declared: dict[str, Declared] = {}


def without_format(dtype: str, on: Capacity) -> str:
    """Why a device does not compute in a number format, as a row's note; empty where it does."""
    least = LEAST_CAPABILITY.get(dtype, (0, 0))
    if on.capability is None or on.capability >= least:
        return ""
    return "not supported on sm_{}{}: {} products need sm_{}{}".format(
        *on.capability, dtype, *least
    )


def requires(*experiments: str) -> Callable[[Declared], Declared]:
    """Declare a function to say what these experiments require."""

    def declare(function: Declared) -> Declared:
        _declared.update(dict.fromkeys(experiments, function))
        return function

    return declare


@cache
def declared() -> Mapping[str, Declared]:
    """What says what an experiment requires, by the experiment's name."""
    chapters.load("requirements")
    return _declared


def required(name: str, params: Mapping[str, Any], on: Capacity) -> list[Requirement] | None:
    """What an experiment with these parameters requires, row by row; None where it does not say."""
    if (function := declared().get(name)) is None:
        return None
    named = inspect.signature(function).parameters
    return list(function(on, **{each: value for each, value in params.items() if each in named}))


def left_out(wanted: Iterable[Requirement], on: Capacity) -> dict[str, str]:
    """Which rows can't be measured there, by their `op`, and why."""
    return {each.op: why for each in wanted if (why := each.why_not(on))}


def told(wanted: list[Requirement] | None, on: Capacity) -> str | None:
    """For a plan, what is required, in a few words: `18.4 GiB; takes 7.1 GiB, leaves out 2 of 9`.
    None where nobody says."""
    if wanted is None:
        return None
    left = left_out(wanted, on)
    most = units.byte_count(max((each.needed for each in wanted), default=BESIDE_BYTES))
    if not left:
        return most
    kept = [each.needed for each in wanted if each.op not in left]
    takes = f"takes {units.byte_count(max(kept))}, " if kept else ""
    return f"{most}; {takes}leaves out {len(left)} of {len(wanted)}"
