"""Plan the kernels: fill in kernel_of(), about five lines, and run check.py."""

from typing import NamedTuple


class Op(NamedTuple):
    """One operation: the tensor that it makes, its kind, and the tensors that it takes.

    `kind` is `pointwise`, `row sum` (one number for each row), `full sum` (one number for all) or
    `matmul`.
    """

    makes: str
    kind: str
    takes: tuple[str, ...]


def kernel_of(ops):
    """The number of the kernel in which each tensor is made, from 0, as a dictionary.

    Every operation goes into the earliest kernel that it can. It can be in that of a tensor that
    it takes, with two exceptions. What takes a `full sum` needs a later kernel, for all of the sum
    must be there. And a `matmul` needs one later than every tensor that it takes, for it reads
    whole rows and columns. What follows a matmul may share its kernel, as an epilogue.
    """
    raise NotImplementedError
