"""One callable timed again and again: its samples in order."""

from collections.abc import Sequence
from statistics import median

from anatomy.chapters.timing.judged import HALF, windows
from anatomy.figures.charts import svg
from anatomy.figures.framing import drawn_from
from anatomy.judge.rows import Row
from anatomy.record.showing import current
from anatomy.table import units


@drawn_from("timing.equals", needs="samples_s")
def in_order(table: Sequence[Row]) -> str:
    """The samples of `timing.equals` as they were taken, a panel for each callable: the median of
    each dozen over the median of all."""
    taken = {row["op"]: row["samples_s"] for row in table if row.get("samples_s")}
    panels = [(op, _drawing(samples)) for op, samples in taken.items()]
    label = f"Medians of {HALF} samples over the median of all, in order."
    said = f"Meanwhile the power cap held the clock down for {units.seconds(_capped_s(), most=2)}."
    return svg.chart(panels, label) + (f'<p class="key">{said}</p>' if _capped_s() else "")


def _drawing(samples: Sequence[float]) -> svg.Drawing:
    whole, points = median(samples), []
    for at, dozen in enumerate(windows(samples, HALF)):
        value = median(dozen) / whole
        hover = f"samples {HALF * at + 1} to {HALF * (at + 1)}: {units.ratio(value)}"
        points.append({"x": HALF * at, "value": value, "hover": hover})
    titles = f"the {len(samples)} samples in order", f"median of {HALF} / of all"
    return svg.Drawing("steps.in_order", (points, titles))


def _capped_s() -> float:
    """For how long the power cap held the clock down meanwhile; 0 where nobody counted it."""
    seen = current().find("timing.equals").recording.data["conditions"] or {}
    counters = ((seen.get(when) or {}).get("throttle") or {} for when in ("before", "after"))
    first, last = (each.get("power_cap") or 0 for each in counters)
    return max(0, last - first) * 1e-9  # counted in nanoseconds
