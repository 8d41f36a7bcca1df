"""Answers of the exercises on blocks, waves and loads in flight."""

from math import ceil

from anatomy.figures.curriculum.calculations import calculation

ONE_BLOCK = 'occupancy.staircase."one block an SM"."1 block"'
LOAD_BYTES = 128  # of a warp's 32 threads, a float each


@calculation("waves-of-a-thousand-blocks", unit="waves", at_once=f"{ONE_BLOCK}.at_once")
def waves_of_a_thousand_blocks(at_once: float) -> float:
    """1,000 blocks over the blocks that run at once, rounded up."""
    return ceil(1000 / at_once)


@calculation(
    "time-of-a-thousand-blocks",
    unit="s",
    at_once=f"{ONE_BLOCK}.at_once",
    fixed=f"{ONE_BLOCK}.fixed_s",
    wave=f"{ONE_BLOCK}.wave_s",
)
def time_of_a_thousand_blocks(at_once: float, fixed: float, wave: float) -> float:
    """The fixed part of a launch, and one wave's time for each of its waves."""
    return fixed + wave * waves_of_a_thousand_blocks(at_once)


@calculation(
    "loads-for-the-bandwidth",
    unit="loads",
    bandwidth="limit:read",
    wait='occupancy.throughput.loads_each="1 load at a time".blocks_per_sm=1.under_way_s',
    sms="machine:sm_count",
)
def loads_for_the_bandwidth(bandwidth: float, wait: float, sms: float) -> float:
    """Bandwidth times the wait of a load, over 128 bytes and all SMs: Little's law."""
    return bandwidth * wait / (LOAD_BYTES * sms)
