"""The steps of a staircase, found in its rows alone, and how long a load is under way."""

from collections.abc import Sequence
from math import ceil

import numpy as np

from anatomy.chapters.occupancy.requirements import ALONE
from anatomy.judge.rules import rule
from anatomy.table import units

# How many times better than a straight line the steps must fit: less is no staircase.
BETTER = 4
LOAD_BYTES = 128  # of a warp's 32 threads, a float each


def steps(blocks: Sequence[int], times: Sequence[float]) -> dict[str, float] | None:
    """The staircase that fits best, by least squares: a launch of `n` blocks takes `fixed_s` and
    `wave_s` for each `at_once` of them begun; from `at_once_low` to `at_once_high` put every launch
    on the same step. None where the times do not go in steps."""
    counts, seen, fits = np.asarray(blocks), np.asarray(times), {}
    for at_once in range(1, max(blocks, default=0)):
        waves = -(-counts // at_once)
        slope, fixed = np.polyfit(waves, seen, 1)
        fits[at_once] = float(np.square(fixed + slope * waves - seen).sum()), fixed, slope
    best = min(fits, key=lambda at_once: fits[at_once][0], default=1)
    if len(counts) < 4 or best == 1:  # steps of one block are a straight line
        return None
    if fits[best][2] <= 0 or fits[1][0] < BETTER * fits[best][0]:
        return None
    same = [n for n in fits if (-(-counts // n) == -(-counts // best)).all()]
    ends = {"at_once": best, "at_once_low": min(same), "at_once_high": max(same)}
    return ends | {"fixed_s": float(fits[best][1]), "wave_s": float(fits[best][2])}


@rule(
    "occupancy.staircase",
    columns=("edge", "waves", "at_once", "at_once_low", "at_once_high", "wave_s", "fixed_s"),
    source="steps of one height and width, fitted to median_s over grid_blocks",
)
def staircase(rows, known):
    """The step on which each launch of blocks that are alone on an SM lies, and the staircase of
    all; and of every launch whether it fills the first wave."""
    timed = (row for row in rows if not units.missing(row.get("median_s")))
    alone = [row for row in timed if row.get("op") == ALONE]
    once = [row for row in alone if row.get("role") != "again"]
    found = steps([row["grid_blocks"] for row in once], [row["median_s"] for row in once])
    for place, row in enumerate(rows if found else ()):
        if blocks := row.get("grid_blocks"):
            edge = {found["at_once"]: "full", found["at_once"] + 1: "one more"}.get(blocks)
            fitted = found | {"waves": ceil(blocks / found["at_once"])} if row in alone else {}
            yield place, {"edge": edge} | fitted


@rule(
    "occupancy.throughput",
    columns=("under_way_s",),
    source="loads_in_flight of all SMs, by the rate",
)
def waits(rows, known):
    """How long a load is under way, by Little's law."""
    for place, row in enumerate(rows):
        if not units.missing(row.get("median_s")) and (sms := known.machine.get("sm_count")):
            in_flight = sms * row["loads_in_flight"] * LOAD_BYTES
            yield place, {"under_way_s": in_flight * row["median_s"] / row["bytes"]}
