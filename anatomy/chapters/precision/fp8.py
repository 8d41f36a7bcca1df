"""A linear layer y = x @ w.T in bfloat16, and in FP8 (e4m3) as code has to use it: w is quantised
once and x in every call. Each tensor is divided by its largest size, and cast."""

from collections.abc import Callable

import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from anatomy.comparison import compare
from anatomy.measure import stopwatch_for
from anatomy.numerics import agreement
from anatomy.numerics.agreement import ALLOWED
from anatomy.parts import models
from anatomy.parts.grid import Cell, note_of, with_refused
from anatomy.parts.products import ALLOWED_FP8, without_fp8
from anatomy.table import formulas
from anatomy.table.errors import DisagreementError

E4M3 = torch.float8_e4m3fn
LARGEST = torch.finfo(E4M3).max
# How far a product may stray from the float64 product of the factors before they were rounded.
# e4m3 keeps 3 bits after the leading one, so a factor of random size is off by 2.6 % in the mean
# square, and a product of two by 3.7 %; the rest is room for the sums.
ALLOWED_QUANTISED = 2**-4
ALLOWED_MLP = {"bf16": 2**-5, "fp8": 2**-3}  # of two such layers and a GELU between: both errors

BF16, READY, EAGER, COMPILED = (
    "bf16",
    "fp8, factors ready",
    "fp8, quantised",
    "fp8, quantised, compiled",
)
BF16_COMPILED = "bf16, compiled"
WAYS, QUANTITIES = (BF16, READY, EAGER, COMPILED), ("step_wall", "gpu_warm")
MLP_WAYS = (BF16, BF16_COMPILED, EAGER, COMPILED)


def quantised(x: Tensor) -> tuple[Tensor, Tensor]:
    """`x` in e4m3, and the float32 scale that it must be multiplied by. It is clamped first: what
    the cast makes of anything beyond the largest number of e4m3 depends on the release of torch."""
    scale = (x.abs().amax().float() / LARGEST).clamp(min=1e-12)
    return (x / scale).clamp(-LARGEST, LARGEST).to(E4M3), scale


