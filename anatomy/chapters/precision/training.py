"""One training step in five number formats: forward, backward, AdamW. Its learning rate is 0 and
the loss scale fixed, so that every call computes the same gradients with the same kernels."""

import copy
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import pandas as pd
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from anatomy.chapters.precision.requirements import LAYERS, SEQUENCE
from anatomy.comparison import compare
from anatomy.numerics import formats
from anatomy.parts import grid, memory, models
from anatomy.record.requirements import Requirement
from anatomy.table import formulas
from anatomy.table.errors import DeviceError

LOSS_SCALE, NEVER = 2.0**16, 10**9  # GradScaler's first scale; steps after which it would double
# From so many operations on, checking the gradients takes most of the budget of a cell: it then
# gets so many budgets, or its interval would come from three blocks.
LONG_FLOPS, LONG_BUDGETS = 3e12, 4


@dataclass(frozen=True)
class Way:
    """How a step is computed."""

    weights: torch.dtype  # of gradients and optimizer state too
    autocast: torch.dtype | None  # what it casts the factors of products to; None without it
    tf32: bool  # whether products of float32 may round their factors to TF32
    scaled: bool  # whether a GradScaler multiplies the loss
    products: str  # their number format, by which `limit` is named
    # How far the loss, and the gradient of each weight matrix, may stray from float64, relative to
    # its norm: eight times and more what a dozen products, one after the other, were seen to add up
    # to; what is computed wrongly is off by half of it or more.
    allowed: float


WAYS = {
    # As for TF32, for an attention kernel may use it whatever the switch for products says.
    "fp32": Way(torch.float32, None, False, False, "fp32", 2**-6),
    "tf32": Way(torch.float32, None, True, False, "tf32", 2**-6),
    "amp fp16": Way(torch.float32, torch.float16, False, True, "fp16", 2**-6),
    "amp bf16": Way(torch.float32, torch.bfloat16, False, False, "bf16", 2**-4),
    "bf16": Way(torch.bfloat16, None, False, False, "bf16", 2**-2),
}


class Step:
    """One training step as a callable, with its model and optimizer."""

    def __init__(self, name: str, model: nn.Module, x: Tensor, *, fused: bool = False) -> None:
        """Prepare way `name` of a step of its own: a copy of a float32 model, on `x` (B, T, C).
        With `fused` AdamW is one kernel that also unscales, instead of PyTorch's default."""
        self.way = WAYS[name]
        self.model = copied(model, self.way.weights)
        self.x = x.to(self.way.weights)
        self.parameters = list(self.model.parameters())
        self.optimizer = torch.optim.AdamW(self.parameters, lr=0.0, fused=True if fused else None)
        self.scaler = torch.amp.GradScaler(
            x.device.type, init_scale=LOSS_SCALE, growth_interval=NEVER, enabled=self.way.scaled
        )

    def forward(self) -> Tensor:
        """The loss: the mean of the squared output, in float32."""
        kind = self.way.autocast
        device = self.x.device.type
        with torch.autocast(device, kind) if kind is not None else nullcontext():
            return self.model(self.x).float().square().mean()

    def __call__(self) -> tuple[Tensor, ...]:
        """One step; the loss, and the gradient of each weight matrix. In those of biases and norms,
        which are in `gradient_error`, most of the sum over all tokens cancels."""
        # Set in each call: the switch is the process's, and the ways are measured in turn.
        with formats.products_in("tf32" if self.way.tf32 else "fp32"):
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.forward()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        return loss.detach(), *(p.grad for p in self.parameters if p.ndim == 2)

    def gradients(self) -> list[Tensor]:
        """All gradients of the last step; the scaler has taken the loss scale out of them."""
        return [p.grad.double() for p in self.parameters]


def copied(model: nn.Module, kind: torch.dtype) -> nn.Module:
    """A copy of `model` with its weights as `kind`."""
    return copy.deepcopy(model).to(kind)


