"""What a wait takes of an iteration, and what the seed predicts of it."""

from collections.abc import Mapping

import pandas as pd

from anatomy.chapters.sync_points.lines import QUEUES

ASYNC = "no wait"


def predicted(
    line: str, kernel_s: float, queue_s: float, alone: Mapping[str, float]
) -> float | None:
    """What an iteration should take, from what its parts take alone; None of a line unknown.

    A line that waits puts them one after the other: queueing the kernel, the kernel, the line. One
    that does not lets the host and the GPU work at once, and the slower of the two sets the pace.

    Args:
        line: The line behind the kernel; `ASYNC` for none.
        kernel_s: Seconds of the kernel on the GPU.
        queue_s: Seconds that the host needs to queue it.
        alone: Seconds of each line with nothing to wait for.
    """
    if line == ASYNC:
        return max(queue_s, kernel_s)
    if line not in alone:
        return None
    if line in QUEUES:
        return max(queue_s + alone[line], kernel_s)
    return queue_s + kernel_s + alone[line]


def with_shares(table: pd.DataFrame, kernel: pd.Series) -> pd.DataFrame:
    """Add the share of an iteration that a line takes, and the time in which no product runs.

    Args:
        table: Rows of one loop, as `with_wait` returns them.
        kernel: The row of the product alone, as gpu_warm.
    """
    # (t - control) / t is 1 - 1 / ratio, whose interval is of the same blocks.
    shares = {
        name: [
            1 - 1 / ratio if role == "variant" else None
            for role, ratio in zip(table.role, table[source], strict=True)
        ]
        for name, source in (
            ("wait_share", "ratio"),
            ("wait_share_low", "ratio_low"),
            ("wait_share_high", "ratio_high"),
        )
    }
    return table.assign(
        kernel_s=kernel.median_s,
        gap_s=table.median_s - kernel.median_s,
        gap_low_s=table.low_s - kernel.high_s,
        gap_high_s=table.high_s - kernel.low_s,
        **{name: pd.Series(values, dtype=object) for name, values in shares.items()},
    )