def linear(x: Tensor, w: Tensor, w_scale: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (M, K) quantised, times w.T (K, N), which is quantised already; (M, N) in bfloat16."""
    x8, x_scale = quantised(x)
    return product(x8, w, x_scale, w_scale, bias)


def product(x: Tensor, w: Tensor, x_scale: Tensor, w_scale: Tensor, bias=None) -> Tensor:
    """x @ w.T of e4m3 factors in bfloat16, with the faster of the two ways of summing."""
    return torch._scaled_mm(
        x,
        w.t(),
        scale_a=x_scale,
        scale_b=w_scale,
        bias=bias,
        out_dtype=torch.bfloat16,
        use_fast_accum=True,
    )


def product_of(cell: Cell, where: torch.device, iters: int, budget_s: float) -> pd.DataFrame:
    """The table of one size (sides are multiples of 16), and what compiling took."""
    why = without_fp8(where)
    m, n, k = (cell[name] for name in ("m", "n", "k"))
    x = torch.randn(m, k, device=where).to(torch.bfloat16)  # (M, K)
    w = torch.randn(n, k, device=where).to(torch.bfloat16)  # (N, K)
    exact = x.double() @ w.double().t()
    calls: dict[str, Callable[[], Tensor]] = {BF16: lambda x=x, w=w: F.linear(x, w)}
    absent = dict.fromkeys((READY, EAGER, COMPILED), why) if why else {}
    kernel_error = None
    if not why:
        x8, x_scale = quantised(x)
        w8, w_scale = quantised(w)
        calls[READY] = lambda a=x8, b=w8, s=x_scale, t=w_scale: product(a, b, s, t)
        calls[EAGER] = lambda a=x, b=w8, t=w_scale: linear(a, b, t)
        try:
            kernel_error = _of_the_kernel(calls[READY], x8, w8, x_scale * w_scale)
        except DisagreementError as error:
            absent[READY] = str(error)[:200]
            del calls[READY]
        run = compiled(linear)
        calls[COMPILED] = lambda a=x, b=w8, t=w_scale, run=run: run(a, b, t)
    return _compared(
        cell | {"kernel_error": kernel_error},
        calls,
        absent,
        quantities=QUANTITIES,
        exact=exact,
        allowed=dict.fromkeys(calls, ALLOWED_QUANTISED) | {BF16: ALLOWED[torch.bfloat16]},
        against={},
        flops=formulas.matmul_flops(m, n, k),
        where=where,
        iters=iters,
        budget_s=budget_s,
    )


def perceptron(cell: Cell, where: torch.device, iters: int, budget_s: float) -> pd.DataFrame:
    """A transformer's perceptron, C to 4 C to C wide, forward, with both layers in FP8."""
    why = without_fp8(where)
    width, tokens = cell["k"], cell["m"]
    with models.drawn_on(where):
        module = models.Perceptron(width).to(torch.bfloat16).requires_grad_(False)
    x = torch.randn(tokens, width, device=where).to(torch.bfloat16)  # (T, C)
    up, down = module.up, module.down
    hidden = F.gelu(F.linear(x.double(), up.weight.double(), up.bias.double()))
    exact = F.linear(hidden, down.weight.double(), down.bias.double())
    del hidden
    plain = compiled(module)
    calls = {BF16: lambda: module(x), BF16_COMPILED: lambda: plain(x)}
    absent = dict.fromkeys((EAGER, COMPILED), why) if why else {}
    if not why:
        layers = (*quantised(up.weight), up.bias, *quantised(down.weight), down.bias)
        run = compiled(_perceptron)
        calls[EAGER] = lambda: _perceptron(x, *layers)
        calls[COMPILED] = lambda: run(x, *layers)
    return _compared(
        cell,
        calls,
        absent,
        quantities=("step_wall",),
        exact=exact,
        allowed={name: ALLOWED_MLP["fp8" if "fp8" in name else "bf16"] for name in calls},
        # Compiling fuses the GELU in either format: like is compared with like.
        against={COMPILED: BF16_COMPILED},
        flops=2 * formulas.matmul_flops(tokens, 4 * width, width),
        where=where,
        iters=iters,
        budget_s=budget_s,
    )


def _perceptron(x: Tensor, up, up_scale, up_bias, down, down_scale, down_bias) -> Tensor:
    hidden = F.gelu(linear(x, up, up_scale, up_bias))  # (T, 4 C)
    return linear(hidden, down, down_scale, down_bias)  # (T, C)


def compiled(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`function` compiled anew for the shapes of its first call."""
    torch.compiler.reset()
    return torch.compile(function, dynamic=False)


def _of_the_kernel(call: Callable[[], Tensor], x: Tensor, w: Tensor, scale: Tensor) -> float:
    """Error of the FP8 product alone: against the float64 product of the same rounded factors."""
    exact = (x.double() @ w.double().t()) * scale.double()
    found = agreement.check({READY: call}, {READY: lambda: exact}, ALLOWED_FP8[True])
    return found[READY]


def _compared(
    cell, calls, absent, *, quantities, exact, allowed, against, flops, where, iters, budget_s
) -> pd.DataFrame:
    """First calls of what is compiled, then the comparisons; what fails says why."""
    op, absent, there, first = cell["op"], dict(absent), {}, []
    for name, call in calls.items():
        try:
            if "compiled" in name:
                first.append(_first_call(op, name, stopwatch_for(where).wall([call])))
            agreement.check({name: call}, {name: lambda: exact}, allowed)
            there[name] = call
        except DisagreementError as error:
            absent[name] = str(error)[:200]
        except Exception as error:  # a compiler fails in many ways, and the other rows stand
            absent[name] = _why(error)
    against = {name: other for name, other in against.items() if {name, other} <= set(there)}
    tables = [pd.DataFrame(first)] if first else []
    for quantity in quantities:
        missing, table = dict(absent), pd.DataFrame()
        try:
            if there:
                table = compare(
                    there,
                    against=against,
                    reference=lambda: exact,
                    allowed=allowed,
                    quantity=quantity,
                    op=op,
                    flops=flops,
                    limit={n: "matmul fp8" if "fp8" in n else "matmul bf16" for n in there},
                    device=where,
                    iters=iters,
                    budget_s=budget_s,
                    settle_cap_s=0.5,
                    profile=quantity == "gpu_warm",
                ).table
        except Exception as error:  # and what was compiled is kept for the other quantity
            if not (why := note_of(error)):
                raise
            missing |= dict.fromkeys(there, why)
        tables.append(with_refused(table, cell, missing, quantity=quantity, where=where))
    rest = {name: value for name, value in cell.items() if name != "op"}
    return pd.concat([table.astype(object) for table in tables], ignore_index=True).assign(**rest)


def _why(error: Exception) -> str:
    """Why something was not measured, without the paths that a compiler's message may hold."""
    first = str(error).strip().partition("\n")[0]
    words = [word for word in first.split() if "/" not in word and "\\" not in word]
    return f"not measured: {type(error).__name__}: {' '.join(words)[:160]}"


def _first_call(op: str, name: str, seconds: float) -> dict:
    return {
        "op": "first call",
        "variant": f"{op}, {name}",
        "role": "variant",
        "quantity": "step_wall",
        "median_s": seconds,
        "samples": 1,
        "blocks_s": [seconds],
        "method": "host clock around the first call and a synchronize",
    }
