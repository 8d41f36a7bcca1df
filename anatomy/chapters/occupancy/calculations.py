"""Answers of the exercises on blocks, waves and loads in flight."""

from math import ceil

from anatomy.figures.curriculum.calculations import calculation

ONE_BLOCK = 'occupancy.staircase."one block an SM"."1 block"'
MULTIPLY_ADDS = 20_000  # of a thread, each after the one before
LOAD_BYTES = 128  # of a warp's 32 threads, a float each


@calculation(unit="waves", at_once=f"{ONE_BLOCK}.at_once")
def waves_of_a_thousand_blocks(at_once: float) -> float:
    """1,000 blocks over the blocks that run at once, rounded up."""
    return ceil(1000 / at_once)


@calculation(
    unit="s",
    at_once=f"{ONE_BLOCK}.at_once",
    fixed=f"{ONE_BLOCK}.fixed_s",
    wave=f"{ONE_BLOCK}.wave_s",
)
def time_of_a_thousand_blocks(at_once: float, fixed: float, wave: float) -> float:
    """The fixed part of a launch, and one wave's time for each of its waves."""
    return fixed + wave * waves_of_a_thousand_blocks(at_once)


@calculation(unit="cycles", wave=f"{ONE_BLOCK}.wave_s", clock_mhz="machine:max_sm_clock_mhz")
def cycles_of_a_multiply_add(wave: float, clock_mhz: float) -> float:
    """A wave's time over its 20,000 multiply-adds, in cycles of the highest clock."""
    return wave * clock_mhz * 1e6 / MULTIPLY_ADDS


@calculation(
    unit="%",
    alone='occupancy.staircase."as many as fit".edge=full.median_s',
    shared='occupancy.staircase."as many as fit"."528 blocks".median_s',
)
def share_of_one_block(alone: float, shared: float) -> float:
    """A quarter of the time of four blocks on an SM, over that of one."""
    return shared / 4 / alone


def _by_cycles(blocks: int, name: str) -> None:
    @calculation(
        f"{name}-blocks-by-cycles",
        unit="s",
        fixed=f"{ONE_BLOCK}.fixed_s",
        clock_mhz="machine:max_sm_clock_mhz",
    )
    def taken(fixed: float, clock_mhz: float) -> float:
        """Time of blocks that share an SM, if a multiply-add of a warp holds its scheduler for two
        cycles: the fixed part of a launch, and two warps of each block on a scheduler."""
        return fixed + 2 * 2 * blocks * MULTIPLY_ADDS / (clock_mhz * 1e6)


for number, word in ((2, "two"), (3, "three"), (4, "four")):
    _by_cycles(number, word)


@calculation(
    unit="loads",
    bandwidth="limit:read",
    wait='occupancy.throughput.loads_each="1 load at a time".blocks_per_sm=1.under_way_s',
    sms="machine:sm_count",
)
def loads_for_the_bandwidth(bandwidth: float, wait: float, sms: float) -> float:
    """Bandwidth times the wait of a load, over 128 bytes and all SMs: Little's law."""
    return bandwidth * wait / (LOAD_BYTES * sms)
