"""A first CUDA kernel: it adds two vectors, one element a thread. Compiled by NVRTC, which comes
with PyTorch; no CUDA toolkit is needed.

    python snippets/days/day_03/first_cuda.py [FILE.cu]

A file of your own is launched with 7 blocks, whose threads have several elements each to add.
"""

import sys
from pathlib import Path

import torch
from torch.utils import cpp_extension

KERNELS = Path(__file__).resolve().parents[2] / "kernels"


# --8<-- [start:launch]
def add(a, b, file=KERNELS / "vector_add.cu", threads=256, blocks=None):
    source = Path(file).read_text()
    vector_add = torch.cuda._compile_kernel(source, "vector_add")
    total = torch.zeros_like(a)
    blocks = blocks or -(-a.numel() // threads)  # rounded up
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
    total = add(a, b, file=sys.argv[1], blocks=7) if len(sys.argv) > 1 else add(a, b)
    torch.testing.assert_close(total, a + b)
    print("Right.")
