"""What a wait takes of an iteration."""

import pandas as pd


def with_shares(table: pd.DataFrame, kernel: pd.Series) -> pd.DataFrame:
    """Add the share of an iteration that a line takes, and the time in which no product runs.

    `kernel` is the row of the product alone, as gpu_warm.
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
