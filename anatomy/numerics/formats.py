"""What an experiment's text parameters mean to torch: devices, and number formats.

`tf32` is not a storage type: its tensors are float32, and the tensor cores may round the factors of
a product to 10 bits of mantissa. `fp32` here means that they may not.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from anatomy.machine import host

STORAGE = {
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp32": torch.float32,
    "tf32": torch.float32,
}


def torch_device(device: str | torch.device) -> torch.device:
    """The device of that name, known to be there; else a BadParameter or DeviceError says why."""
    kind, index = host.require_device(device)
    return torch.device(kind, index) if kind == "cuda" else torch.device(kind)


def storage(dtype: str) -> torch.dtype:
    """The torch type that holds values of `dtype`."""
    return STORAGE[dtype]


def itemsize(dtype: str) -> int:
    """Bytes per element of `dtype` in memory."""
    return STORAGE[dtype].itemsize


def number_format(dtype: torch.dtype) -> str | None:
    """The number format in which a product with results of `dtype` is computed, as things stand.

    None for a type that no tensor core multiplies.
    """
    if dtype == torch.float32:
        return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "fp32"
    return next((name for name, kind in STORAGE.items() if kind == dtype), None)


@contextmanager
def products_in(dtype: str) -> Iterator[None]:
    """Matrix products of float32 tensors round their factors to TF32 if `dtype` is `tf32`.

    The switch is global to the process; it is put back afterwards.
    """
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
