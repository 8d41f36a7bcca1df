"""What the same card multiplies at best, by number format, in the same run as the rungs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.ladder import requirements
from anatomy.comparison import compare
from anatomy.numerics import formats
from anatomy.numerics.agreement import ALLOWED, ALLOWED_TF32
from anatomy.parts import grid
from anatomy.parts.products import ALLOWED_FP8, fp8_factors, fp8_product, without_fp8
from anatomy.table import formulas

QUANTITY = "gpu_warm"
BUDGET_S, SETTLE_S = 1.0, 0.4  # the first look mostly takes a part of the budget


@dataclass(frozen=True)
class Ceiling:
    """The highest rate seen in one number format, with its interval, in FLOP/s."""

    value: float
    low: float
    high: float


def measured(
    own: Sequence[tuple[int, int, int]], where: torch.device, iters: int, scale: float = 1.0
) -> pd.DataFrame:
    """Time large products of each number format, and in bf16 the model's own, of M, N and K `own`:
    a comparison of op `ceiling bf16` and the like, or a row that says why there is none."""
    op_of = {requirements.ceiling_op(products): products for products in requirements.SIDES}

    def measure(cell: grid.Cell) -> pd.DataFrame:
        products = cell["products"]
        if products == "fp8" and (reason := without_fp8(where)):
            return grid.unmeasured(cell, {products: reason}, quantity=QUANTITY, where=where)
        return _compared(products, requirements.ceiling_sides(products, own, scale), where, iters)

    return grid.measure_cells(
        ({"op": op, "products": products} for op, products in op_of.items()),
        measure,
        variants=lambda cell: (cell["products"],),
        quantity=QUANTITY,
        where=where,
        required=requirements.ceilings(own, scale),
        foreseen=(RuntimeError,),
    )


def _compared(products: str, sides: list, where: torch.device, iters: int) -> pd.DataFrame:
    """The comparison of one number format, whose reference is `_exact`."""
    calls: dict[str, Callable[[], Tensor]] = {}
    references: dict[str, Callable[[], Tensor]] = {}
    flops = {}
    for m, n, k in sides:
        name = f"{m} x {n} x {k}"
        if products == "fp8":
            a, b = fp8_factors(m, n, k, where)
            one = torch.ones((), dtype=torch.float32, device=where)
            calls[name] = lambda a=a, b=b, one=one: fp8_product(a, b, one, fast=True)
        else:
            kind = formats.storage(products)
            a = torch.randn(m, k, device=where).to(kind)  # (M, K)
            b = torch.randn(k, n, device=where).to(kind)  # (K, N)
            calls[name] = lambda a=a, b=b: a @ b
        references[name] = lambda a=a, b=b: _exact(a, b, products)
        flops[name] = formulas.matmul_flops(m, n, k)
    allowed = {"fp8": ALLOWED_FP8[True], "tf32": ALLOWED_TF32}
    with formats.products_in(products), torch.inference_mode():
        return compare(
            calls,
            reference=references,
            allowed=allowed.get(products, ALLOWED[formats.STORAGE.get(products, torch.bfloat16)]),
            quantity=QUANTITY,
            op=requirements.ceiling_op(products),
            flops=flops,
            limit=f"matmul {products}",
            device=where,
            iters=iters,
            budget_s=BUDGET_S,
            settle_cap_s=SETTLE_S,
            profile=False,
        ).table


def _exact(a: Tensor, b: Tensor, products: str) -> Tensor:
    """The product in more precision: in float64 only where it must, few cards are fast in it."""
    wide = torch.float64 if products == "fp32" else torch.float32
    with formats.products_in("fp32"):
        return a.to(wide) @ b.to(wide)


def highest(table: pd.DataFrame | None) -> dict[str, Ceiling]:
    """The highest rate of each number format in a table of `measured`; None has none."""
    found: dict[str, Ceiling] = {}
    if table is None or "median_s" not in table:
        return found
    for row in table[table.median_s.notna()].itertuples():
        if row.role == "again" or row.verdict == "impossible":
            continue
        here = Ceiling(*(row.flops / seconds for seconds in (row.median_s, row.high_s, row.low_s)))
        if row.products not in found or here.value > found[row.products].value:
            found[row.products] = here
    return found
