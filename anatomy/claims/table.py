"""The rows of one recording as a claim reads them: looked up by name, compared block by block."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from anatomy.claims.cases import Cases
from anatomy.claims.findings import Finding, Measured, Unmeasured, answer
from anatomy.judge import occasions, replication, rows
from anatomy.judge.comparisons import TIMES
from anatomy.judge.rows import Row
from anatomy.table import units
from anatomy.table.errors import UnknownName


class Table:
    """Rows of a recording with the parameters that they were measured with."""

    def __init__(
        self, table: Sequence[Row], params: dict[str, Any], data: dict[str, Any] | None = None
    ) -> None:
        """Read `table`, measured with `params`; `data` is all of its recording."""
        self.rows = list(table)
        self.params = params
        self.machine = (data or {}).get("machine", {})

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

    def select(self, **columns: Any) -> list[Row]:
        """The rows with these values, measured or not, without the control's duplicate.

        Of a tuple of values for a column any will do.
        """
        found = [row for row in self.rows if row.get("role") != "again"]
        for name, asked in columns.items():
            allowed = asked if isinstance(asked, tuple) else (asked,)
            found = [row for row in found if row.get(name) in allowed]
        return found

    def distinct(self, column: str, **columns: Any) -> list[Any]:
        """The values of a column in the rows selected, in the order of the table, each once."""
        found = dict.fromkeys(row.get(column) for row in self.select(**columns))
        return [value for value in found if value is not None]

    def row(self, variant: str, **columns: Any) -> Row:
        """The row of a variant, where `columns` names its op and the like; else an UnknownName."""
        left = self.rows
        for column, wanted in (*columns.items(), ("variant", variant)):
            kept = [row for row in left if row.get(column) == wanted]
            if not kept:
                raise UnknownName(f"{column} in a recording", str(wanted), rows.names(left, column))
            left = kept
        return left[0]

    def measured(self, variant: str, **columns: Any) -> Row:
        """The same row, if it is `trusted`."""
        return trusted(self.row(variant, **columns))

    def beside_control(self, variant: str, **columns: Any) -> tuple[Measured, str]:
        """A trusted row's ratio over its control, and both with the verdict in words."""
        row = self.measured(variant, **columns)
        return over_control(row), f"{variant}: {with_verdict(row)}."

    def at_most(self, most: float, variant: str, **columns: Any) -> Finding:
        """Whether a trusted row takes at most so many times its control's time."""
        over, seen = self.beside_control(variant, **columns)
        return answer(over.at_most(most), seen, over)

    def ratio(self, variant: str, control: str, **columns: Any) -> Measured:
        """Time of one variant over that of another, paired by block, with its verdict."""
        above, below = (self.measured(name, **columns) for name in (variant, control))
        return ratio(above, below)


def why_not(row: Row) -> str:
    """Why a row has no figure that could be trusted; empty where it has one."""
    if not units.missing(row.get("median_s")) and row.get("verdict") != "impossible":
        return ""
    return row.get("note") or "it could not be measured"


def trusted(row: Row) -> Row:
    """The row, if it has a figure that can be trusted; else raises `Unmeasured` with the reason."""
    if reason := why_not(row):
        raise Unmeasured(reason)
    return row


def known(row: Row, column: str, why: str = "it was not measured") -> Any:
    """What a row has in a column; `Unmeasured` with its note, or `why`, where it has nothing."""
    if units.missing(value := row.get(column)):
        raise Unmeasured(row.get("note") or why)
    return value


def ratio(above: Row, below: Row) -> Measured:
    """Time of one row over that of another of the same table, paired by block, and its verdict."""
    found, floor = occasions.ratio(above, below), above.get("noise_floor")
    over, word = found.interval, replication.verdict(found, floor)
    exact, runs = over.exact and floor is not None, tuple(found.runs)
    ends = (over.median, over.low, over.high)
    return Measured(*ends, floor=floor or 0.0, exact=exact, runs=runs, verdict=word)


def decides(row: Row) -> bool:
    """Whether a row has as many blocks as an interval of 95 % takes."""
    # Blocks of several processes were pooled already, and have an interval of their own kind.
    blocks = 0 if row.get("runs") else len(row.get("blocks_s") or ())
    return not 0 < blocks < replication.EXACT_FROM


def over_control(row: Row) -> Measured:
    """A trusted row's ratio over its control, with its interval, verdict and noise floor."""
    trusted(row)
    ends = (row.get(name) for name in ("ratio_low", "ratio_high"))
    low, high = (row["ratio"] if units.missing(end) else end for end in ends)
    floor, word = row.get("noise_floor"), row.get("verdict") or ""
    exact, runs = decides(row) and floor is not None, tuple(row.get("run_ratios") or [row["ratio"]])
    ends = (row["ratio"], low, high)
    return Measured(*ends, floor=floor or 0.0, exact=exact, runs=runs, verdict=word)


def judged(
    rows: Iterable[tuple[dict[str, Any], Row]],
    true: Callable[[Measured], bool | None],
    read: Callable[[Row], Measured] = over_control,
) -> Cases:
    """The case of each (where, row): whether something is `true` of the number that is `read`."""
    cases = Cases()
    for where, row in rows:
        with cases.at(**where) as case:
            number = read(row)
            case(true(number), number)
    return cases


def speed_up(row: Row) -> Measured:
    """Time of the control over that of a row: the inverse of its ratio, with its interval."""
    return over_control(row).inverse


def with_verdict(row: Row) -> str:
    """A row's ratio with its interval and verdict: `1.99× [1.97, 2.01], slower`."""
    text = units.ratio_range(row["ratio"], row.get("ratio_low"), row.get("ratio_high"))
    return f"{text}, {row['verdict']}"


def time_of(row: Row) -> Measured:
    """A trusted row's time in seconds, with its interval and the noise floor of its table."""
    trusted(row)
    ends, floor = (row[name] for name in TIMES), row.get("noise_floor") or 0.0
    runs = tuple(row.get("run_medians_s") or [row["median_s"]])
    return Measured(*ends, "s", floor=floor, exact=decides(row), runs=runs)


def rate_of(row: Row, work: str, unit: str) -> Measured:
    """What a trusted row does in a second of the work in one of its columns, with its interval."""
    time = time_of(row)
    rate = (row[work] / end for end in (time.value, time.high, time.low))
    runs = tuple(row[work] / run for run in time.runs)
    return Measured(*rate, unit, floor=time.floor, exact=time.exact, runs=runs)


def bytes_over(above: Row, below: Row, column: str, why: str) -> Measured:
    """A ratio of two rows' counted bytes; `Unmeasured` for the reason `why` if one has none."""
    if any(units.missing(row.get(column)) for row in (above, below)) or not below[column]:
        raise Unmeasured(why)
    return Measured.counted(above[column] / below[column])


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
        runs=tuple(a / b for a, b in zip(above.runs, below.runs, strict=False)),
    )
