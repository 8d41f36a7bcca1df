"""Harnesses: the rounds of a reference, and the ratio of a pair."""

from statistics import median

from anatomy.judge.comparisons import RATIOS, TIMES, in_columns
from anatomy.judge.rules import rule
from anatomy.table import intervals


@rule("harnesses.reference", columns=TIMES, source="rounds_s")
def rounds(rows, known):
    """Median, lowest and highest of the rounds."""
    for place, row in enumerate(rows):
        if each := row.get("rounds_s"):
            yield place, {"median_s": median(each), "low_s": min(each), "high_s": max(each)}


@rule(
    "harnesses.estimates",
    columns=(*RATIOS, "verdict"),
    source="block_ratios, and the noise_floor of that comparison",
)
def pairs(rows, known):
    """Ratio and verdict of each pair and effect that `compare` measured."""
    for place, row in enumerate(rows):
        if each := row.get("block_ratios"):
            ratio = intervals.ratio_interval(each, [1.0] * len(each))
            word = intervals.verdict(ratio, row.get("noise_floor"))
            yield place, in_columns(RATIOS, ratio) | {"verdict": word}
