"""Day 5: what a stride costs, in PyTorch alone, on a GPU or a CPU.

Run it:  python strides.py [ELEMENTS]
Every sum reads as many floats: what grows with the stride is the memory that
they lie in.
"""

import sys
import time

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ELEMENTS = int(sys.argv[1]) if len(sys.argv) > 1 else 2**21  # of each sum
STRIDES = (1, 2, 4, 8, 16, 32, 64, 128)


def seconds(x: torch.Tensor) -> float:
    """The shortest of ten sums: another program can only make one longer."""
    taken = []
    for _ in range(12):
        start = time.perf_counter()
        x.sum().item()  # waits until the sum is there
        taken.append(time.perf_counter() - start)
    return min(taken[2:])


x = torch.rand(ELEMENTS * STRIDES[-1], device=DEVICE)
first = None
for stride in STRIDES:
    took = seconds(x[: ELEMENTS * stride : stride])  # (ELEMENTS,)
    first = first or took
    times = took / first
    print(f"stride {stride:3}: {took * 1e3:8.3f} ms, {times:.1f} × stride 1")
