"""Layers with little and with much to fuse, and stacks of them, eager and compiled."""

import copy
from collections.abc import Mapping, Sequence

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from anatomy.chapters.compilation.requirements import AMP, PLAIN, Cell, hidden_width
from anatomy.comparison import compare
from anatomy.measure import stopwatch_for
from anatomy.measure.stopwatch import Stopwatch
from anatomy.numerics import formats
from anatomy.parts import grid, memory, models
from anatomy.parts.compiled import Call, with_break_even, without_caches

EAGER, COMPILED, TUNED = "eager", "compiled", "max-autotune"
# Way -> the mode of torch.compile. Kernels that are tried cost minutes, and CUDA graphs, which that
# mode also has, would hide what they gain.
MODES: dict[str, str | None] = {COMPILED: None}
TUNED_MODES = MODES | {TUNED: "max-autotune-no-cudagraphs"}
FIRST_CALLS = 3  # calls that set a way up, as on the map
SETTLE_S = 1.0  # of settling, or the budget if that is less; all ways have run before
# Relative error allowed of the loss and of each matrix's gradient: the map's for 16 bits, twice,
# because what is written out rounds between its operations.
ALLOWED = 2**-4


class RootMeanSquare(nn.Module):
    """RMSNorm as published models write it: in float32, one operation after the other."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) to (B, T, C)."""
        wide = x.float()
        scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
        return scaled.to(x.dtype) * self.weight


class WrittenOut(nn.Module):
    """A layer like Llama's: RMSNorm, rotary embedding and SwiGLU out of elementwise operations."""

    def __init__(self, width: int, sequence: int) -> None:
        super().__init__()
        self.heads = max(1, width // models.HEAD_WIDTH)
        self.before, self.between = RootMeanSquare(width), RootMeanSquare(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        hidden = hidden_width(width)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)
        half = width // self.heads // 2
        turns = torch.arange(sequence)[:, None] * 10000.0 ** (-torch.arange(half) / half)
        self.register_buffer("cos", turns.cos())
        self.register_buffer("sin", turns.sin())

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) to (B, T, C)."""
        B, T, C = x.shape
        qkv = self.qkv(self.before(x)).view(B, T, 3, self.heads, C // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # three of (B, H, T, D)
        y = F.scaled_dot_product_attention(self._turned(q), self._turned(k), v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(B, T, C))
        y = self.between(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))

    def _turned(self, x: Tensor) -> Tensor:
        """Rotary embedding of (B, H, T, D): each pair of numbers turned by its place."""
        first, second = x.float().chunk(2, -1)
        cos, sin = self.cos.float(), self.sin.float()
        turned = torch.cat((first * cos - second * sin, first * sin + second * cos), -1)
        return turned.to(x.dtype)


def measure(
    cells: Sequence[Cell],
    where: torch.device,
    backend: str,
    iters: int,
    budget_s: float,
    modes: Mapping[str, str | None] = MODES,
) -> pd.DataFrame:
    """The table of all cells, each compiled in these modes; one that can't be measured here is a
    row that says why."""
    watch = stopwatch_for(where)
    by_op = {cell.op: cell for cell in cells}
    with without_caches(), torch.enable_grad():
        run = torch.compile(torch.add, backend=backend)
        watch.wall([lambda: run(torch.ones(8, device=where), 1)])  # pays the imports
        return grid.measure_cells(
            ({"op": op} | cell.columns for op, cell in by_op.items()),
            lambda cell: _cell(by_op[cell["op"]], watch, backend, iters, budget_s, modes),
            variants=(EAGER, *modes),
            quantity="step_wall",
            where=where,
            required=[cell.required for cell in cells],
            foreseen=(RuntimeError,),
            promised=("setup_s", "uses", "uses_low", "uses_high", "peak_bytes"),
        )


def _cell(cell: Cell, watch: Stopwatch, backend: str, iters, budget_s, modes) -> pd.DataFrame:
    where = watch.device
    model = layer_of(cell, where)
    amp = cell.dtype == AMP
    wide = torch.randn(cell.batch, cell.sequence, cell.width, device=where)
    x = wide.to(torch.float32 if amp else torch.bfloat16)
    calls = {EAGER: _step(model, model, x, amp)}
    watch.wall([calls[EAGER]] * FIRST_CALLS)
    peaks = {EAGER: memory.peak(calls[EAGER], where)}
    setup_s = {}
    for way, mode in modes.items():
        known = mode if backend == "inductor" else None  # the others know no modes
        compiled = torch.compile(model, backend=backend, mode=known, dynamic=False)
        calls[way] = _step(compiled, model, x, amp)
        setup_s[way] = watch.wall([calls[way]] * FIRST_CALLS)
        peaks[way] = memory.peak(calls[way], where)

    def exact() -> tuple[Tensor, ...]:
        with formats.products_in("fp32"):
            plain = copy.deepcopy(model).to(torch.float32)
            return _step(plain, plain, x.float(), amp=False)()

    table = compare(
        calls,
        control=EAGER,
        reference=exact,
        allowed=ALLOWED,
        quantity="step_wall",
        op=cell.op,
        flops=cell.flops,
        limit="matmul bf16",
        device=where,
        iters=iters,
        # What comes before the blocks counts: checks and kernels, of every layer.
        budget_s=budget_s * cell.layers,
        settle_cap_s=min(SETTLE_S, budget_s),
        profile=True,
    ).table
    table = with_break_even(table, setup_s)
    needs = {way: memory.columns(found) for way, found in peaks.items()}
    for column in memory.columns(None):
        values = [needs[name.removesuffix(" (again)")][column] for name in table.variant]
        table[column] = pd.Series(values, table.index, dtype=object)
    return table


def layer_of(cell: Cell, where: torch.device) -> nn.Module:
    """The layer, with weights that are the same each time."""
    stored = torch.float32 if cell.dtype == AMP else torch.bfloat16
    if cell.layer == PLAIN:
        return models.transformer(cell.width, cell.layers, where, stored)
    with models.drawn_on(where):
        stack = (WrittenOut(cell.width, cell.sequence) for _ in range(cell.layers))
        model = nn.Sequential(*stack) if cell.layers > 1 else next(stack)
    return model.to(where, stored)


def _step(run: models.Layer, model: nn.Module, x: Tensor, amp: bool) -> Call:
    """The loss and the gradients of all matrices; those of vectors can't be checked as closely."""
    parameters = list(model.parameters())
    shown = [0, *(1 + i for i, each in enumerate(parameters) if each.ndim > 1)]

    def forward(x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, torch.bfloat16, enabled=amp):
            return run(x)

    step = models.gradients_of(forward, parameters, x)

    def call() -> tuple[Tensor, ...]:
        found = step()
        return tuple(found[i] for i in shown)

    return call
