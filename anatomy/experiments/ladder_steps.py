"""Every rung's training step, set up, held against rung 0 and compared with the others."""

import gc
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from anatomy import machine, memory, models, tensors
from anatomy.errors import AnatomyError
from anatomy.experiments import ladder_kernels, ladder_rungs
from anatomy.experiments.compilation_cells import reason_of, without_caches
from anatomy.experiments.ladder_rungs import Answer, Way
from anatomy.measuring import compare, stopwatch_for
from anatomy.measuring.stopwatch import Stopwatch

Call = Callable[[], Tensor]

FORWARD_BACKWARD, WITH_OPTIMIZER, CEILING = "forward and backward", "with AdamW", "ceiling"
QUANTITY = "step_wall"
# Calls after which compiled code, CUDA graphs and caches are there.
WARM_UPS = 3
SETTLE_S = 1.0
# M, N, K of the large products among which the card's best is looked for.
LARGE = ((8192, 8192, 8192), (16384, 8192, 8192), (8192, 16384, 4096))
# Bytes for each weight while all ways wait for their turn: weights, gradients and optimizer of a
# dozen models.
BYTES_PER_WEIGHT = 12 * 20


@dataclass(frozen=True)
class Size:
    """The transformer and the tokens of one step."""

    width: int
    layers: int
    batch: int
    sequence: int

    @property
    def flops(self) -> int:
        """Of the forward pass's products: those of the backward pass are twice as many."""
        tokens = self.batch * self.sequence
        return self.layers * models.layer_flops(self.width, tokens, self.sequence)

    @property
    def columns(self) -> dict[str, int]:
        """The same as columns of a table."""
        return {
            "width": self.width,
            "layers": self.layers,
            "batch": self.batch,
            "sequence": self.sequence,
        }


@dataclass
class Ready:
    """A way that has passed its gates: its steps, and what is known of it."""

    way: Way
    model: nn.Module
    calls: dict[str, Call]
    told: dict[str, Any] = field(default_factory=dict)


