"""The rows of one recording as a claim reads them: looked up by name, compared block by block."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from anatomy import replication, rows, units
from anatomy.claims.findings import Case, Measured, Unmeasured
from anatomy.errors import UnknownName
from anatomy.intervals import Interval
from anatomy.recording import Recording
from anatomy.rows import Row


class Table:
    """Rows of a recording with the parameters that they were measured with."""

    def __init__(
        self, table: Sequence[Row], params: dict[str, Any], data: dict[str, Any] | None = None
    ) -> None:
        """Read `table`, measured with `params`; `data` is all of its recording."""
        self.rows = list(table)
        self.params = params
        self.machine = (data or {}).get("machine", {})
        self.software = (data or {}).get("software", {})

    @classmethod
    def of(cls, found: Recording, params: dict[str, Any]) -> "Table":
        """The table of a recording."""
        return cls(found.rows, params, found.data)

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

    def measured(self, variant: str, **columns: Any) -> Row:
        """The same row, where it was measured.

        Raises:
            UnknownName: As for `row`.
            Unmeasured: It could not be measured here; the message is the row's own reason.
        """
        row = self.row(variant, **columns)
        if reason := why_not(row):
            raise Unmeasured(reason)
        return row

    def ratio(self, variant: str, control: str, **columns: Any) -> tuple[Interval, str]:
        """Time of one variant over that of another, paired by block, and what may be said of it.

        Raises:
            UnknownName: One of them is not there.
            MeasurementError: Their blocks do not pair up.
        """
        above, below = self.row(variant, **columns), self.row(control, **columns)
        ratio = replication.ratio(above, below)
        return ratio.interval, replication.verdict(ratio, above.get("noise_floor"))


def why_not(row: Row) -> str:
    """Why a row has no figure that could be trusted; empty where it has one."""
    if not units.missing(row.get("median_s")) and row.get("verdict") != "impossible":
        return ""
    return row.get("note") or "it could not be measured"


def over_control(row: Row) -> Measured:
    """A row's ratio over its control, with its interval and the noise floor of its table."""
    ends = (row.get(name) for name in ("ratio_low", "ratio_high"))
    low, high = (row["ratio"] if units.missing(end) else end for end in ends)
    # Blocks of several processes were pooled already, and have an interval of their own kind.
    blocks = 0 if row.get("runs") else len(row.get("blocks_s") or ())
    exact = not 0 < blocks < replication.EXACT_FROM
    floor = row.get("noise_floor") or 0.0
    return Measured(row["ratio"], low, high, "x", floor=floor, exact=exact)


def time_of(row: Row) -> Measured:
    """A row's time in seconds, with its interval and the noise floor of its table."""
    floor = row.get("noise_floor") or 0.0
    return Measured(row["median_s"], row["low_s"], row["high_s"], "s", floor=floor)


def quotient(above: Measured, below: Measured) -> Measured:
    """A ratio of two numbers that were not measured in the same blocks.

    Nothing cancels, so its interval runs from the lowest quotient of the ends to the highest, and
    the noise floors add up.
    """
    return Measured(
        above.value / below.value,
        above.low / below.high,
        above.high / below.low,
        floor=above.floor + below.floor,
        exact=above.exact and below.exact,
    )


def between(values: Sequence[float], printed: Callable[[float], str] = units.ratio) -> str:
    """The smallest and largest ratio of many: `0.98× to 2.04×`; one alone stands alone."""
    low, high = printed(min(values)), printed(max(values))
    return low if low == high else f"{low} to {high}"


def ends(cases: Iterable[Case], *columns: str) -> str:
    """The least and the largest number of the cases that share `columns`, and where each was seen.

    `bf16 0.83× (C=256) to 8.45× (C=2048)`; one number alone stands alone.
    """
    groups: dict[str, list[tuple[Measured, str]]] = {}
    for case in cases:
        if case.measured:
            name = " over ".join(str(case.where[column]) for column in columns)
            rest = " ".join(str(at) for key, at in case.where.items() if key not in columns)
            groups.setdefault(name, []).append((case.measured, rest))
    said = []
    for name, found in groups.items():
        found.sort(key=lambda each: each[0].value)
        texts = [f"{_in_short(found[end][0])} ({found[end][1]})" for end in (0, -1)]
        said.append(f"{name} {' to '.join(dict.fromkeys(texts))}")
    return "; ".join(said)


def _in_short(ratio: Measured) -> str:
    if ratio.low == ratio.high:  # of counts: there are no digits that an interval pays for
        return units.ratio(ratio.value)
    return units.ratio(ratio.value, ratio.low, ratio.high)


def told(row: Row) -> str:
    """A ratio with its interval and verdict: `1.99× [1.97, 2.01], slower`."""
    text = units.ratio_range(row["ratio"], row.get("ratio_low"), row.get("ratio_high"))
    return f"{text}, {row['verdict']}"
