"""How many iterations of a loop are timed, and how many of a long one are one call."""

import math

import pandas as pd
from torch import Tensor

from anatomy.chapters.sync_points.lines import Call
from anatomy.measure.sampling import WALL_BATCH_S

# A product longer than this is repeated a quarter as often as was asked: it varies less, and a
# table of fifty iterations of 25 ms would take longer than all others together.
LONG_S, QUARTER = 5e-3, 4
# A sample ends with a synchronize. If it held one long product alone, the loop without a wait would
# wait as often as the others; of so many iterations it waits once.
LONG_ROUNDS = 5
# So many turns of all loops are the time of their comparison, first calls and blocks together.
LONG_TURNS = 16
TIMES = ("median_s", "low_s", "high_s", "p5_s", "p95_s", "p99_s", "enqueue_s")


def least_samples(iters: int, kernel_s: float) -> int:
    """Samples that hold `iters` iterations of `kernel_s` at the least, short ones in batches."""
    wanted = iters / QUARTER if kernel_s > LONG_S else iters
    return max(1, math.ceil(wanted * min(1.0, kernel_s / WALL_BATCH_S)))


def of(kernel_s: float) -> int:
    """Iterations of one call: one, or of a long kernel several."""
    return LONG_ROUNDS if kernel_s > LONG_S else 1


def seconds(rounds: int, turn_s: float) -> float:
    """What comparing loops takes whose one iteration each takes `turn_s`; of short kernels 0."""
    return LONG_TURNS * rounds * turn_s if rounds > 1 else 0.0


def repeated(call: Call, rounds: int) -> Call:
    """So many iterations as one call, which returns the last one's result."""
    if rounds == 1:
        return call

    def several() -> Tensor:
        for _ in range(rounds):
            result = call()
        return result

    return several


def per_iteration(table: pd.DataFrame, rounds: int) -> pd.DataFrame:
    """Times of calls of so many iterations as times of one iteration."""
    if rounds == 1:
        return table
    table = table.assign(
        blocks_s=[[took / rounds for took in blocks] for blocks in table.blocks_s],
        method=[f"{method}; a call is {rounds} iterations" for method in table.method],
    )
    times = {name: table[name].astype("float64") / rounds for name in TIMES}
    return table.assign(**times)
