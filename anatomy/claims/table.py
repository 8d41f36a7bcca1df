"""The rows of one recording as a claim reads them: looked up by name, compared block by block."""

from collections.abc import Iterator, Sequence
from typing import Any

from anatomy import replication, rows, units
from anatomy.errors import UnknownName
from anatomy.intervals import Interval
from anatomy.rows import Row


class Table:
    """Rows of a recording with the parameters that they were measured with."""

    def __init__(self, table: Sequence[Row], params: dict[str, Any]) -> None:
        """Read `table`, which was measured with `params`."""
        self.rows = list(table)
        self.params = params

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @property
    def label(self) -> str:
        """The parameters that tell recordings of square matrices apart: `fp16 2048`."""
        return " ".join(str(value) for value in self.where.values())

    @property
    def where(self) -> dict[str, Any]:
        """Number format and size of square matrices, where the parameters have them."""
        named = {"dtype": self.params.get("dtype"), "size": self.params.get("m")}
        return {name: value for name, value in named.items() if value is not None}

    def row(self, variant: str, **columns: Any) -> Row:
        """The row of a variant; `columns` names its op, quantity and the like.

        Raises:
            UnknownName: There is none, or one of the columns has no such value.
        """
        left = self.rows
        for column, wanted in (*columns.items(), ("variant", variant)):
            kept = [row for row in left if row.get(column) == wanted]
            if not kept:
                raise UnknownName(f"{column} in a recording", str(wanted), rows.names(left, column))
            left = kept
        return left[0]

    def ratio(self, variant: str, control: str, **columns: Any) -> tuple[Interval, str]:
        """Time of one variant over that of another, paired by block, and what may be said of it.

        Raises:
            UnknownName: One of them is not there.
            MeasurementError: Their blocks do not pair up.
        """
        above, below = self.row(variant, **columns), self.row(control, **columns)
        ratio = replication.ratio(above, below)
        return ratio.interval, replication.verdict(ratio, above.get("noise_floor"))


def span(values: Sequence[float]) -> str:
    """The smallest and largest ratio of many: `0.98× to 2.04×`; one alone stands alone."""
    low, high = units.ratio(min(values)), units.ratio(max(values))
    return low if low == high else f"{low} to {high}"


def told(row: Row) -> str:
    """A ratio with its interval and verdict: `1.99× [1.97, 2.01], slower`."""
    text = units.ratio_range(row["ratio"], row.get("ratio_low"), row.get("ratio_high"))
    return f"{text}, {row['verdict']}"
