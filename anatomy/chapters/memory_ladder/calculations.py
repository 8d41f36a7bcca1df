"""Answers of Day 4 that are calculated from what was measured."""

from anatomy.figures.curriculum.calculations import calculation

LATENCY = 'memory_ladder.latency."chase 1.00 GiB"."1.00 GiB".latency_s'
REGISTER_BYTES = 4 * 2**16  # of an SM: 65,536 registers of 32 bits, on every GPU since 2012


@calculation("bytes-in-flight", unit="B", bandwidth="limit:read", latency=LATENCY)
def bytes_in_flight(bandwidth: float, latency: float) -> float:
    """Little's law: bandwidth of reads from HBM times the latency of one such load."""
    return bandwidth * latency


@calculation(
    "loads-in-flight-per-sm", unit="loads", bandwidth="limit:read", latency=LATENCY,
    sms="machine:sm_count",
)  # fmt: skip
def loads_in_flight_per_sm(bandwidth: float, latency: float, sms: float) -> float:
    """Bytes in flight, shared among the SMs, in loads of 16 bytes."""
    return bytes_in_flight(bandwidth, latency) / sms / 16


@calculation("registers-in-all", unit="B", sms="machine:sm_count")
def registers_in_all(sms: float) -> float:
    """256 KiB of registers for each SM."""
    return REGISTER_BYTES * sms
