"""Traces of steps of products, without a wait and with one after each."""

import pandas as pd
import torch

from anatomy.diagnosis.traces import MOST_STEPS, events_of, recorded
from anatomy.measure import stopwatch_for
from anatomy.table.errors import BadParameter

RUNS = ("no wait", "item each step")


def traced(where: torch.device, side: int, kernels_each: int, steps: int) -> pd.DataFrame:
    """The events of `steps` steps of products, without a wait and with `.item()` after each."""
    if not 1 <= steps <= MOST_STEPS:
        raise BadParameter(f"steps={steps}: a trace holds 1 to {MOST_STEPS} steps.")
    if where.type != "cuda":
        return refused(f"needs a GPU that runs behind its host; this is {where.type}")
    watch = stopwatch_for(where)
    a, b = (torch.randn(side, side, device=where).half() for _ in range(2))
    y = torch.empty_like(a)
    one = y[0, 0]

    def step() -> None:
        for _ in range(kernels_each):
            torch.mm(a, b, out=y)

    def with_item() -> None:
        step()
        one.item()

    rows = []
    for run, act in zip(RUNS, (step, with_item), strict=True):
        rows += events_of(recorded(act, steps, watch), run)
    return pd.DataFrame(rows)


def refused(why: str) -> pd.DataFrame:
    """Rows that say why there is no trace."""
    return pd.DataFrame([{"run": run, "lane": None, "variant": run, "note": why} for run in RUNS])
