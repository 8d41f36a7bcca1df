"""References in prose to what a byte more takes in the L2 cache."""

from anatomy.figures.limits import curves
from anatomy.figures.text import spans
from anatomy.figures.text.facts import reference
from anatomy.record.showing import Showing
from anatomy.table import units
from anatomy.table.errors import BadParameter, lookup

BANDWIDTH = "limits.bandwidth"


@reference("l2")
def l2(showing: Showing, op: str, spec: str) -> str:
    """`[[l2:copy]]`, bytes per second inside the cache by the slope from size to size; `| fixed`,
    the seconds that a call takes besides."""
    if spec not in ("", "fixed"):
        raise BadParameter(f"what is known of the L2 is a rate, or | fixed; got {spec!r}.")
    found = showing.find(BANDWIDTH)
    if showing.collecting:
        return ""
    if found.recording is None:
        return spans.gap(found)
    more = lookup("operation with a rate in the cache", op, curves.marginals(found.recording.rows))
    if spec:
        text = units.seconds(more.fixed.median, most=2)
        ends = units.seconds_range(more.fixed.median, more.fixed.low, more.fixed.high)
    else:
        text = units.rate(more.rate.median, "B/s", most=2)
        ends = units.rate_range(more.rate.median, "B/s", more.rate.low, more.rate.high)
    origin = f"{ends} as any one size is left out; {more.way}, by the line through its sizes"
    return spans.figure("measured", text, f"{origin}; {BANDWIDTH}") + spans.marks(found)
