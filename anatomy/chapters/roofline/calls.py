"""The operations of `counts` as calls, each with its exact result in float64."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from anatomy.chapters.roofline.counts import CLASSES, COLUMNS, HEAD, SMALL, Sizes, matmuls
from anatomy.numerics import agreement, formats
from anatomy.parts import attention, products
from anatomy.table.errors import DeviceError

Call = Callable[[], Tensor | list[Tensor]]
Pair = tuple[Call, Call]  # what is timed, and its exact result

PARAMETERS = 16  # tensors of the optimizer


def elementwise(s: Sizes, where: torch.device) -> dict[str, Pair]:
    """Functions of single elements of tensors far larger than the cache."""
    x = torch.randn(s.n, device=where)
    return {
        "relu": (lambda: torch.relu(x), lambda: torch.relu(x.double())),
        "exp": (lambda: torch.exp(x), lambda: torch.exp(x.double())),
        "gelu": (lambda: F.gelu(x), lambda: F.gelu(x.double())),
    }


def short(s: Sizes, where: torch.device) -> dict[str, Pair]:
    """What is over before it has begun, and what stays in the cache."""
    a, b = (torch.randn(SMALL, device=where) for _ in range(2))
    x = torch.randn(s.cached, device=where)
    y = torch.empty_like(x)
    return {
        "add, small": (lambda: a + b, lambda: a.double() + b),
        "multiply, in the L2": (lambda: torch.mul(x, 2.0, out=y), lambda: x.double() * 2.0),
    }


def reductions(s: Sizes, where: torch.device) -> dict[str, Pair]:
    """Of all elements, and of rows."""
    x = torch.rand(s.rows, COLUMNS, device=where)  # positive: their sum is well off 0
    logits = torch.randn(s.n // CLASSES, CLASSES, device=where)
    targets = torch.randint(CLASSES, (len(logits),), device=where)
    shape = (COLUMNS,)
    w, b = (torch.rand(COLUMNS, device=where) for _ in range(2))
    wide = (w.double(), b.double())
    return {
        "sum": (lambda: torch.sum(x), lambda: torch.sum(x, dtype=torch.float64)),
        "softmax": (lambda: x.softmax(1), lambda: x.double().softmax(1)),
        "layer_norm": (
            lambda: F.layer_norm(x, shape, w, b),
            lambda: F.layer_norm(x.double(), shape, *wide),
        ),
        "cumsum": (lambda: x.cumsum(1), lambda: x.cumsum(1, dtype=torch.float64)),
        "cross_entropy": (
            lambda: F.cross_entropy(logits, targets),
            lambda: F.cross_entropy(logits.double(), targets),
        ),
    }


def movement(s: Sizes, where: torch.device) -> dict[str, Pair]:
    """What computes nothing: each answer is exact."""
    x = torch.randn(s.rows, COLUMNS, device=where)
    keys = torch.randn(s.n // 8, device=where)
    return {
        "transposed copy": (lambda: x.t().contiguous(), lambda: x.t()),
        "sort": (lambda: torch.sort(keys)[0], lambda: torch.sort(keys.double())[0]),
    }


def optimizer(s: Sizes, where: torch.device) -> dict[str, Pair]:
    """Steps of no length, so that parameters stay what they are; their moments do not."""

    def pair(**how: bool) -> Pair:
        shape = (s.n // PARAMETERS,)
        parameters = [torch.randn(shape, device=where) for _ in range(PARAMETERS)]
        before = [each.clone() for each in parameters]
        for each in parameters:
            each.grad = torch.randn_like(each)
        steps = torch.optim.AdamW(parameters, lr=0.0, **how)

        def step() -> list[Tensor]:
            steps.step()
            return parameters

        return step, lambda: before

    return {"AdamW, fused": pair(fused=True), "AdamW, foreach": pair(foreach=True)}


def products_in(dtype: str) -> Callable[[Sizes, torch.device], dict[str, Pair]]:
    """Those of one number format; of fp32 or TF32, which of both `formats.products_in` decides."""

    def those(s: Sizes, where: torch.device) -> dict[str, Pair]:
        kind = formats.storage(dtype)
        return {
            name: _product(m, n, k, kind, where)
            for name, m, n, k, own, *_ in matmuls(s)
            if own == dtype
        }

    return those


def _product(m: int, n: int, k: int, kind: torch.dtype, where: torch.device) -> Pair:
    a, b = (torch.randn(*side, device=where).to(kind) for side in ((m, k), (k, n)))
    if n == 1:
        b = b.squeeze(-1)  # a vector has a routine of its own
    return lambda: a @ b, lambda: a.double() @ b.double()


def eighths(s: Sizes, where: torch.device) -> dict[str, Pair]:
    """A product in fp8, in bf16."""
    if why := products.without_fp8(where):
        raise DeviceError(why.removeprefix("not supported "))
    a, b = products.fp8_factors(2 * s.m, 2 * s.m, 2 * s.m, where)
    one = torch.ones((), device=where)
    call = (lambda: products.fp8_product(a, b, one, fast=True), lambda: a.double() @ b.double())
    return {"matmul, fp8": call}


def attended(s: Sizes, where: torch.device) -> dict[str, Pair]:
    """Attention as PyTorch chooses to compute it."""
    size = attention.Size(s.heads, s.tokens, HEAD, "bf16")
    given = attention.problem(size, where)
    call = (
        lambda: F.scaled_dot_product_attention(given.q, given.k, given.v),
        lambda: attention.exact(given),
    )
    return {"attention": call}


# What is timed together -> what makes its calls.
MAKERS: Mapping[str, Callable[[Sizes, torch.device], dict[str, Pair]]] = {
    "elementwise": elementwise,
    "short": short,
    "reductions": reductions,
    "movement": movement,
    "optimizer": optimizer,
    **{f"matmul {dtype}": products_in(dtype) for dtype in ("fp32", "tf32", "bf16")},
    "attention": attended,
    "matmul fp8": eighths,
}
# Relative error allowed where the answer's own format does not say it.
ALLOWED = {
    "matmul, tf32": agreement.ALLOWED_TF32,
    "matmul, fp8": products.ALLOWED_FP8[True],
    "attention": attention.ALLOWED[torch.bfloat16],
}
