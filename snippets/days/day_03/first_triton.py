"""A first Triton kernel: it adds two vectors, a block of elements at a time.

Run it on a GPU, or anywhere by Triton's interpreter, which is slow and right:

    python snippets/days/day_03/first_triton.py
    TRITON_INTERPRET=1 python snippets/days/day_03/first_triton.py
"""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def add_kernel(a, b, total, count, BLOCK: tl.constexpr):
    # This program's elements, all at once; the last may end outside.
    here = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = here < count
    x = tl.load(a + here, mask=inside)
    y = tl.load(b + here, mask=inside)
    tl.store(total + here, x + y, mask=inside)


def add(a, b, block=1024, warps=4):
    total = torch.empty_like(a)
    grid = (triton.cdiv(a.numel(), block),)
    add_kernel[grid](a, b, total, a.numel(), BLOCK=block, num_warps=warps)
    return total


# --8<-- [end:kernel]

if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    a, b = torch.randn(2, 98_432, device=device)
    torch.testing.assert_close(add(a, b), a + b)
    print("Right.")
