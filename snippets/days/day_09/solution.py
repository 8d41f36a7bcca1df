"""Day 9: a dispatcher."""

from collections.abc import Callable
from functools import partial

Kernel = Callable[..., float]

PRIORITY = ("Autocast", "Autograd", "CUDA", "CPU")  # who comes first, comes first


# --8<-- [start:solution]
def call(table: dict[str, Kernel], keys: set[str], *numbers: float) -> float:
    """Run an operator: `table` has its kernels by key, and `keys` are those of this call."""
    key = next((key for key in PRIORITY if key in keys and key in table), None)
    if key is None:
        raise LookupError(f"no kernel for the keys {sorted(keys)}")
    below = keys & set(PRIORITY[PRIORITY.index(key) + 1 :])
    return table[key](partial(call, table, below), *numbers)


# --8<-- [end:solution]
