"""Answers of Day 5 that are calculated from what was measured."""

from anatomy.chapters.coalescing.sectors import useful_share
from anatomy.figures.curriculum.calculations import calculation


@calculation("time-of-every-eighth", unit="s", bandwidth="limit:read")
def time_of_every_eighth(bandwidth: float) -> float:
    """One float of each sector of 1 GiB: all of its sectors move."""
    return 2**30 / bandwidth


@calculation("rate-at-stride-3", unit="B/s", bandwidth="limit:read")
def rate_at_stride_3(bandwidth: float) -> float:
    """Bandwidth of reads times the share of the sectors' bytes that a warp uses at stride 3."""
    return bandwidth * useful_share(3)
