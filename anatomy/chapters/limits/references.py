"""References in prose to what a byte more takes in the L2 cache, and to what a GEMM sustains."""

from statistics import median

from anatomy.chapters.limits import figures
from anatomy.figures.limits import curves
from anatomy.figures.text import spans
from anatomy.figures.text.facts import reference
from anatomy.judge import rows
from anatomy.judge.comparisons import rates
from anatomy.record.showing import Showing
from anatomy.table import units
from anatomy.table.errors import BadParameter, lookup

BANDWIDTH = "limits.bandwidth"


@reference("l2")
def l2(showing: Showing, op: str, spec: str) -> str:
    """`[[l2:copy]]`, bytes per second inside the cache by the slope from size to size; `| fixed`,
    the seconds that a call takes besides; `| best`, the rate of the best call that fits;
    `| edge`, the working set at which half of the step down to the memory's rate is gone."""
    if spec not in ("", "fixed", "best", "edge"):
        raise BadParameter(
            f"what is known of the L2 is a rate, | fixed, | best or | edge; got {spec!r}."
        )
    found = showing.find(BANDWIDTH)
    if showing.collecting:
        return ""
    if found.recording is None:
        return spans.gap(found)
    table = found.recording.rows
    if spec == "edge":
        knees = {step.op: step.knee_bytes for step in curves.steps(table)}
        size = lookup("operation with a working set", op, knees)
        if size is None:
            return spans.gap_because("no step was seen")
        origin = f"half of the step in the rate of a {op}, between measured sizes; {BANDWIDTH}"
        return spans.figure("measured", units.byte_count(size), origin) + spans.marks(found)
    if spec == "best":
        fitting = {step.op: step.cache for step in curves.steps(table) if step.cache}
        best = lookup("operation with a call that fits the cache", op, fitting)
        rate, *ends = rates(best, "bytes")
        text, ends = units.rate(rate, "B/s", most=2), units.rate_range(rate, "B/s", *ends)
        origin = f"{ends}, {best['variant']}: the fastest of the sizes that fit"
        return spans.figure("measured", text, f"{origin}; {BANDWIDTH}") + spans.marks(found)
    more = lookup("operation with a rate in the cache", op, curves.marginals(table))
    if spec:
        text = units.seconds(more.fixed.median, most=2)
        ends = units.seconds_range(more.fixed.median, more.fixed.low, more.fixed.high)
    else:
        text = units.rate(more.rate.median, "B/s", most=2)
        ends = units.rate_range(more.rate.median, "B/s", more.rate.low, more.rate.high)
    origin = f"{ends} as any one size is left out; {more.way}, by the line through its sizes"
    return spans.figure("measured", text, f"{origin}; {BANDWIDTH}") + spans.marks(found)


@reference("sustained")
def sustained(showing: Showing, column: str, spec: str) -> str:
    """`[[sustained:median_s]]`, `[[sustained:rate]]` or another number of `limits.sustained`: the
    median of the windows in the second half of the GEMMs in a row."""
    if spec:
        raise BadParameter(f"what a GEMM sustains has no format; got {spec!r}.")
    found = showing.find(figures.SUSTAINED)
    if showing.collecting:
        return ""
    if found.recording is None:
        return spans.gap(found)
    windows = figures.settled(found.recording.rows)
    numbers = {name: [row.get(name) for row in windows] for name in figures.SHOWN}
    of = lookup("column of what a GEMM sustains", column, numbers)
    if any(units.missing(value) for value in of):
        return spans.gap_because(f"{column} is not known on {showing.machine}")
    text = rows.printed(windows[0] | {column: median(of)}, column)
    least, most = (rows.printed(windows[0] | {column: end(of)}, column) for end in (min, max))
    origin = f"median of {len(windows)} windows, {least} to {most}; {figures.SUSTAINED}"
    return spans.figure("measured", text, origin) + spans.marks(found)
