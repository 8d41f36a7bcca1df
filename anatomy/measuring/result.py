"""What a comparison found: a table that prints itself in a terminal and in a notebook."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from anatomy import printing
from anatomy.limits import Ceilings
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
        ceilings: The machine's limits, measured where there is a recording of them; None on a
            CPU and on a GPU that nobody knows.
    """

    table: pd.DataFrame
    noise_floor: float
    errors: dict[str, float]
    census: Mapping[str, census.Census]
    warnings: tuple[str, ...] = ()
    ceilings: Ceilings | None = None

    def __str__(self) -> str:
        return printing.as_text(*self._told())

    def _repr_html_(self) -> str:
        return printing.as_html(*self._told())

    def _told(self) -> tuple:
        rows = self.table.astype(object).where(self.table.notna(), None).to_dict("records")
        return rows, self.noise_floor, self.warnings, self.ceilings
