"""Spans of time: joined where they overlap, and how much of two sets lies at the same time."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

Spans = list[tuple[float, float]]  # (start, end) in seconds, in order, none of which overlap

MOST_DRAWN = 60  # spans of one lane that a page draws; the shortest gaps are closed first


def union(several: Iterable[tuple[float, float]]) -> Spans:
    """Spans that may overlap as those that do not."""
    found: Spans = []
    for start, end in sorted(several):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def length(several: Spans) -> float:
    """Seconds of all together."""
    return sum(end - start for start, end in several)


def common(some: Spans, others: Spans) -> float:
    """Seconds that lie in both."""
    return length(some) + length(others) - length(union([*some, *others]))


def begin(lanes: Sequence[Spans]) -> float:
    """When the first of any lane begins; 0 where there is none."""
    return min((lane[0][0] for lane in lanes if lane), default=0.0)


def end(lanes: Sequence[Spans]) -> float:
    """When the last of any lane ends; 0 where there is none."""
    return max((lane[-1][1] for lane in lanes if lane), default=0.0)


def drawn(several: Spans, since: float) -> list[float]:
    """At most `MOST_DRAWN` spans, as starts and ends in turn since a time, to the microsecond."""
    gaps = sorted(b[0] - a[1] for a, b in pairwise(several))
    closed = gaps[-MOST_DRAWN] if len(gaps) >= MOST_DRAWN else -1.0
    found: list[list[float]] = []
    for start, stop in several:
        if found and start - found[-1][1] <= closed:
            found[-1][1] = stop
        else:
            found.append([start, stop])
    return [round(time - since, 6) for span in found for time in span]
