"""Matrix products by number format, on random numbers: zeros draw less power and run faster."""

from collections.abc import Sequence

import pandas as pd
import torch
from torch import Tensor

from anatomy.comparison import compare
from anatomy.measure import stopwatch_for
from anatomy.numerics import formats
from anatomy.numerics.agreement import ALLOWED, ALLOWED_TF32
from anatomy.parts.repeats import least_calls
from anatomy.table import formulas

Side = tuple[int, int, int]  # M, N, K

FP8_CAPABILITY = (8, 9)  # tensor cores of this compute capability and later multiply fp8
# How far a product of fp8 factors may stray from the float64 product of the same factors, that is
# after their rounding to fp8. What is left is the rounding of the result to bfloat16 (2**-9 at
# most; 2**-6 are allowed as for other bfloat16 products), and the sums: with fast accumulation
# Hopper keeps about 14 bits of a running sum, and drops what is below at each of the K / 32 steps.
# Over K = 16384 that adds up to about 1 % of the result.
ALLOWED_FP8 = {False: ALLOWED[torch.bfloat16], True: 2**-5}


def products(dtype: str, sides: Sequence[Side], where: torch.device, iters: int) -> pd.DataFrame:
    """Time products whose factors and result are of one number format: fp16, bf16, tf32 or fp32."""
    kind, size = formats.storage(dtype), formats.itemsize(dtype)
    calls, references, flops, moved = {}, {}, {}, {}
    for m, n, k in sides:
        a = torch.randn(m, k, dtype=kind, device=where)  # (M, K)
        b = torch.randn(k, n, dtype=kind, device=where)  # (K, N)
        name = f"{m} x {n} x {k}"
        calls[name] = lambda a=a, b=b: a @ b
        references[name] = lambda a=a, b=b: a.to(torch.float64) @ b.to(torch.float64)
        flops[name] = formulas.matmul_flops(m, n, k)
        moved[name] = formulas.matmul_bytes(m, n, k, size)
    with formats.products_in(dtype), torch.inference_mode():
        return compare(
            calls,
            reference=references,
            allowed=ALLOWED_TF32 if dtype == "tf32" else ALLOWED[kind],
            quantity="gpu_warm",
            op=f"matmul {dtype}",
            flops=flops,
            bytes=moved,
            limit=f"matmul {dtype}",
            device=where,
            iters=least_calls(iters, calls.values(), stopwatch_for(where)),
        ).table


def fp8_products(sides: Sequence[Side], where: torch.device, iters: int) -> pd.DataFrame:
    """Time products of e4m3 factors (sides: multiples of 16), in both ways of summing."""
    why = without_fp8(where)
    if why is not None:
        unmeasured = {"op": "matmul fp8", "variant": "e4m3 x e4m3", "limit": "matmul fp8"}
        unmeasured |= {"quantity": "gpu_warm", "role": "variant", "device": where.type}
        return pd.DataFrame([unmeasured | {"note": why}])
    calls, references, allowed, flops, moved = {}, {}, {}, {}, {}
    one = torch.ones((), dtype=torch.float32, device=where)
    for m, n, k in sides:
        a, b = fp8_factors(m, n, k, where)
        for fast in (False, True):
            name = f"{m} x {n} x {k}, {'fast' if fast else 'precise'} sums"
            calls[name] = lambda a=a, b=b, fast=fast: fp8_product(a, b, one, fast=fast)
            references[name] = lambda a=a, b=b: a.to(torch.float64) @ b.to(torch.float64)
            allowed[name] = ALLOWED_FP8[fast]
            flops[name] = formulas.matmul_flops(m, n, k)
            moved[name] = (m * k + k * n) * a.itemsize + m * n * torch.bfloat16.itemsize
    with torch.inference_mode():
        return compare(
            calls,
            reference=references,
            allowed=allowed,
            quantity="gpu_warm",
            op="matmul fp8",
            flops=flops,
            bytes=moved,
            limit="matmul fp8",
            device=where,
            iters=iters,
        ).table


def fp8_factors(m: int, n: int, k: int, where: torch.device) -> tuple[Tensor, Tensor]:
    """A (M x K, row by row) and B (K x N, column by column, as the hardware asks for) in e4m3."""
    # Normal values: none of them reaches e4m3's largest, 448, and their scales are 1.
    a = torch.randn(m, k, device=where).to(torch.float8_e4m3fn)
    b = torch.randn(n, k, device=where).to(torch.float8_e4m3fn)
    return a, b.t()


def fp8_product(a: Tensor, b: Tensor, scale: Tensor, *, fast: bool) -> Tensor:
    """A @ B in bfloat16, of fp8 factors times one scale each (a float32 scalar)."""
    return torch._scaled_mm(
        a, b, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16, use_fast_accum=fast
    )


def without_fp8(where: torch.device) -> str | None:
    """Why products of fp8 are not measured on a device, or None if they are."""
    least = "sm_{}{}".format(*FP8_CAPABILITY)
    if where.type != "cuda" or torch.version.hip is not None:
        here = where.type if torch.version.hip is None else "ROCm"
        return f"not supported on {here}: fp8 products need an NVIDIA GPU of {least} or later"
    capability = torch.cuda.get_device_capability(where)
    if capability < FP8_CAPABILITY:
        return "not supported on sm_{}{}: ".format(*capability) + f"fp8 products need {least}"
    try:
        a, b = fp8_factors(16, 16, 16, where)
        fp8_product(a, b, torch.ones((), device=where), fast=False)
    except (RuntimeError, NotImplementedError) as error:
        # Windows and some builds have the hardware and no library for it.
        return f"not supported by this PyTorch: {str(error).splitlines()[0][:120]}"
    return None
