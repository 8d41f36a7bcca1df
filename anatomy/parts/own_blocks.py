"""Tables of blocks that an experiment took by itself, in the form of those of `compare`."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from anatomy import judge

LEAST_S = 1e-9  # of a time: what is less, or below 0 after a subtraction, is the clock's noise


def again(control: str) -> str:
    """What the control's duplicate is called."""
    return f"{control} (again)"


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
