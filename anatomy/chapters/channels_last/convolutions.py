"""The switches of cuDNN that decide which kernels a convolution gets."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from anatomy.numerics import formats


@contextmanager
def convolutions_in(dtype: str, tuned: bool = False) -> Iterator[None]:
    """Convolutions and products round float32 to TF32 if `dtype` is `tf32`, and else do not.

    PyTorch's own default lets convolutions, and not products, round. Both switches are global to
    the process, and so is `cudnn.benchmark`; all are put back afterwards.

    Args:
        dtype: Number format.
        tuned: Whether cuDNN tries its algorithms at the first call instead of guessing.
    """
    cudnn = torch.backends.cudnn
    before = cudnn.allow_tf32, cudnn.benchmark
    cudnn.allow_tf32, cudnn.benchmark = dtype == "tf32", tuned
    try:
        with formats.products_in(dtype):
            yield
    finally:
        cudnn.allow_tf32, cudnn.benchmark = before


def scaled(value: int, scale: float) -> int:
    """A size times `scale`; of a part of it at least 4."""
    return max(4, int(scale * value)) if scale < 1 else int(scale * value)
