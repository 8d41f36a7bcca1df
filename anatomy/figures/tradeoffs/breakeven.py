"""Where a technique pays: the cells of a map, the line around those that pay, and break-even.

Arithmetic on the rows of one recording that holds several comparisons, without markup. A cell pays
where its verdict says faster, or less: what was not shown never pays.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import exp, log
from numbers import Real
from typing import Any

from anatomy.judge import replication, rows
from anatomy.judge.rows import Row
from anatomy.table import units
from anatomy.table.errors import BadParameter, UnknownName

TIMED = ("ratio", "speedup")  # these have an interval; any other column is a count, which is exact
SAME_COUNT = 0.005  # counts that differ by less are called the same: both print as 1.00
PAYS, LOSES = ("faster", "less"), ("slower", "more")


@dataclass(frozen=True)
class Wanted:
    """What of a recording a figure shows: the arguments of `anatomy.page`'s functions."""

    x: str
    y: str | None = None
    series: str | None = None
    variants: Sequence[str] | None = None
    value: str = "ratio"
    op: str | None = None
    quantity: str | None = None
    where: Mapping[str, Any] | None = None
    fit: str | None = None
    beyond: float | None = None
    labels: Mapping[str, str] | None = None  # value of `series` -> what it is called
    even: bool = False  # axes from 0, where one step should look as large as another
    control: str = "control"  # what an axis calls it

    @property
    def counted(self) -> bool:
        """Whether a count is shown, which is exact, and not a time."""
        return self.value not in TIMED


@dataclass(frozen=True)
class Cell:
    """One comparison: a variant at its coordinates, the values of the columns along and up."""

    variant: str
    x: Any
    y: Any  # None without such a column
    row: Row
    control: Row | None  # in the same comparison
    value: float | None = None  # ratio, speed-up, or count over the control's count
    low: float | None = None  # the interval's ends; of a count, the value
    high: float | None = None
    word: str = ""  # faster, slower, same, undecided, less or more; empty without a value
    why: str = ""  # there is no value

    @property
    def pays(self) -> bool:
        """Whether it was shown to pay."""
        return self.word in PAYS

    @property
    def side(self) -> int:
        """-1 where it pays, 1 where it loses, 0 where neither was shown."""
        return -1 if self.pays else 1 if self.word in LOSES else 0

    @property
    def few(self) -> str:
        """That its blocks are too few for a verdict, however far from 1 they are; else empty."""
        blocks = 0 if self.row.get("runs") else len(self.row.get("blocks_s") or ())
        if self.word != "undecided" or not 0 < blocks < replication.EXACT_FROM:
            return ""
        return f"{blocks} block{'s are' if blocks > 1 else ' is'} too few for a verdict"


@dataclass(frozen=True)
class Crossing:
    """Where a variant stops paying, or begins to: between the last cell on this side of 1 and the
    first one on the other. `at` is where the line through all cells, undecided ones too, crosses 1:
    straight along the logarithms of coordinate and ratio. With `undecided` ones between, it is no
    more than a place in the range."""

    at: float
    before: Cell
    after: Cell
    undecided: int = 0


def cells(table: Sequence[Row], wanted: Wanted) -> list[Cell]:
    """The cells of a map, one for each variant and pair of coordinates. UnknownName of a column,
    variant, op, quantity or value of a column that is in no row; BadParameter of several rows in
    one cell, with what would tell them apart."""
    need_columns(table, wanted.x, wanted.y)
    if wanted.counted:
        numeric = {name for row in table for name, value in row.items() if is_number(value)}
        if wanted.value not in numeric:
            raise UnknownName("value to show", wanted.value, {*TIMED, *numeric})
        if wanted.value in rows.INTERVALS:
            raise BadParameter(f"{wanted.value} has an interval; show it as value='ratio'.")
    kept = rows.select(rows.meeting(table, wanted.where), op=wanted.op)
    for variant in wanted.variants:
        if variant not in rows.names(kept, "variant"):
            raise UnknownName("variant", variant, rows.names(kept, "variant"))
    if wanted.quantity is not None:
        # A row that says why there is no time may say nothing of a quantity either.
        rows.select(kept, quantity=wanted.quantity)
        kept = [row for row in kept if row.get("quantity") in (wanted.quantity, None)]
    axes = [name for name in (wanted.x, wanted.y) if name]
    kept = [row for row in kept if not any(units.missing(row.get(name)) for name in axes)]
    found: dict[tuple, list[Cell]] = {}
    for variant, row in product(wanted.variants, kept):
        mine = row.get("variant") == variant and row.get("role") not in ("control", "again")
        if mine and (cell := _cell(row, _control(table, row), wanted)):
            found.setdefault((variant, cell.x, cell.y), []).append(cell)
    if not found:
        those = f"{', '.join(wanted.variants)} with {' and '.join(axes)}"
        raise BadParameter(f"no row of {those} is compared with a control.")
    for variant, row in product(wanted.variants, kept):
        if _never_began(row):
            place = (variant, *_place(row, wanted))
            found.setdefault(place, [Cell(*place, row, None, why=row["note"])])
    for (variant, x, y), several in found.items():
        # A comparison that failed may say so in several rows, such as that of its first call.
        if len(several) > 1 and any(cell.value is not None for cell in several):
            at = f"{wanted.x}={x}" + (f", {wanted.y}={y}" if wanted.y else "")
            raise too_many([cell.row for cell in several], f"{variant!r} are in the cell {at}")
    return [several[0] for several in found.values()]


