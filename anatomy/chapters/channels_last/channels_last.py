"""channels_last: in which number formats and shapes convolutions are faster on it. An image tensor
(B, C, H, W) lies in memory channel after channel (NCHW), or with all channels of a pixel side by
side. Tensor cores want the second; a library that is given the first may convert it each time."""

import copy
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from anatomy.chapters.channels_last import requirements, residual
from anatomy.chapters.channels_last.requirements import CONVERSION, scaled
from anatomy.comparison import compare
from anatomy.numerics import agreement
from anatomy.numerics import formats as tensors
from anatomy.parts import grid, memory
from anatomy.record.bounds import Count, Length, Scale, Seconds
from anatomy.record.declare import experiment
from anatomy.table import formulas, intervals

TRAINING_SECONDS = 4  # times those of inference; more than half of them go before any block
# How far a layer may stray from float64, relative. Algorithms that transform their input first
# (Winograd, FFT) round more often than a plain sum, hence more than `agreement.ALLOWED`.
ALLOWED_LAYER = {"fp32": 2**-12, "tf32": 2**-8, "fp16": 2**-7, "bf16": 2**-5}
# And a network of 50 layers from itself in float32: every ReLU and batch norm multiplies what was
# rounded before it. Unrelated numbers are about 1.4 apart.
ALLOWED_NETWORK = {"fp32": 2**-8, "tf32": 2**-3, "fp16": 2**-2, "bf16": 2**-1}
LOSS_SCALE = 2**10  # keeps the gradients of float16 from vanishing, as loss scaling does
SETTLE_S = 0.5  # of settling before a comparison
NCHW, LAST, CONVERTED = "NCHW", "channels_last", "channels_last, input converted"
LAYOUTS = (NCHW, LAST, CONVERTED)
WAYS = ("copy", "to channels_last", "to NCHW")
MEMORY = {NCHW: torch.contiguous_format, LAST: torch.channels_last}


@experiment(
    "channels_last.map", page="axioms/channels-last.md", command="channels-last", timeout_s=400
)
def map(
    device: str = "cuda:0",
    dtype: Literal["all", "fp32", "tf32", "fp16", "bf16"] = "all",
    scale: Scale = 1.0,
    iters: Count = 12,
    budget_s: Seconds = 0.6,
    full: bool = False,
) -> pd.DataFrame:
    """Compare single convolutions in NCHW and channels_last, by number format, batch and channels.

    Args:
        dtype: The only number format, or all; tf32 means float32 tensors that may use TF32.
        scale: Factor on batches and on the sides of images; 1 for a GPU.
        budget_s: Seconds of one comparison, settling apart.

    Returns:
        One comparison per cell, its `op` such as `C=64 inference bf16 N=64`, in gpu_warm. Cells of
        phase `conversion` copy an input into the other layout; their control is a plain copy.
    """
    where = tensors.torch_device(device)
    cells = list(requirements.cells(dtype, scale, full))
    largest = max(cell["batch"] for cell in cells)

    def measure(cell: grid.Cell) -> pd.DataFrame:
        asked = requirements.layer_of(cell), scale, where, cell, iters, budget_s
        if cell["phase"] == CONVERSION:
            return _conversion(*asked)
        table = _layer(*asked)
        # Named once, for what pages show: names are long, and backward passes many.
        named = cell["batch"] == largest and cell["phase"] == "inference"
        return table if named else table.assign(kernels=None)

    return grid.measure_cells(
        cells,
        measure,
        variants=lambda cell: WAYS if cell["phase"] == CONVERSION else LAYOUTS,
        quantity="gpu_warm",
        where=where,
        required=requirements.map(memory.capacity(where), dtype, scale, full),
        foreseen=(RuntimeError,),
        promised=("uses",),
    )


