"""Answers of Day 4 that are calculated from what was measured."""

from anatomy.figures.curriculum.calculations import calculation

LATENCY = 'memory_ladder.latency."chase, levels"."level 3".latency_s'
L2 = 'memory_ladder.bandwidth."read by all, levels"."level 2".level_rate'


@calculation(unit="B", bandwidth="limit:read", latency=LATENCY)
def bytes_in_flight(bandwidth: float, latency: float) -> float:
    """Little's law: bandwidth of reads from HBM times the latency of one such load."""
    return bandwidth * latency


@calculation(unit="loads", bandwidth="limit:read", latency=LATENCY, sms="machine:sm_count")
def loads_in_flight(bandwidth: float, latency: float, sms: float) -> float:
    """The same for one SM, in loads of a warp: 32 threads with a float each."""
    return round(bytes_in_flight(bandwidth, latency) / (128 * sms))


OF_16_MIB = 'memory_ladder.bandwidth."read by all"."16.0 MiB".rate'


@calculation(unit="s", hbm="limit:read")
def one_fetch(hbm: float) -> float:
    """16 MiB over the bandwidth of HBM."""
    return 2**24 / hbm


@calculation(unit="s", hbm="limit:read", l2=OF_16_MIB, sms="machine:sm_count")
def eight_passes(hbm: float, l2: float, sms: float) -> float:
    """16 MiB over the bandwidth of HBM, and eight times for each SM over what all get of the L2."""
    return one_fetch(hbm) + eight_passes_from_hbm(l2, sms)


@calculation(unit="s", hbm="limit:read", sms="machine:sm_count")
def eight_passes_from_hbm(hbm: float, sms: float) -> float:
    """Eight times 16 MiB for each SM over the bandwidth of HBM."""
    return 8 * sms * 2**24 / hbm


def _partly(name: str, size: int) -> None:
    kept = 'memory_ladder.levels."L1 and shared memory".sm_bytes'

    @calculation(f"partly-from-l1-{name}", unit="B/s", l2=L2, kept=kept)
    def partly(l2: float, kept: float) -> float:
        """What arrives from the L2 over the share of the set that an L1 cache can't keep."""
        return l2 / (1 - kept / size)


for number, each in enumerate(("512-kib", "1-mib", "2-mib", "4-mib"), 19):
    _partly(each, 2**number)