def too_many(several: Sequence[Row], where: str) -> BadParameter:
    """The error of several rows where there must be one; it says what would tell them apart."""
    advice = "they differ in no column to choose them by"
    if columns := rows.telling_apart(several):
        advice = f"choose by op=, quantity= or where={{...}} of {columns}"
    return BadParameter(f"{len(several)} rows of {where}, and there must be one: {advice}.")


def axis(values: Iterable[Any]) -> list:
    """The different values of a coordinate: numbers rising, anything else as it comes."""
    different = list(dict.fromkeys(values))
    return sorted(different) if all(map(is_number, different)) else different


def is_number(value: Any) -> bool:
    """Whether a coordinate is a number; a flag is none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def contour(paying: Mapping[tuple[int, int], bool]) -> list[tuple[int, int, int, int]]:
    """The edges between cells that pay and cells beside them that do not: x and y of both ends.
    `paying` has column and row of each cell with a value; cell (0, 0) reaches from 0 to 1. To a
    cell without a value there is no edge: nothing is known there."""
    return [
        (i + right, j + up, i + 1, j + 1)
        for (i, j), pays in sorted(paying.items())
        for right, up in ((1, 0), (0, 1))
        if paying.get((i + right, j + up), pays) != pays
    ]


def crossings(line: Sequence[Cell]) -> list[Crossing]:
    """Where cells along a numeric coordinate change sides, faster to slower or the other way. Those
    between, of which nothing is decided, belong to the range in which break-even lies. Along text
    there is nothing to interpolate, and the list is empty."""
    known = [cell for cell in line if cell.value]
    if not all(is_number(cell.x) and cell.x > 0 for cell in known):
        return []
    known.sort(key=lambda cell: cell.x)
    found = []
    for before, after in pairwise(cell for cell in known if cell.side):
        if before.side != after.side:
            between = known[known.index(before) : known.index(after) + 1]
            found.append(Crossing(_crossed(between), before, after, len(between) - 2))
    return found


def _crossed(line: Sequence[Cell]) -> float:
    """Where a line from one side of 1 to the other crosses it. Undecided cells may take it across
    several times, an odd number of them: then the one in the middle."""
    at = []
    for one, other in pairwise(line):
        if (one.value > 1) != (other.value > 1):
            part = log(one.value) / (log(one.value) - log(other.value))
            at.append(exp(log(one.x) + part * (log(other.x) - log(one.x))))
    return at[len(at) // 2]


def need_columns(table: Sequence[Row], *names: str | None) -> None:
    """UnknownName of the first column that is in no row."""
    columns = {name for row in table for name in row}
    for name in filter(None, names):
        if name not in columns:
            raise UnknownName("column", name, columns)


def _control(table: Sequence[Row], row: Row) -> Row | None:
    """The row that a row is compared with: of the same op and quantity."""
    has = {"variant": row["control"]} if row.get("control") else {"role": "control"}
    has |= {"op": row.get("op"), "quantity": row.get("quantity")}
    alike = (other for other in table if all(other.get(name) == has[name] for name in has))
    return next(alike, None)


def _cell(row: Row, control: Row | None, wanted: Wanted) -> Cell | None:
    """A row as a cell, or None of a row that is no comparison, such as a first call's time."""
    timed = not units.missing(row.get("median_s"))
    if timed and control is None and units.missing(row.get("ratio")):
        return None
    value = wanted.value
    found = _counted(row, control or {}, value) if wanted.counted else _timed(row, value)
    return Cell(row["variant"], *_place(row, wanted), row, control, **found)


def _place(row: Row, wanted: Wanted) -> tuple[Any, Any]:
    return row[wanted.x], row[wanted.y] if wanted.y else None


def _never_began(row: Row) -> bool:
    """Whether only this row, the control's, says why its comparison was not made."""
    control = row.get("role") == "control" or units.missing(row.get("variant"))
    return bool(control and row.get("note") and units.missing(row.get("median_s")))


def _timed(row: Row, column: str) -> dict[str, Any]:
    """A cell's value, interval and word, or why there is none."""
    if units.missing(row.get("ratio")) or row.get("verdict") == "impossible":
        return {"why": row.get("note") or "not measured"}
    row = rows.derived(row, None)
    value, *ends = (row.get(name) for name in (column, *rows.INTERVALS[column]))
    low, high = (value if units.missing(end) else end for end in ends)
    return {"value": value, "low": low, "high": high, "word": row.get("verdict") or "undecided"}


def _counted(row: Row, control: Row, column: str) -> dict[str, Any]:
    """The same of a count."""
    here, there = row.get(column), control.get(column)
    if units.missing(here):
        return {"why": row.get("note") or "not counted"}
    if units.missing(there):
        return {"why": control.get("note") or "the control's is not known"}
    if there <= 0:
        return {"why": "the control needs none"}
    close = abs(here - there) < SAME_COUNT * there
    word = "same" if close else "less" if here < there else "more"
    return dict.fromkeys(("value", "low", "high"), here / there) | {"word": word}