def maps(
    sizes: Sequence[tuple[int, int]],
    where: torch.device,
    iters: int,
    budget_s: float,
    required: Sequence[Requirement] = (),
) -> pd.DataFrame:
    """A comparison for each width and number of tokens, of all sequences together."""
    cells = [
        {"op": f"train C={width} T={tokens}", "width": width, "tokens": tokens}
        for width, tokens in sizes
    ]
    return grid.measure_cells(
        cells,
        lambda cell: _cell(cell, where, iters, budget_s),
        variants=tuple(WAYS),
        quantity="step_wall",
        where=where,
        required=required,
    )


def _input(width: int, count: int, where: torch.device) -> Tensor:
    sequence = min(count, SEQUENCE)
    made = torch.Generator(where).manual_seed(0)
    return torch.randn(count // sequence, sequence, width, device=where, generator=made)  # (B,T,C)


def _cell(cell: grid.Cell, where: torch.device, iters: int, budget_s: float) -> pd.DataFrame:
    width, count, quantity = cell["width"], cell["tokens"], "step_wall"
    absent = memory.without_formats({name: way.products for name, way in WAYS.items()}, where)
    model = models.transformer(width, LAYERS, where, torch.float32)
    x = _input(width, count, where)
    told = {name: _account(name, model, x, where) for name in WAYS if name not in absent}
    exact = exact_gradients(model, x)
    steps: dict[str, Step] = {}
    for name in told:
        steps[name] = Step(name, model, x)
        told[name] |= _errors(steps[name], exact)
        if not told[name]["gradient_error"] <= 4 * WAYS[name].allowed:  # NaN too
            absent[name] = "its gradients stray too far from those in float64"
            del steps[name]
    references = [exact[0], *(g for g in exact[1:] if g.ndim == 2)]
    work = 3 * LAYERS * formulas.layer_flops(width, count, min(count, SEQUENCE))
    table = pd.DataFrame()
    if steps:
        table = compare(
            steps,
            reference=lambda: references,
            allowed={name: WAYS[name].allowed for name in steps},
            quantity=quantity,
            op=cell["op"],
            flops=work,
            limit={name: f"matmul {WAYS[name].products}" for name in steps},
            device=where,
            iters=iters,
            budget_s=budget_s * (LONG_BUDGETS if work >= LONG_FLOPS else 1),
            settle_cap_s=min(1.0, budget_s),
            profile=False,
        ).table
    table = grid.with_refused(table, cell, absent, quantity=quantity, where=where)
    origin = table.variant.str.removesuffix(" (again)")
    extra = pd.DataFrame([told.get(name, {}) for name in origin])
    return pd.concat([table, extra], axis=1)


def exact_gradients(model: nn.Module, x: Tensor) -> list[Tensor]:
    """The loss and all gradients in float64, one sequence of `x` (B, T, C) after the other. The
    weights are the float32 ones: what rounding them costs is part of a way's error."""
    double = copied(model, torch.float64)
    parameters = list(double.parameters())
    total = [torch.zeros((), dtype=torch.float64, device=x.device)]
    total += [torch.zeros_like(p) for p in parameters]
    for sequence in x.double().split(1):
        loss = double(sequence).square().mean() / len(x)
        for kept, found in zip(
            total, [loss.detach(), *torch.autograd.grad(loss, parameters)], strict=True
        ):
            kept += found
    return total


def _errors(step: Step, exact: list[Tensor]) -> dict[str, float | None]:
    loss = step()[0]
    square_error = square_norm = 0.0
    for found, wanted in zip(step.gradients(), exact[1:], strict=True):
        square_error += float((found - wanted).square().sum())
        square_norm += float(wanted.square().sum())
    return {
        "loss_error": _finite(abs(float(loss) / float(exact[0]) - 1)),
        "gradient_error": _finite((square_error / square_norm) ** 0.5),
    }


def _finite(value: float) -> float | None:
    """A recording holds no infinity."""
    return value if value < float("inf") else None


def _account(name: str, model: nn.Module, x: Tensor, where: torch.device) -> dict[str, int | None]:
    step = Step(name, model, x)
    for _ in range(2):  # the first call makes the optimizer's state
        step()
    state = [v for s in step.optimizer.state.values() for v in s.values() if torch.is_tensor(v)]
    account = {
        "weight_bytes": _bytes(step.parameters),
        "gradient_bytes": _bytes([p.grad for p in step.parameters]),
        "optimizer_bytes": _bytes(state),
    }
    account |= saved(step)
    step.optimizer.zero_grad(set_to_none=True)  # so that the peak is with them, not above them
    peak = memory.peak(step, where)
    stays = account["weight_bytes"] + account["optimizer_bytes"]
    return account | {
        "peak_bytes": peak.bytes if peak else None,
        # Added up, for other things than this way's are on the device too.
        "total_peak_bytes": stays + peak.bytes if peak else None,
    }


def _bytes(found: list[Tensor]) -> int:
    return sum(t.numel() * t.element_size() for t in found)


class _Casts(TorchDispatchMode):
    """Notes into what any of `weights`, addresses of storages, is cast."""

    def __init__(self, weights: set[int]) -> None:
        super().__init__()
        self.weights, self.copies = weights, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        if func is torch.ops.aten._to_copy.default and _address(args[0]) in self.weights:
            self.copies.append(made)  # kept, so that nothing else gets its address meanwhile
        return made


def saved(step: Step) -> dict[str, int]:
    """Bytes that one forward pass keeps for the backward pass, each storage once: `copy_bytes` of
    weights that autocast cast, and `activation_bytes` of all else but the weights."""
    weights = {_address(p) for p in step.parameters}
    kept: dict[int, Tensor] = {}

    def pack(tensor: Tensor) -> Tensor:
        kept[_address(tensor)] = tensor
        return tensor

    same = lambda tensor: tensor  # noqa: E731
    casts = _Casts(weights)
    with formats.products_in("fp32"), torch.autograd.graph.saved_tensors_hooks(pack, same), casts:
        loss = step.forward()
    copies = {_address(made) for made in casts.copies}
    activations = [t for address, t in kept.items() if address not in weights | copies]
    del loss
    return {
        "activation_bytes": sum(t.untyped_storage().nbytes() for t in activations),
        "copy_bytes": _bytes(casts.copies),
    }


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def scaler_waits(
    width: int,
    count: int,
    where: torch.device,
    iters: int,
    budget_s: float,
    required: Sequence[Requirement] = (),
) -> pd.DataFrame:
    """Host time of a step with a loss scale and without: PyTorch's default AdamW waits until the
    host knows whether a gradient overflowed, the fused one reads that on the GPU."""
    labels = {
        f"{name}, {'fused' if fused else 'default'} AdamW": (name, fused)
        for fused in (False, True)
        for name in ("amp bf16", "amp fp16")
    }
    return grid.measure_cells(
        [{"op": f"host C={width} T={count}", "width": width, "tokens": count}],
        lambda cell: _waits(cell, labels, where, iters, budget_s),
        variants=tuple(labels),
        quantity="host_enqueue",
        where=where,
        required=required,
    )


def _waits(cell, labels, where, iters, budget_s) -> pd.DataFrame:
    # Its rows are of a scale beside none: without bf16 there is nothing to set it against.
    if absent := memory.without_formats({"amp bf16": "bf16"}, where):
        raise DeviceError(absent["amp bf16"].removeprefix(f"{grid.NOT_SUPPORTED} "))
    plain, scaled = list(labels)[2:]  # with the fused optimizer
    model = models.transformer(cell["width"], LAYERS, where, torch.float32)
    x = _input(cell["width"], cell["tokens"], where)
    loss = exact_gradients(model, x)[0]
    steps = {label: Step(name, model, x, fused=f) for label, (name, f) in labels.items()}
    return compare(
        # The gradients are those of the map, where they are checked.
        {label: lambda step=step: step()[0] for label, step in steps.items()},
        against={scaled: plain},
        reference=lambda: loss,
        allowed={label: step.way.allowed for label, step in steps.items()},
        quantity="host_enqueue",
        op=cell["op"],
        device=where,
        iters=iters,
        budget_s=budget_s,
        settle_cap_s=min(1.0, budget_s),
        profile=False,
    ).table
