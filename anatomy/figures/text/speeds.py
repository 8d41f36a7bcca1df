"""A ratio of times in words of one direction: `2.1× faster`, `5.9× slower`."""

from collections.abc import Mapping
from typing import Any

from anatomy.table import intervals, units

# A ratio whose whole interval is this near to 1 is `as fast` to who writes code.
NEAR = 0.03
# An undecided ratio this far from 1 is told with its size.
WORTH_TELLING = 1.1
CONTROL, AS_FAST, ABOUT = "control", "as fast", "about as fast"


def in_words(row: Mapping[str, Any]) -> str:
    """How fast a row of a comparison is beside its control; empty where it is not compared."""
    ratio, verdict = row.get("ratio"), row.get("verdict")
    if verdict == "control" or units.missing(ratio):
        return CONTROL if verdict == "control" else ""
    factor = max(ratio, 1 / ratio)
    text = f"{factor:.2g}× {'slower' if ratio > 1 else 'faster'}"
    if verdict in ("faster", "slower"):
        return text
    ends = [row.get(name) for name in ("ratio_low", "ratio_high")]
    near = all(not units.missing(e) and intervals.size(e) <= NEAR for e in ends)
    if verdict == "same" or near:
        return AS_FAST
    return ABOUT if factor < WORTH_TELLING else f"{text} (undecided)"
