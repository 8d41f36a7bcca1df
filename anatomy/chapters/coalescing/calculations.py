"""Answers of Day 5 that are calculated from what was measured."""

from anatomy.figures.curriculum.calculations import calculation


@calculation(unit="s", bandwidth="limit:read")
def time_of_every_eighth(bandwidth: float) -> float:
    """One float of each sector of 1 GiB: all of its sectors move."""
    return 2**30 / bandwidth


ALL = 'coalescing.strides."all of them"'


def clocks(seconds: float, moved: float, mhz: float, sms: float) -> float:
    """Clocks of an SM for each request of a warp for 128 bytes, of which each SM has its share."""
    return round(seconds * mhz * 1e6 * sms / (moved / 128), 1)


for stride in (8, 16, 32):
    row = f'{ALL}."stride {stride}"'
    calculation(
        f"clocks-at-stride-{stride}",
        unit="clocks",
        seconds=f"{row}.median_s",
        moved=f"{row}.bytes",
        mhz=f"{row}.sm_clock_mhz",
        sms="machine:sm_count",
    )(clocks)
