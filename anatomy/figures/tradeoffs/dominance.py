"""Which variants of a comparison nothing beats in both time and a count: the Pareto frontier.

A variant is *beaten* by another that needs no more of what is counted and is shown to be faster, or
that needs less of it in the same time. Times of two variants are compared block by block, as those
of a variant and its control are: two medians alone beat nobody. The frontier is drawn through the
variants that nothing beats; one above it is beaten in the median, and that was not shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from anatomy.figures.tradeoffs import breakeven
from anatomy.figures.tradeoffs.breakeven import Cell, Wanted
from anatomy.judge import occasions, replication, rows
from anatomy.judge.rows import Row
from anatomy.table.errors import BadParameter, MeasurementError

# Whether a variant is on the frontier: nothing is lower in both; in the median something is, which
# was not shown; something was shown to be.
YES, OPEN, NO = "yes", "undecided", "no"


@dataclass(frozen=True)
class Point:
    """A variant by its count and its time, each over its control's."""

    time: Cell
    count: Cell
    standing: str = ""  # YES, OPEN or NO; empty without a place
    beaten_by: tuple[str, ...] = ()  # of an undecided one, the variants below it in the median

    @property
    def variant(self) -> str:
        """Its name."""
        return self.time.variant

    @property
    def row(self) -> Row:
        """Its row."""
        return self.time.row

    @property
    def is_control(self) -> bool:
        """Whether it is the control, at 1 by 1."""
        return self.time.word == "control"

    @property
    def placed(self) -> bool:
        """Whether both are known."""
        return self.time.value is not None and self.count.value is not None


def points(table: Sequence[Row], wanted: Wanted) -> dict[Any, list[Point]]:
    """The variants of each series, the control first, with how each stands to the frontier. Raises
    what `breakeven.cells` does, and BadParameter of several comparisons."""
    variants = list(wanted.variants or _compared_variants(table, wanted))
    both = replace(wanted, x=wanted.series or "op", variants=variants)
    times, counts = (
        {(c.x, c.variant): c for c in breakeven.cells(table, replace(both, value=value))}
        for value in ("ratio", wanted.x)
    )
    found: dict[Any, list[Point]] = {}
    places = breakeven.axis(name for name, _ in times)
    if wanted.series is None and len(places) > 1:
        unless = "unless series= says what tells several apart"
        choose = f"choose by op= or where={{...}} of {', '.join(places)}"
        raise BadParameter(f"frontier() shows one comparison {unless}: {choose}.")
    for each in places:
        mine = [Point(times[each, v], counts[each, v]) for v in variants if (each, v) in times]
        found[each] = _standing([*_control(mine, each), *mine])
    return found


def _compared_variants(table: Sequence[Row], wanted: Wanted) -> list[str]:
    kept = rows.select(rows.meeting(table, wanted.where), op=wanted.op)
    mine = [row for row in kept if row.get("role") not in ("control", "again")]
    found = [row for row in mine if row.get("ratio") is not None or row.get("note")]
    if not found:
        raise BadParameter("no row of these is compared with a control.")
    return rows.names(found, "variant")


def _control(mine: Sequence[Point], place: Any) -> list[Point]:
    """The control as a point: at 1 by 1, where its count is known."""
    controls = [point.time.control for point in mine if point.time.control]
    if not controls:
        return []
    names = rows.names(controls, "variant")
    if len(names) > 1:
        these = f"these have {', '.join(names)}: choose them by variants="
        raise BadParameter(f"frontier() shows variants of one control, and {these}.")
    row = controls[0]
    time = Cell(row["variant"], place, None, row, row, 1.0, 1.0, 1.0, "control", "")
    if any(point.count.value is not None for point in mine):
        return [Point(time, time)]
    return [Point(time, Cell(row["variant"], place, None, row, row, why="not counted"))]


def _standing(several: Sequence[Point]) -> list[Point]:
    """Points of one comparison with how each stands to the frontier."""
    placed = [point for point in several if point.placed]
    beaters = {p.variant: [o for o in placed if o is not p and _beats(o, p)] for p in placed}
    unbeaten = [point for point in placed if not beaters[point.variant]]
    found = []
    for point in several:
        above = beaters.get(point.variant, ())
        standing = "" if not point.placed else NO if above else YES
        if standing == YES and (above := [other for other in unbeaten if _below(other, point)]):
            standing = OPEN
        names = tuple(other.variant for other in above)
        found.append(replace(point, standing=standing, beaten_by=names))
    return found


def _beats(one: Point, other: Point) -> bool:
    """Whether a variant needs no more and is shown to be faster, or less and is as fast."""
    if one.count.value > other.count.value:
        return False
    word = _faster(one, other)
    return word == "faster" or (word == "same" and one.count.value < other.count.value)


def _faster(one: Point, other: Point) -> str:
    """The verdict on the time of a variant over that of another one of the same comparison."""
    if other.is_control:
        return one.time.word
    floor = one.row.get("noise_floor")
    try:
        return replication.verdict(occasions.ratio(one.row, other.row), floor)
    except (KeyError, TypeError, MeasurementError):  # rows without blocks, or of other processes
        apart = one.time.high < other.time.low, one.time.low > other.time.high
        return "faster" if apart[0] else "slower" if apart[1] else "undecided"


def _below(one: Point, other: Point) -> bool:
    """Whether a point is lower than another in the median of time, and no higher in its count."""
    pairs = [(p.count.value, p.time.value) for p in (one, other)]
    return pairs[0] != pairs[1] and all(a <= b for a, b in zip(*pairs, strict=True))


def line(several: Sequence[Point]) -> list[Point]:
    """The points that the frontier is drawn through, by rising count."""
    found = [point for point in several if point.standing == YES]
    return sorted(found, key=lambda point: (point.count.value, -point.time.value))
