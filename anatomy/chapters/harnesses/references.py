"""References in prose to the comparison of harnesses."""

from html import escape

from anatomy.chapters.harnesses import figures
from anatomy.chapters.harnesses.contest import scoreboard
from anatomy.figures.charts import strips
from anatomy.figures.text import spans
from anatomy.figures.text.facts import reference
from anatomy.record.showing import Showing
from anatomy.table.errors import BadParameter


@reference("target")
def target(showing: Showing, name: str, spec: str) -> str:
    """`[[target:power]]`, whether one of the harnesses' targets is met; `| found`, its figure;
    `| count`, the same with of how many."""
    if spec not in ("", "verdict", "found", "detail", "count"):
        raise BadParameter(f"a target has verdict, found, count and detail; got {spec!r}.")
    calls = figures.recordings(showing)
    if showing.collecting:
        return ""
    board = figures.board(calls)
    if board.empty:
        return spans.gap(*calls)
    one = board.target(name)
    found, detail = scoreboard.found_text(one), one.detail or ""
    of = detail.partition(";")[0]
    texts = {"found": found, "detail": detail, "count": f"{found} {of}".strip()}
    told = escape(texts[spec]) if spec in texts else figures.chip(one)
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
    return spans.figure("measured", text, "read by the driver before, while and after") + (
        spans.marks(*calls)
    )
