"""References in prose to the comparison of harnesses."""

from html import escape

from anatomy.chapters.harnesses import figures
from anatomy.chapters.harnesses.contest import standings, targets
from anatomy.figures import tables
from anatomy.figures.charts import strips
from anatomy.figures.text import spans
from anatomy.figures.text.facts import reference
from anatomy.record.showing import Showing
from anatomy.table import units
from anatomy.table.errors import BadParameter


@reference("target")
def target(showing: Showing, name: str, spec: str) -> str:
    """`[[target:power]]`, whether one of the harnesses' targets is met; `| found`, its figure;
    `| detail`, of how many; `| count`, both."""
    if spec not in ("", "found", "detail", "count"):
        raise BadParameter(f"a target has found, detail and count; got {spec!r}.")
    calls = figures.recordings(showing)
    if showing.collecting:
        return ""
    contest = figures.contest(calls)
    if contest.estimates.empty:
        return spans.gap(*calls)
    one = targets.target(contest, name)
    count = f"{one.text} {one.detail.partition(';')[0]}".strip()
    hover = f"{one.says}: {one.text}. {one.detail}".strip()
    chip = tables.chip(figures.CHIPS[one.verdict], one.verdict, hover)
    texts = {"found": one.text, "detail": one.detail, "count": count}
    return (escape(texts[spec]) if spec else chip) + spans.marks(*calls)


# What is said of our bias: of all workloads, or of the one whose clock the power cap lowers.
MOST, CAPPED = "most", "power-limited"
LONG_MATMUL = "W8 matmul 8192"


@reference("bias")
def bias(showing: Showing, name: str, spec: str) -> str:
    """`[[bias: most]]`, how far our stopwatch's GPU times lie from the kernels' record at most, of
    all workloads; `power-limited`, how much too short it finds the matmul that the power cap
    slows."""
    if name not in (MOST, CAPPED) or spec:
        raise BadParameter(f"a bias is {MOST} or {CAPPED}; got {name!r}.")
    calls = figures.recordings(showing)
    if showing.collecting:
        return ""
    ours = standings.where(figures.contest(calls).biases, variant=standings.OURS)
    ours = ours[ours.quantity != "step_wall"]
    if ours.empty:
        return spans.gap(*calls)
    if name == MOST:
        ends = [units.percent(ours.bias.abs().max(), 2)]
    else:
        capped = -ours[ours.op == LONG_MATMUL].bias
        ends = [units.percent(each, 2) for each in capped.agg(["min", "max"])]
    told = spans.figure("measured", " to ".join(ends), "our median against the kernels' record")
    return told + spans.marks(*calls)


@reference("contest")
def contest(showing: Showing, name: str, spec: str) -> str:
    """`[[contest:power_w | W]]`, from where to where a reading of the driver was seen in the
    comparison of harnesses, with its unit."""
    calls = figures.recordings(showing)
    if showing.collecting:
        return ""
    there = [each.recording for each in calls if each.recording]
    if not (text := strips.seen(there, name, spec)):
        return spans.gap(*calls)
    told = spans.figure("measured", text, "read by the driver before, while and after")
    return told + spans.marks(*calls)
