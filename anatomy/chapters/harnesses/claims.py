"""What the seed says of measuring, put to the blocks that our recordings keep."""

from statistics import median

from anatomy.claims import Cases, Finding, Measured, Unmeasured, answer, claim
from anatomy.claims.needs import EVERY, FP16, WARM
from anatomy.claims.table import Table, trusted, why_not
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
    """The first six blocks of a row take longer than all of its blocks: the median over rows."""
    ratios, floors, widths = [], [], []
    for row in [row for _, row in _timed(tables) if not why_not(row)]:
        blocks = row["blocks_s"]
        early, whole = map(intervals.median_interval, (blocks[:FEW], blocks))
        ratios.append(early.median / whole.median)
        floors.append(row.get("noise_floor") or 0.0)
        widths.append((intervals.half_width(early), intervals.half_width(whole)))
    if not ratios:
        raise Unmeasured("None of the rows could be measured.")
    # Of all rows together: among so many intervals of 95 %, single ones miss by chance.
    over = intervals.median_interval(ratios)
    seen = Measured(over.median, over.low, over.high, floor=median(floors))
    few, every = (units.percent(median(each), 2) for each in zip(*widths, strict=True))
    shrinks = f"{few} to either side after {FEW} blocks, {every} after all"
    evidence = f"The first {FEW} blocks take {seen.text} of the time of all. What shrinks is the "
    evidence += f"interval: {shrinks} (medians of {len(ratios)} rows)."
    return answer(seen.at_least(1.0 + intervals.SMALLEST_EFFECT), evidence, seen)


@claim(*EVERY)
def iterations_suffice(*tables: Table) -> Finding:
    """Rows of 100 timed calls and more have an interval within 1 % of the median."""
    cases, reached = Cases(), []
    for where, row in _timed(tables):
        if not why_not(row) and (row.get("samples") or 0) < ENOUGH:
            continue
        with cases.at(**where) as case:
            case(not trusted(row).get("wide"))
            reached.append(row["samples"])
    calls = f"{min(reached, default=0)} to {max(reached, default=0)} calls"
    rest = "the interval says nothing of another process"
    return cases.finding(f"Rows of {calls}, in interleaved blocks; {rest}.")


@claim(FP16)
def latest_pytorch_is_nightly_cu128(fp16: Table) -> Finding:
    """The PyTorch that this machine's recordings were made with is built for CUDA 12.8."""
    torch, cuda = fp16.software.get("torch"), str(fp16.software.get("cuda"))
    seen = f"The recordings were made with PyTorch {torch}, built for CUDA {cuda}."
    return answer(cuda.startswith("12.8"), seen)
