"""A gain that a seed promises, as `1.5-2×`, held against cells: met from its lower end on.

Advice with a factor is a promise to who follows it. Less than its lower end breaks it. More than
its upper end doesn't: nobody who got it was misled, so it is counted and stands beside the verdict.
The six techniques of the axioms are judged by this one rule, and so are their savings of memory.
"""

from collections.abc import Sequence
from math import inf

from anatomy import units
from anatomy.claims.findings import Case, Measured, within


def reaches(gain: Measured, low: float) -> bool | None:
    """Whether a gain is at least `low` with its whole interval; None where that is not decided."""
    return within(gain, low, inf)


def spares(share: Measured, high: float) -> bool | None:
    """Whether what is left of a cost is at most `high` of it; None where that is not decided."""
    return within(share, 0.0, high)


def tally(cases: Sequence[Case], low: float, high: float) -> str:
    """How many gains meet a promise of `low` to `high`, exceed it, and are a gain at all.

    Args:
        cases: Their gains as `measured`: a ratio of speeds. Cases without one do not count.
        low: Lower end of what was promised.
        high: Upper end; the same as `low` for a single number.
    """
    gains = [case.measured for case in cases if case.measured]
    met = sum(reaches(gain, low) is True for gain in gains)
    said = f"At least {units.ratio(low)} in {met} of {len(gains)} cases"
    if met and high > low:
        said += f", more than {units.ratio(high)} in {sum(_beyond(gain, high) for gain in gains)}"
    if low > 1:
        faster = sum(_beyond(gain, 1.0) for gain in gains)
        slower = sum(within(gain, 0.0, 1.0) is True for gain in gains)
        said += f"; faster at all in {faster}, slower in {slower}"
    return f"{said}."


def _beyond(gain: Measured, high: float) -> bool:
    return within(gain, 0.0, high) is False
