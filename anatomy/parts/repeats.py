"""How often a callable is timed at the least."""

from collections.abc import Iterable

from anatomy.measure.blocks import LOOKS
from anatomy.measure.clock import Call
from anatomy.measure.sampling import BATCH_S
from anatomy.measure.stopwatch import Stopwatch

# A call longer than this is a sample by itself. Repeats of it take longer than all else, and one
# differs little from the next: a figure that is narrow at the first look is not timed any further.
LONG_S = BATCH_S


def least_calls(iters: int, calls: Iterable[Call], watch: Stopwatch, long_s: float = LONG_S) -> int:
    """`iters`, but one for each block up to the first look where the slowest of the calls takes
    over `long_s` seconds. Each is called twice, the first time to set itself up."""
    slowest_s = max(min(watch.wall([call]) for _ in range(2)) for call in calls)
    return min(iters, LOOKS[0]) if slowest_s > long_s else iters
