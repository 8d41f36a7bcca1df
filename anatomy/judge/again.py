"""How well the occasions of a machine's recordings agree: the counts behind "would you get the
same?". What an occasion is, and what the shown intervals do with several, says
`anatomy.judge.occasions`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from anatomy.judge import occasions
from anatomy.judge.occasions import Seen
from anatomy.judge.pace import EITHER, GPU, HOST, MIXED
from anatomy.table import intervals
from anatomy.table.intervals import Interval

# A verdict and its opposite.
OPPOSITE = {"faster": "slower", "slower": "faster"}


@dataclass(frozen=True)
class Agreement:
    """How the last two occasions agree in one figure of one class of rows."""

    pace: str  # `GPU`, `host`, `EITHER`, or `MIXED` of ratios
    figure: str  # `median_s` or `ratio`
    rows: int
    overlap: int  # rows whose intervals, each of its own occasion's blocks, overlap
    half: float  # half of the rows differ by this share at most
    most: float  # and 95 % of them by this
    kept: int | None  # ratios whose verdict is the same, and those that turned round; None of times
    turned: int | None
    # Figures that lie in what the other occasions of the row would have shown, of how many: each
    # is left out once, and its recording has no part in the reach.
    held: int
    asked: int


def agreements(recordings: Iterable[Sequence[Seen]]) -> list[Agreement]:
    """One for each class and figure that there is, of what the recordings of a machine have."""
    recordings = [each for each in recordings if each]
    found = []
    for figure, pace in product(("median_s", "ratio"), (GPU, HOST, EITHER, MIXED)):
        groups = [[s for s in one if (s.figure, s.pace) == (figure, pace)] for one in recordings]
        if every := [each for group in groups for each in group]:
            found.append(_agreement(pace, figure, every, [group for group in groups if group]))
    return found


def _agreement(pace, figure, every: Sequence[Seen], groups: Sequence[Sequence[Seen]]) -> Agreement:
    pairs = [each.found[-2:] for each in every]
    apart = sorted(intervals.size(new.median / old.median) for old, new in pairs)
    overlap = sum(old.low <= new.high and new.low <= old.high for old, new in pairs)
    words = [(word(each, each.found[-2]), word(each, each.found[-1])) for each in every]
    ratios = figure == "ratio"
    held = asked = 0
    for group in groups if len(groups) > 1 else ():
        others = (each for other in groups if other is not group for each in other)
        reach = occasions.pooled(others)[pace][figure]
        factors = [factor for each in group for factor in each.beyond]
        held, asked = held + sum(f <= reach for f in factors), asked + len(factors)
    return Agreement(
        pace,
        figure,
        len(every),
        overlap,
        apart[(len(apart) - 1) // 2],
        apart[int(occasions.SHARE * (len(apart) - 1))],
        sum(old == new for old, new in words) if ratios else None,
        sum(OPPOSITE.get(old) == new for old, new in words) if ratios else None,
        held,
        asked,
    )


def word(each: Seen, found: Interval) -> str:
    """The verdict that one occasion alone gives a ratio; the noise floor is the newest one's."""
    return intervals.verdict(found, each.row.get("noise_floor"), each.row.get("runs") or 1)
