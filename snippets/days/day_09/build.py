"""Day 9: write a dispatcher. About eight lines."""

from collections.abc import Callable

# A kernel is given what goes on to the keys below its own, and the numbers of the call.
Kernel = Callable[..., float]

PRIORITY = ("Autocast", "Autograd", "CUDA", "CPU")  # who comes first, comes first


def call(table: dict[str, Kernel], keys: set[str], *numbers: float) -> float:
    """Run an operator: `table` has its kernels by key, and `keys` are those of this call.

    The first key of `PRIORITY` that the call has and the operator has a kernel for is the one that
    runs; a key without a kernel is passed by. The kernel is called with a function and the numbers.
    That function takes numbers, and calls the operator again with the keys below this one alone.
    Where no key is left, a LookupError says so.
    """
    raise NotImplementedError
