"""Ask a matrix whether a kernel that loads 16 bytes at a time can read it as it lies.

Run it alone:  python snippets/alignment_check.py
Source: NVIDIA CUDA C++ Programming Guide, tensor memory accelerator: addresses and strides are
multiples of 16 bytes.
"""

import torch
from torch import Tensor


# --8<-- [start:check]
def alignment(a: Tensor, to: int = 16) -> str:
    """`ok`, or which of base, leading dimension and K of `a`
    (M, K) is not a multiple of `to` bytes."""
    if 1 not in a.stride():
        return "copied first"
    size = a.element_size()
    counts = {
        "base": a.data_ptr(),
        "ld": max(a.stride()) * size,
        "K": a.shape[1] * size,
    }
    return ", ".join(name for name, n in counts.items() if n % to) or "ok"


# --8<-- [end:check]


if __name__ == "__main__":
    a = torch.empty(4096, 4096, dtype=torch.float16)  # (M, K)
    for name, view in {
        "A": a,
        "A.t()": a.t(),
        "A[:, 1:]": a[:, 1:],
        "A[:, ::2]": a[:, ::2],
    }.items():
        print(f"{name:10} {alignment(view)}")
