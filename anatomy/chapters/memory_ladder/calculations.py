"""Answers of Day 4 that are calculated from what was measured."""

from anatomy.figures.curriculum.calculations import calculation

LATENCY = 'memory_ladder.latency."chase 1.00 GiB"."1.00 GiB".latency_s'
L2 = 'memory_ladder.bandwidth."read by all, levels"."level 2".level_rate'


@calculation(unit="B", bandwidth="limit:read", latency=LATENCY)
def bytes_in_flight(bandwidth: float, latency: float) -> float:
    """Little's law: bandwidth of reads from HBM times the latency of one such load."""
    return bandwidth * latency


@calculation(unit="s", hbm="limit:read", l2=L2, sms="machine:sm_count")
def eight_passes(hbm: float, l2: float, sms: float) -> float:
    """16 MiB over the bandwidth of HBM, and eight times for each SM over what all get of the L2."""
    return 2**24 / hbm + eight_passes_from_hbm(l2, sms)


@calculation(unit="s", hbm="limit:read", sms="machine:sm_count")
def eight_passes_from_hbm(hbm: float, sms: float) -> float:
    """Eight times 16 MiB for each SM over the bandwidth of HBM."""
    return 8 * sms * 2**24 / hbm


@calculation(unit="B/s", l2=L2, kept='memory_ladder.levels."L1 and shared memory".sm_bytes')
def partly_from_l1(l2: float, kept: float) -> float:
    """What arrives from the L2 over the share of 2 MiB that an L1 cache can't keep."""
    return l2 / (1 - kept / 2**21)
