"""Tables of blocks that an experiment took by itself, in the form of those of `compare`."""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

import pandas as pd

from anatomy import judge
from anatomy.measure.blocks import balanced_orders
from anatomy.measure.stopwatch import Stopwatch

LEAST_S = 1e-9  # of a time: what is less, or below 0 after a subtraction, is the clock's noise


def again(control: str) -> str:
    """What the control's duplicate is called."""
    return f"{control} (again)"


def in_turn(
    ways: Mapping[str, Callable[[], float]],
    blocks: int,
    watch: Stopwatch,
    *,
    budget_s: float = inf,
    fewest: int = 0,
) -> dict[str, list[float]]:
    """The seconds that each way says, in blocks that have each of them once, in balanced order, and
    the first one twice: as `compared` takes them. Of so many `blocks` none is begun after
    `budget_s` seconds, but for the `fewest`."""
    control = next(iter(ways))
    ways = {**ways, again(control): ways[control]}
    names, orders, begun = list(ways), balanced_orders(len(ways), seed=0), watch.now()
    taken: dict[str, list[float]] = {name: [] for name in names}
    for block in range(blocks):
        if block >= fewest and watch.now() - begun >= budget_s:
            break
        for name in (names[place] for place in orders[block % len(orders)]):
            taken[name].append(ways[name]())
    return taken


def compared(
    blocks: Mapping[str, Sequence[float]],
    columns: Mapping[str, Mapping[str, Any]],
    **given: Any,
) -> pd.DataFrame:
    """The rows of variants by their seconds in the same blocks, judged as `compare` judges its own.

    Args:
        blocks: Of each variant. The first is the control; its duplicate is called `again` of it.
        columns: Further columns of a variant, where it has some; the duplicate has the control's.
        given: Columns of all rows: `op`, `quantity`, `device`.
    """
    control, rows = next(iter(blocks)), []
    for name, taken in blocks.items():
        role = {control: "control", again(control): "again"}.get(name, "variant")
        row = {"variant": name, "role": role, "launch_inclusive": False, **given}
        row |= {"control": None if role == "control" else control}
        row |= {"blocks_s": [max(each, LEAST_S) for each in taken]}
        rows.append(row | dict(columns.get(control if role == "again" else name, {})))
    return pd.DataFrame(judge.judged(rows))
