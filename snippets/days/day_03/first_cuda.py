"""A first CUDA kernel: it adds two vectors, one element a thread. Compiled by NVRTC, which comes
with PyTorch; no CUDA toolkit is needed.

    python snippets/days/day_03/first_cuda.py
"""

from pathlib import Path

import torch
from torch.utils import cpp_extension

KERNELS = Path(__file__).resolve().parents[2] / "kernels"


# --8<-- [start:launch]
def add(a, b, threads=256):
    source = (KERNELS / "vector_add.cu").read_text()
    vector_add = torch.cuda._compile_kernel(source, "vector_add")
    total = torch.empty_like(a)
    blocks = -(-a.numel() // threads)  # rounded up
    grid, block = (blocks, 1, 1), (threads, 1, 1)
    vector_add(grid, block, args=[a, b, total, a.numel()])
    return total


# --8<-- [end:launch]

if __name__ == "__main__":
    if not torch.cuda.is_available():
        raise SystemExit("A CUDA kernel needs an NVIDIA GPU; first_triton.py runs without one.")
    if cpp_extension.CUDA_HOME is None:
        cpp_extension.CUDA_HOME = str(KERNELS)  # PyTorch asks for headers; this kernel has none
    a, b = torch.randn(2, 98_432, device="cuda")
    torch.testing.assert_close(add(a, b), a + b)
    print("Right.")
