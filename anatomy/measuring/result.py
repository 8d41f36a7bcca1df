"""What a comparison found, as a table and in words."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from anatomy import units
from anatomy.measuring import census


@dataclass(frozen=True)
class Comparison:
    """What `compare` found.

    Attributes:
        table: One row per variant in the order given, the control's duplicate last. Times end in
            `_s` and are seconds; `blocks_s` holds the block medians, from which `median_s`, its
            exact 95 % interval `low_s` to `high_s`, and the paired `ratio` (time over the
            control's time) with `ratio_low` and `ratio_high` follow. `samples` are raw samples.
        noise_floor: How far the control strays from itself, as a relative number. No difference
            below it is claimed.
        errors: Relative error of each variant against its reference.
        census: The kernels of each variant, by name; empty where none were listed.
        warnings: What the reader of the table must know, one sentence each.
    """

    table: pd.DataFrame
    noise_floor: float
    errors: dict[str, float]
    census: Mapping[str, census.Census]
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        width = max(len(name) for name in self.table.variant)
        lines = []
        for row in self.table.itertuples():
            times = units.seconds_range(row.median_s, row.low_s, row.high_s)
            against = "control"
            if row.role != "control":
                ratio = units.ratio(row.ratio, row.ratio_low, row.ratio_high)
                against = f"{ratio} of {row.control}, {row.verdict}"
            lines.append(f"{row.variant:<{width}}  {times}  {against}  {row.note or ''}".rstrip())
        lines.append(f"noise floor {units.percent(self.noise_floor)} ({self.table.quantity[0]})")
        lines += [f"warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)
