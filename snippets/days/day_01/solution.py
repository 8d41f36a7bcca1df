"""Day 1: the fuser, written."""

from graph import Op


# --8<-- [start:solution]
def fuse(ops: list[Op]) -> list[list[Op]]:
    """Operations as kernels, in order: neighbours that are both `pointwise` share one, and a
    `matmul` is alone."""
    kernels = []
    for op in ops:
        if kernels and op.kind == kernels[-1][-1].kind == "pointwise":
            kernels[-1].append(op)
        else:
            kernels.append([op])
    return kernels


# --8<-- [end:solution]


def eager(ops: list[Op]) -> list[list[Op]]:
    """As eager PyTorch runs them: a kernel for each."""
    return [[op] for op in ops]
