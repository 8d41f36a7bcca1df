"""What the seed says of measuring, put to the blocks that our recordings keep."""

from math import ceil
from statistics import median

from anatomy.claims import Cases, Finding, Measured, Unmeasured, answer, claim
from anatomy.claims.needs import EVERY, WARM
from anatomy.claims.table import Table, trusted, why_not
from anatomy.judge.comparisons import PRECISION
from anatomy.judge.rows import Row
from anatomy.table import intervals, units

FEW = 6  # blocks that stand for a short run: as few as still have an exact interval of 95 %
ENOUGH = 100  # timed calls that the seed asks for at the least


def _timed(tables: tuple[Table, ...]) -> list[tuple[dict, Row]]:
    """What tells it apart, and the row, of every warm row but the duplicates."""
    return [
        ({"op": row["op"], "variant": row["variant"]} | table.where, row)
        for table in tables
        for row in table.select(**WARM)
    ]


@claim(*EVERY)
def few_iterations_are_slow(*tables: Table) -> Finding:
    """The first six blocks of a row take longer than those behind them: the median over rows."""
    ratios, floors, widths = [], [], []
    for row in [row for _, row in _timed(tables) if not why_not(row)]:
        blocks = row["blocks_s"]
        if len(blocks) < 2 * FEW:
            continue
        early, late, whole = map(intervals.median_interval, (blocks[:FEW], blocks[FEW:], blocks))
        ratios.append(early.median / late.median)
        floors.append(row.get("noise_floor") or 0.0)
        widths.append((intervals.half_width(early), intervals.half_width(whole)))
    if not ratios:
        raise Unmeasured("No row has blocks enough to compare the first with the others.")
    # Of all rows together: among so many intervals of 95 %, single ones miss by chance.
    over = intervals.median_interval(ratios)
    seen = Measured(over.median, over.low, over.high, floor=median(floors))
    few, every = (units.percent(median(each), 2) for each in zip(*widths, strict=True))
    shrinks = f"{few} to either side after {FEW} blocks, {every} after all"
    evidence = f"The first {FEW} blocks take {seen.text} of the time of those behind them. "
    evidence += f"What shrinks is the interval: {shrinks} (medians of {len(ratios)} rows)."
    return answer(seen.at_least(1.0 + intervals.SMALLEST_EFFECT), evidence, seen)


@claim(*EVERY)
def iterations_suffice(*tables: Table) -> Finding:
    """The first 100 timed calls of a row have an interval within 1 % of their median, and the calls
    behind them, which had no part in it, the same median to 1 %."""
    cases, few = Cases(), []
    for where, row in _timed(tables):
        with cases.at(**where) as case:
            blocks = trusted(row)["blocks_s"]
            first = ceil(ENOUGH * len(blocks) / (row.get("samples") or 1))
            if min(first, len(blocks) - first) < FEW:
                raise Unmeasured("too few blocks for an interval of the first calls and the others")
            early, late = map(intervals.median_interval, (blocks[:first], blocks[first:]))
            few.append(intervals.half_width(early))
            ends = (early.median / late.median, early.low / late.high, early.high / late.low)
            same = Measured(*ends).near(1.0, PRECISION)
            case(False if few[-1] > PRECISION else same)
    widest = f"up to {units.percent(max(few), 2)} to either side" if few else "not known"
    seen = f"The interval of the first {ENOUGH} calls, in interleaved blocks, is {widest}"
    return cases.finding(f"{seen}; it says nothing of another process.")