def require_memory(size: Size, where: torch.device) -> None:
    """Refuse what can't fit.

    Raises:
        OutOfMemory: Fewer bytes are free.
    """
    weights = 12 * size.width**2 * size.layers
    tokens = size.batch * size.sequence
    heads = max(1, size.width // 128)
    # Attention written out in float32 keeps four tables of scores a layer for the backward pass.
    scores = 4 * size.layers * heads * tokens * size.sequence * 4
    kept = 40 * size.layers * tokens * size.width * 4
    need = weights * (BYTES_PER_WEIGHT if where.type == "cuda" else 100) + scores + kept
    machine.require_bytes(where, need, f"The ladder at width {size.width}")


def measure(size: Size, where: torch.device, iters: int, budget_s: float) -> pd.DataFrame:
    """The table of all rungs.

    Args:
        size: The model and its input.
        where: The device.
        iters: Least number of samples.
        budget_s: Seconds of timed blocks for each comparison.
    """
    watch = stopwatch_for(where)
    x, target = ladder_rungs.problem(size.width, size.batch, size.sequence, where)
    wanted = ladder_rungs.reference(size.layers, size.width, x, target)
    ready: list[Ready] = []
    refused: list[dict] = []
    found = [ceiling(size, where, iters)] if where.type == "cuda" else []
    limits = {}
    with without_caches():
        # Kernels are listed before a CUDA graph exists: a profiler that comes and goes beside one
        # has crashed before (github.com/pytorch/pytorch/issues/75504).
        profiles = {} if where.type != "cuda" else _profiles(size, x, target, watch)
        for way in ladder_rungs.TRAINING:
            told = {"rung": way.rung, "way": way.way}
            try:
                if why := ladder_rungs.without(way, where):
                    raise AnatomyError(why)
                passed = prepare(way, size, x, target, wanted, watch)
                passed.told |= told | profiles.get(way.label, {})
                ready.append(passed)
                limits[way.label] = f"matmul {way.products}"
            except Exception as error:  # the other rungs can be measured all the same
                refused += [
                    {"op": op, "variant": way.label, "role": "variant", "quantity": QUANTITY}
                    | told
                    | {"note": str(error) if isinstance(error, AnatomyError) else reason_of(error)}
                    for op in (FORWARD_BACKWARD, WITH_OPTIMIZER)
                ]
            let_go(where)
        for op in (FORWARD_BACKWARD, WITH_OPTIMIZER):
            table = compare(
                {each.way.label: each.calls[op] for each in ready},
                reference=lambda: torch.tensor(wanted.loss, dtype=torch.float64),
                allowed={each.way.label: each.way.loss for each in ready},
                quantity=QUANTITY,
                op=op,
                flops=3 * size.flops,
                limit=limits,
                device=where,
                iters=iters,
                budget_s=budget_s,
                settle_cap_s=min(SETTLE_S, budget_s),
                profile=False,
            ).table
            found.append(_with_columns(table, ready, op))
    table = pd.concat([*found, pd.DataFrame(refused)], ignore_index=True)
    return table.assign(**size.columns, device=where.type)


def prepare(
    way: Way, size: Size, x: Tensor, target: Tensor, wanted: Answer, watch: Stopwatch
) -> Ready:
    """A way's steps, once it has shown that it computes the same.

    Args:
        way: Which.
        size: The model and its input.
        x: Input (B, T, C).
        target: What it is to become, (B, T, C).
        wanted: Rung 0's loss and gradients.
        watch: The stopwatch of the device.

    Raises:
        AnatomyError: It can't run here, or it is void.
    """
    script = ladder_rungs.load(way.rung)
    model = script.build(size.width, size.layers, x.device)
    call = script.step(model, x, target, way.way)
    setup_s = watch.wall([call])  # the first step, with compiling and capturing
    found = ladder_rungs.answer(way, model, call, x, target)
    loss_error, gradient_error = ladder_rungs.strays(found, wanted)
    if why := ladder_rungs.void(way, loss_error, gradient_error):
        raise AnatomyError(why)
    del found
    for _ in range(WARM_UPS):
        call()
    told = {"setup_s": setup_s, "loss_error": loss_error, "gradient_error": gradient_error}
    told["parameters"] = sum(p.numel() for p in model.parameters())
    model.zero_grad(set_to_none=True)
    told |= memory.columns(memory.peak(call, x.device))
    if way.label in ladder_rungs.GRAPHS:  # their tensors lie in pools outside of that account
        told |= {"peak_bytes": None, "total_peak_bytes": None}
    whole = script.step(model, x, target, way.way, script.optimizer_of(model, lr=0.0))
    for _ in range(WARM_UPS):
        whole()
    return Ready(way, model, {FORWARD_BACKWARD: call, WITH_OPTIMIZER: whole}, told)


def _profiles(size: Size, x: Tensor, target: Tensor, watch: Stopwatch) -> dict[str, dict]:
    """Seconds of kernels by kind for each way; of CUDA graphs those of the same step without one.

    What fails here will say so when it is prepared.
    """
    found: dict[str, dict] = {}
    for way in ladder_rungs.TRAINING:
        plain = ladder_rungs.WITHOUT_GRAPHS.get(way.label, way.way)
        try:
            if ladder_rungs.without(way, x.device):
                continue
            script = ladder_rungs.load(way.rung)
            model = script.build(size.width, size.layers, x.device)
            call = script.step(model, x, target, plain)
            for _ in range(WARM_UPS):
                call()
            found[way.label] = ladder_kernels.seconds_by_kind(call, watch) or {}
            del model, call
        except Exception:
            continue
        finally:
            torch.compiler.reset()  # the first step that is timed later compiles anew
            let_go(x.device)
    return found


def ceiling(size: Size, where: torch.device, iters: int) -> pd.DataFrame:
    """Products of bfloat16 matrices: the model's own, and large ones."""
    tokens, C = size.batch * size.sequence, size.width
    sides = dict.fromkeys([(tokens, 4 * C, C), (tokens, C, 4 * C), *LARGE])
    calls, flops = {}, {}
    for m, n, k in sides:
        a = torch.randn(m, k, dtype=torch.bfloat16, device=where)  # (M, K)
        b = torch.randn(k, n, dtype=torch.bfloat16, device=where)  # (K, N)
        calls[f"{m} x {n} x {k}"] = lambda a=a, b=b: a @ b
        flops[f"{m} x {n} x {k}"] = 2 * m * n * k
    references = {name: call for name, call in calls.items()}
    with tensors.products_in("bf16"):
        return compare(
            calls,
            reference=references,
            quantity="gpu_warm",
            op=CEILING,
            flops=flops,
            limit="matmul bf16",
            device=where,
            iters=iters,
            budget_s=3.0,
            settle_cap_s=SETTLE_S,
            profile=False,
        ).table.assign(rung=CEILING)


def _with_columns(table: pd.DataFrame, ready: list[Ready], op: str) -> pd.DataFrame:
    """The comparison with what is known of each way."""
    told = {each.way.label: each.told for each in ready}
    origin = [name.removesuffix(" (again)") for name in table.variant]
    extra = pd.DataFrame([told[name] for name in origin]).astype(object)
    table = table.drop(columns=[c for c in extra if c in table])
    table = pd.concat([table, extra], axis=1)
    if op == FORWARD_BACKWARD and "busy_s" in table:
        table["gap_s"] = [
            None if pd.isna(busy) else max(0.0, whole - busy)
            for whole, busy in zip(table.median_s, table.busy_s, strict=True)
        ]
    return table


def let_go(where: torch.device) -> None:
    """Give back what nothing holds any more."""
    gc.collect()
    if where.type == "cuda":
        torch.cuda.empty_cache()
