"""What a figure may not be: faster than the hardware, or filed under the wrong cause."""

from collections.abc import Callable, Mapping
from typing import Any

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
    sees it, `gap_share` the share of its span, dispatch hidden, without a kernel; None without a
    profile.
    """
    if enqueue_s >= LAUNCH_BOUND_SHARE * period_s:
        return "launch-bound"
    if gap_share is None:
        return None
    return "gap-bound" if gap_share > GAP_BOUND_SHARE else "kernel-bound"


def impossible(
    row: Mapping[str, Any],
    median_s: float,
    machine: Mapping[str, Any],
    cache_bytes: int | None,
    ceilings: Callable[[], Ceilings | None],
) -> str | None:
    """Why a row's time cannot be true, or None if it can.

    A product faster than the datasheet's peak at the card's highest clock did less work than
    claimed. A cold call on more than twice the cache that beats the measured bandwidth did not
    touch the memory it is said to have touched. `machine` is a recording's block, of a CPU empty;
    its `ceilings` are asked for only where they count.
    """
    if median_s <= 0:
        return f"impossible: {median_s:.3g} s is no time; it is shorter than the clock's own"
    flops, moved, limit = row.get("flops"), row.get("bytes"), row.get("limit")
    sheet = datasheet(machine.get("gpu"))
    if flops and limit and limit.startswith(MATMUL) and sheet:
        clock_mhz = machine.get("max_sm_clock_mhz")
        peak = sheet.peak_at_max_clock(limit.removeprefix(MATMUL), clock_mhz)
        if peak and flops / median_s > peak:
            return (
                f"impossible: {flops / median_s:.3g} FLOP/s is above the {peak:.3g} FLOP/s that "
                f"{sheet.name} reaches at its highest clock"
            )
    beyond_cache = moved and cache_bytes is not None and moved > 2 * cache_bytes
    if beyond_cache and row.get("quantity") == "gpu_cold":
        known = ceilings()
        ceiling = known.get(limit if limit in DRAM else "copy") if known else None
        peak = ceiling.value if ceiling else (sheet.dram_bytes_per_s if sheet else None)
        if peak and moved / median_s > BANDWIDTH_MARGIN * peak:
            return (
                f"impossible: {moved / median_s:.3g} B/s is above {BANDWIDTH_MARGIN} times the "
                f"{peak:.3g} B/s that this memory gives"
            )
    return None
