"""What a number format does to values: gradients that vanish, activations that overflow. All is
computed from fixed numbers: only the order in which a GPU adds can change it."""

import copy
from collections.abc import Iterator
from contextlib import nullcontext

import torch
from torch import Tensor, nn

from anatomy.numerics import formats as tensors
from anatomy.parts import models

# Format -> what it is stored as.
FORMATS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
# The loss times these: one as it comes, with gradients that any format holds; one so small that
# fp16 loses most of them; and one so large that fp16's usual first loss scale is too much for it.
LOSSES = {"ordinary": 1.0, "small": 2.0**-16, "large": 2.0**12}
FIRST_SCALE, HALVINGS = 2.0**16, 40  # GradScaler's; it halves it where a gradient overflows
NOISE = 2.0**-40  # share of the largest gradient: below is float64's rounding (a key's bias has 0)
TOO_LARGE = 2.0  # the largest value of the overflowing block, over the largest that fp16 holds


def formats() -> list[dict]:
    """The limits of each format: rows of op `finfo`."""
    rows = []
    for name, kind in FORMATS.items():
        about = torch.finfo(kind)
        rows.append(
            {
                "op": "finfo",
                "variant": name,
                "bits": about.bits,
                "largest": about.max,
                "smallest_normal": about.smallest_normal,
                "smallest_subnormal": about.smallest_normal * about.eps,
                "eps": about.eps,
            }
        )
    return rows


def gradients(width: int, tokens: int, where: torch.device) -> Iterator[dict]:
    """Gradients of a small transformer's linear layers, counted: rows of op `gradients ...`."""
    model = models.transformer(width, 2, where, torch.float32)
    x = _normal((1, tokens, width), where)  # (B, T, C)
    for size, factor in LOSSES.items():
        exact = _gradients(copy.deepcopy(model).double(), x.double(), None, factor)
        for name, kind in FORMATS.items():
            for scaled in (False, True) if name != "fp32" else (False,):
                found, scale = _scaled(model, x, kind, factor) if scaled else (None, 1.0)
                if found is None:
                    found = _gradients(model, x, kind, factor)
                yield {
                    "op": f"gradients {size}",
                    "loss": size,
                    "loss_factor": factor,
                    "variant": f"{name}, scaled" if scaled else name,
                    "loss_scale": scale,
                } | counted(found, exact, kind, scale)


def _normal(shape: tuple[int, ...], where: torch.device) -> Tensor:
    """The same numbers on every device: drawn on the CPU."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(where)


def _gradients(model: nn.Module, x: Tensor, kind: torch.dtype | None, factor: float) -> Tensor:
    """Gradients of all linear layers, for `factor` times the mean squared output, in `kind`."""
    linear = [m for m in model.modules() if isinstance(m, nn.Linear)]
    parameters = [p for module in linear for p in module.parameters()]
    low = kind in (torch.float16, torch.bfloat16)
    with tensors.products_in("fp32"):
        with torch.autocast(x.device.type, kind) if low else nullcontext():
            output = model(x)
        output = output if output.dtype == torch.float64 else output.float()
        found = torch.autograd.grad(output.square().mean() * factor, parameters)
    return torch.cat([each.flatten() for each in found])


def _scaled(model, x, kind, factor) -> tuple[Tensor, float]:
    """The same with a loss scale, found as GradScaler finds it; gradients still scaled."""
    scale = FIRST_SCALE
    for _ in range(HALVINGS):
        found = _gradients(model, x, kind, factor * scale)
        if bool(found.isfinite().all()):
            break
        scale /= 2
    return found, scale


def counted(found: Tensor, exact: Tensor, kind: torch.dtype, scale: float = 1.0) -> dict:
    """What became of gradients computed as `kind` and times `scale`; `exact` is float64 without it.
    Counted are those that are not 0 in float64, up to its rounding; of these `underflow` are 0
    here, `subnormal` below the format's smallest normal number, `overflow` infinite or NaN. `error`
    is ||found - exact|| / ||exact||, null where one overflows; `typical` the median exact size."""
    there = exact.abs() > NOISE * exact.abs().max()
    computed = found.double()
    finite = computed.isfinite()
    size = computed.abs()
    tiny = torch.finfo(kind).smallest_normal
    overflow = int((there & ~finite).sum())
    difference = torch.linalg.vector_norm(computed / scale - exact)
    return {
        "gradients": int(there.sum()),
        "underflow": int((there & (size == 0)).sum()),
        "subnormal": int((there & (size > 0) & (size < tiny)).sum()),
        "overflow": overflow,
        "underflow_share": float((there & (size == 0)).sum() / there.sum()),
        "error": None if overflow else float(difference / torch.linalg.vector_norm(exact)),
        "typical": float(exact[there].abs().median()),
    }


def overflow(width: int, tokens: int, where: torch.device) -> list[dict]:
    """A block whose output is beyond what fp16 holds, run in each format: rows of op `overflow`.
    Its last matrix is multiplied until the largest output, in float64, is `TOO_LARGE` times fp16's
    largest number; weights and inputs are far within every format."""
    block = models.transformer(width, 1, where, torch.float64)
    x = _normal((1, tokens, width), where).double()
    most = torch.finfo(torch.float16).max
    with torch.no_grad():
        last = block[0].perceptron.down
        before = block(x)
        factor = TOO_LARGE * most / float((before - x).abs().max())
        last.weight *= factor
        last.bias *= factor
        exact = block(x)
        rows = []
        for name, kind in FORMATS.items():
            with tensors.products_in("fp32"):
                found = copy.deepcopy(block).to(kind)(x.to(kind)).double()
            wrong = int((~found.isfinite()).sum())
            error = torch.linalg.vector_norm(found - exact) / torch.linalg.vector_norm(exact)
            rows.append(
                {
                    "op": "overflow",
                    "variant": name,
                    "outputs": exact.numel(),
                    "overflow": wrong,
                    "largest_output": float(exact.abs().max()),
                    "largest_weight": float(max(p.abs().max() for p in block.parameters())),
                    "largest": torch.finfo(kind).max,
                    "error": None if wrong else float(error),
                }
            )
    return rows
