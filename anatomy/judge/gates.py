"""What a figure may not be: faster than the hardware, or filed under the wrong cause."""

from collections.abc import Callable

from anatomy.judge.limits import DRAM, MATMUL, Ceilings, datasheet

# A host that needs this share of the period sets the pace, whatever the GPU does.
LAUNCH_BOUND_SHARE = 0.9
# A device idle for more than this share of a span waits for something between its kernels.
GAP_BOUND_SHARE = 0.10
# Bandwidth may exceed the measured ceiling by its own uncertainty and no more.
BANDWIDTH_MARGIN = 1.02


def regime(*, enqueue_s: float, period_s: float, gap_share: float | None) -> str | None:
    """What bounds a call: `launch-bound`, `gap-bound` or `kernel-bound`; None if unknown.

    `enqueue_s` is the host's time of one call, `period_s` that of back-to-back calls as the host
    sees it, and `gap_share` the share of its span, dispatch hidden, in which no kernel ran, if
    profiled.
    """
    if enqueue_s >= LAUNCH_BOUND_SHARE * period_s:
        return "launch-bound"
    if gap_share is None:
        return None
    return "gap-bound" if gap_share > GAP_BOUND_SHARE else "kernel-bound"


def impossible(
    *,
    median_s: float,
    flops: float | None,
    bytes_: float | None,
    cold: bool,
    cache_bytes: int | None,
    limit: str | None,
    gpu: str | None,
    max_clock_mhz: float | None,
    ceilings: Callable[[], Ceilings | None],
) -> str | None:
    """Why a figure cannot be true, or None if it can.

    A product faster than the datasheet's peak at the card's highest clock did less work than
    claimed. A call on more than twice the cache, which was `cold`, that beats the measured
    bandwidth did not touch the memory it is said to have touched.

    The call took `median_s` seconds for its `flops` and, at the least, `bytes_`. `limit` is the
    ceiling that the row names, such as `matmul fp16` or `copy`. `gpu` (None on a CPU) and its
    highest SM clock are as the driver gives them; `measured` are the machine's ceilings, where they
    are known.
    """
    if median_s <= 0:
        return f"impossible: {median_s:.3g} s is no time; it is shorter than the clock's own"
    sheet = datasheet(gpu) if gpu else None
    if flops and limit and limit.startswith(MATMUL) and sheet:
        peak = sheet.peak_at_max_clock(limit.removeprefix(MATMUL), max_clock_mhz)
        if peak and flops / median_s > peak:
            return (
                f"impossible: {flops / median_s:.3g} FLOP/s is above the {peak:.3g} FLOP/s that "
                f"{sheet.name} reaches at its highest clock"
            )
    if bytes_ and cold and cache_bytes is not None and bytes_ > 2 * cache_bytes:
        known = ceilings()
        ceiling = known.get(limit if limit in DRAM else "copy") if known else None
        peak = ceiling.value if ceiling else (sheet.dram_bytes_per_s if sheet else None)
        if peak and bytes_ / median_s > BANDWIDTH_MARGIN * peak:
            return (
                f"impossible: {bytes_ / median_s:.3g} B/s is above {BANDWIDTH_MARGIN} times the "
                f"{peak:.3g} B/s that this memory gives"
            )
    return None
