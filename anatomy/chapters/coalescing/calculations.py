"""Answers of Day 5 that are calculated from what was measured."""

from anatomy.figures.curriculum.calculations import calculation


@calculation(unit="s", bandwidth="limit:read")
def time_of_every_eighth(bandwidth: float) -> float:
    """One float of each sector of 1 GiB: all of its sectors move."""
    return 2**30 / bandwidth


ALL = 'coalescing.strides."all of them"'


@calculation(
    unit="B/s",
    mhz='coalescing.offsets."from L1"."offset 4".sm_clock_mhz',
    sms="machine:sm_count",
)
def l1_at_two_clocks(mhz: float, sms: float) -> float:
    """A request for 128 bytes in every two clocks of each SM."""
    return 64 * mhz * 1e6 * sms


def clocks(seconds: float, moved: float, mhz: float, sms: float) -> float:
    """Clocks of an SM for each request of a warp for 128 bytes, of which each SM has its share."""
    return round(seconds * mhz * 1e6 * sms / (moved / 128), 1)


for stride in (16, 32):
    row = f'{ALL}."stride {stride}"'
    calculation(
        f"clocks-at-stride-{stride}",
        unit="clocks",
        seconds=f"{row}.median_s",
        moved=f"{row}.bytes",
        mhz=f"{row}.sm_clock_mhz",
        sms="machine:sm_count",
    )(clocks)