def _layer(layer, scale, where, told, iters, budget_s) -> pd.DataFrame:
    """One convolution in both layouts; `told` are the coordinates of its rows."""
    phase, dtype, batch = (told[name] for name in ("phase", "dtype", "batch"))
    before, after, kernel, stride, full_side = layer
    side = scaled(full_side, scale)
    kind = tensors.storage(dtype)
    x = torch.randn(batch, before, side, side, dtype=kind, device=where)  # (B, C, H, W)
    weight = torch.randn(after, before, kernel, kernel, device=where)
    weight = (weight / (before * kernel * kernel) ** 0.5).to(kind)
    out = F.conv2d(x, weight, stride=stride, padding=kernel // 2)
    upstream = torch.randn_like(out)
    # The gradient of the images themselves is of no use to anyone.
    of_input = phase == "training" and before > 3

    def over(x: Tensor, weight: Tensor, upstream: Tensor, layout: torch.memory_format) -> Callable:
        """One pass over tensors of any layout, which become those of `layout` in each call."""

        def call() -> Tensor | tuple[Tensor, ...]:
            y = F.conv2d(
                x.contiguous(memory_format=layout), weight, stride=stride, padding=kernel // 2
            )
            if phase == "inference":
                return y
            wanted = (weight, x) if of_input else (weight,)
            return y.detach(), *torch.autograd.grad(y, wanted, upstream)

        return call

    def placed(layout: torch.memory_format) -> list[Tensor]:
        """Input, weight and upstream gradient, laid out so."""
        return [each.to(memory_format=layout, copy=True) for each in (x, weight, upstream)]

    operands = {name: placed(layout) for name, layout in MEMORY.items()}
    operands[CONVERTED] = [x.clone(), *operands[LAST][1:]]
    exactly = [each.double() for each in (x, weight, upstream)]
    for own_x, own_weight, _ in (*operands.values(), exactly):
        own_weight.requires_grad_(phase == "training")
        own_x.requires_grad_(of_input)
    calls = {name: over(*own, MEMORY.get(name, MEMORY[LAST])) for name, own in operands.items()}
    exact = functools.cache(over(*exactly, MEMORY[NCHW]))
    passes = 1 if phase == "inference" else 3 if of_input else 2
    flops = 2 * out.numel() * before * kernel * kernel * passes
    with convolutions_in(dtype), torch.inference_mode(phase == "inference"):
        table = compare(
            calls,
            reference=exact,
            allowed=ALLOWED_LAYER[dtype],
            quantity="gpu_warm",
            op=told["op"],
            device=where,
            iters=iters,
            budget_s=budget_s,
            settle_cap_s=SETTLE_S,
        ).table
    labels = {name: value for name, value in told.items() if name != "op"}
    return _with_uses(table).assign(direct_flops=flops, **labels)


def _with_uses(table: pd.DataFrame) -> pd.DataFrame:
    """Add the layers after which one conversion of the input has paid, from the same blocks."""
    rows = table.set_index("variant")
    direct, converted = rows.blocks_s[LAST], rows.blocks_s[CONVERTED]
    cost = [max(0.0, more - less) for more, less in zip(converted, direct, strict=True)]
    found = intervals.break_even(cost, rows.blocks_s[NCHW], direct)
    known = [found.median, found.low, found.high]
    if rows.verdict[LAST] != "faster":
        known = [None] * 3
    for column, value in zip(("uses", "uses_low", "uses_high"), known, strict=True):
        value = None if value in (None, float("inf")) else value
        table[column] = [value if name == LAST else None for name in table.variant]
    return table


def _conversion(layer, scale, where, told, iters, budget_s) -> pd.DataFrame:
    """Copies of the input of one convolution into the other layout."""
    dtype, batch = told["dtype"], told["batch"]
    side = scaled(layer[-1], scale)
    x = torch.randn(batch, layer[0], side, side, dtype=tensors.storage(dtype), device=where)
    last = x.contiguous(memory_format=MEMORY[LAST])
    with torch.inference_mode():
        table = compare(
            {
                WAYS[0]: x.clone,
                WAYS[1]: lambda: x.contiguous(memory_format=MEMORY[LAST]),
                WAYS[2]: last.contiguous,
            },
            reference=x.double,
            allowed=agreement.ALLOWED[torch.float64],  # a copy loses nothing
            quantity="gpu_warm",
            op=told["op"],
            bytes=formulas.copy_bytes(x.numel(), x.element_size()),
            device=where,
            iters=iters,
            budget_s=budget_s,
            settle_cap_s=SETTLE_S,
        ).table
    return table.assign(**{name: value for name, value in told.items() if name != "op"})


@experiment(
    "channels_last.network",
    page="axioms/channels-last.md",
    command="channels-last-network",
    timeout_s=400,
)
def network(
    device: str = "cuda:0",
    width: Length = 64,
    side: Length = 224,
    dtype: Literal["all", "fp32", "tf32", "fp16", "bf16"] = "all",
    scale: Scale = 1.0,
    short: bool = False,
    iters: Count = 12,
    budget_s: Seconds = 1.2,
    full: bool = False,
) -> pd.DataFrame:
    """Compare a residual network built as ResNet-50 in NCHW and channels_last.

    Args:
        width: Channels after the first convolution; 64 in ResNet-50.
        side: Height and width of the images.
        dtype: The only number format, or all (of them fp16 only where `full`); tf32 means float32
            tensors that may use TF32.
        scale: Factor on batches; 1 for a GPU.
        short: One block a stage instead of 3, 4, 6 and 3.
        budget_s: Seconds of one comparison of inference, settling apart; training has four times
            as many.

    Returns:
        One comparison per cell, its `op` such as `training bf16 N=32`, in step_wall. Training is
        forward and backward without an optimizer. The coarse map has the largest batch in bf16
        alone.
    """
    where = tensors.torch_device(device)
    blocks = requirements.SHORT if short else requirements.DEEP

    @functools.lru_cache(maxsize=1)  # of the present batch alone, whose cells stand together
    def base(batch: int) -> tuple[nn.Module, Tensor]:
        images = torch.randn(batch, 3, side, side, device=where)  # (B, 3, H, W)
        with convolutions_in("fp32"):
            return residual.network(width, blocks, images), images

    def measure(cell: grid.Cell) -> pd.DataFrame:
        seconds = budget_s * (TRAINING_SECONDS if cell["phase"] == "training" else 1)
        return _network(*base(cell["batch"]), where, cell, iters, seconds)

    return grid.measure_cells(
        requirements.network_cells(dtype, scale, full),
        measure,
        variants=LAYOUTS,
        quantity="step_wall",
        where=where,
        required=requirements.network(
            memory.capacity(where), width, side, dtype, scale, short, full
        ),
        foreseen=(RuntimeError,),
        promised=("peak_bytes",),
    )


def _network(base, images, where, told, iters, budget_s) -> pd.DataFrame:
    """The network `base` on `images` (B, 3, H, W) in both layouts; `told` are the coordinates of
    its rows."""
    phase, dtype, tuned = (told[name] for name in ("phase", "dtype", "cudnn_benchmark"))
    kind = tensors.storage(dtype)

    def step(layout: torch.memory_format, kind: torch.dtype, converting: bool = False) -> Callable:
        model = copy.deepcopy(base).to(kind).to(memory_format=layout)
        x = images.to(kind)
        x = x if converting else x.to(memory_format=layout)
        model.train(phase == "training")
        if phase == "inference":
            return lambda: model(x.contiguous(memory_format=layout))
        parameters = list(model.parameters())
        last = parameters[-2:]  # weight and bias of the classifier

        def call() -> tuple[Tensor, ...]:
            logits = model(x.contiguous(memory_format=layout))
            loss = LOSS_SCALE * logits.float().square().mean()
            found = torch.autograd.grad(loss, parameters)
            # All gradients are computed. Those of early layers differ by as much as they are long
            # as soon as anything is rounded otherwise, so only these can be checked.
            return loss.detach(), *found[-len(last) :]

        return call

    with convolutions_in("fp32"), torch.inference_mode(phase == "inference"):
        exactly = step(MEMORY[NCHW], torch.float32)()
    with convolutions_in(dtype, tuned), torch.inference_mode(phase == "inference"):
        calls = {name: step(layout, kind) for name, layout in MEMORY.items()}
        calls[CONVERTED] = step(MEMORY[LAST], kind, converting=True)
        for call in calls.values():
            call()
        peaks = {name: memory.peak(call, where) for name, call in calls.items()}
        table = compare(
            calls,
            reference=lambda: exactly,
            allowed=ALLOWED_NETWORK[dtype],
            quantity="step_wall",
            op=told["op"],
            device=where,
            iters=iters,
            budget_s=budget_s,
            settle_cap_s=SETTLE_S,
            profile=False,
        ).table
    for name, found in peaks.items():
        there = table.variant.str.removesuffix(" (again)") == name
        for column, value in memory.columns(found).items():
            table.loc[there, column] = value
    return table.assign(**{name: value for name, value in told.items() if name != "op"})


@contextmanager
def convolutions_in(dtype: str, tuned: bool = False) -> Iterator[None]:
    """Convolutions and products round float32 to TF32 if `dtype` is `tf32`, and else do not; if
    `tuned`, cuDNN tries its algorithms at the first call. The switches are put back afterwards."""
    cudnn = torch.backends.cudnn
    before = cudnn.allow_tf32, cudnn.benchmark
    cudnn.allow_tf32, cudnn.benchmark = dtype == "tf32", tuned
    try:
        with tensors.products_in(dtype):
            yield
    finally:
        cudnn.allow_tf32, cudnn.benchmark = before
