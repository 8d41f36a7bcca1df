"""How far equals stray, and how wide their intervals are, in a row of samples in order."""

from collections.abc import Iterator, Sequence
from math import exp, log
from statistics import median

from anatomy.judge.comparisons import Judged
from anatomy.judge.rows import Row
from anatomy.judge.rules import rule
from anatomy.table import intervals

HALF = 12  # samples of each side of a comparison
RARE = 0.95  # a comparison strays farther in one case of twenty
AS_LONG = 0.9  # of the kernel's time: a way that reads less does not wait for the kernel


def windows(samples: Sequence[float], count: int) -> Iterator[Sequence[float]]:
    """The samples in pieces of so many, one after the other; what is left over is left out."""
    for at in range(0, len(samples) - count + 1, count):
        yield samples[at : at + count]


def ratios(samples: Sequence[float], way: str) -> list[float]:
    """Each comparison of the samples with themselves by a way: a ratio of two equals."""
    if way == "one sample each":
        return [a / b for a, b in windows(samples, 2)]
    every = windows(samples, 2 * HALF)
    if way == "one after the other":
        return [median(each[:HALF]) / median(each[HALF:]) for each in every]
    return [exp(median(log(a / b) for a, b in windows(each, 2))) for each in every]


@rule(
    "timing.equals",
    columns=("stray", "pairs", "half_width"),
    source="samples_s of the row `samples`",
)
def equals(rows: Sequence[Row], known: object) -> Judged:
    """What 95 % of the comparisons of a way stray by at most; and the half width of an interval of
    so many samples, the median over all pieces of as many."""
    taken = {row["op"]: row["samples_s"] for row in rows if row.get("samples_s")}
    for place, row in enumerate(rows):
        samples = taken.get(row.get("op"), ())
        if row["variant"] == "samples" or not samples:
            continue
        if count := row.get("blocks"):
            found = map(intervals.median_interval, windows(samples, count))
            widths = [intervals.half_width(each) for each in found]
            yield place, {"half_width": median(widths) if widths else None}
        elif strays := sorted(intervals.size(each) for each in ratios(samples, row["variant"])):
            at = min(int(RARE * len(strays)), len(strays) - 1)
            yield place, {"stray": strays[at], "pairs": len(strays)}


@rule("timing.ways", columns=("busy_s",), source="median_s of the control", early=True)
def running(rows: Sequence[Row], known: object) -> Judged:
    """For how long the kernel runs in what a way reads: as long as the control says, which times
    nothing else. Of a way that reads less than the kernel takes it is not known."""
    controls = {row["op"]: row["median_s"] for row in rows if row.get("role") == "control"}
    for place, row in enumerate(rows):
        kernel = controls.get(row["op"])
        if row.get("launch_inclusive") and kernel and row["median_s"] >= kernel * AS_LONG:
            yield place, {"busy_s": min(kernel, row["median_s"])}
