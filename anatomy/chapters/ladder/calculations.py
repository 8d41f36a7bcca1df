"""Answers of the ladder that are calculated from what was measured."""

from anatomy.figures.curriculum.calculations import calculation

DECODING = 'ladder.decoding.decoding."{}".weight_bytes'


@calculation("fp32-weights-read", unit="s", weights=DECODING.format("0 fp32"), hbm="limit:read")
@calculation("bf16-weights-read", unit="s", weights=DECODING.format("5 bf16"), hbm="limit:read")
@calculation("fp8-weights-read", unit="s", weights=DECODING.format("5 fp8"), hbm="limit:read")
def weights_read(weights: float, hbm: float) -> float:
    """Bytes of all weights over the bandwidth of reads from HBM."""
    return weights / hbm
