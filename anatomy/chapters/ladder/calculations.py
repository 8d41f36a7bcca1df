"""Answers of the ladder that are calculated from what was measured."""

from anatomy.figures.curriculum.calculations import calculation

DECODING = 'ladder.decoding.decoding."{}".weight_bytes'
GRAPH = 'ladder.decoding.decoding."5 bf16".'
MATMULS = 4  # of a layer: of qkv, out, up and down


@calculation("fp32-weights-read", unit="s", weights=DECODING.format("0 fp32"), hbm="limit:read")
@calculation("bf16-weights-read", unit="s", weights=DECODING.format("5 bf16"), hbm="limit:read")
@calculation("fp8-weights-read", unit="s", weights=DECODING.format("5 fp8"), hbm="limit:read")
def weights_read(weights: float, hbm: float) -> float:
    """Bytes of all weights over the bandwidth of reads from HBM."""
    return weights / hbm


@calculation(
    "decoding-over-its-bytes",
    unit="x",
    step=GRAPH + "median_s",
    read=GRAPH + "bytes",
    hbm="limit:read",
)
def over_its_bytes(step: float, read: float, hbm: float) -> float:
    """Time of a step over that to read its weights, keys and values from HBM."""
    return step * hbm / read


@calculation("one-decoding-matmul", unit="s", matmuls=GRAPH + "product_s", layers=GRAPH + "layers")
def one_matmul(matmuls: float, layers: float) -> float:
    """Time of all matmuls over their number, four in a layer."""
    return matmuls / (MATMULS * layers)


@calculation(
    "one-decoding-matmul-read",
    unit="s",
    weights=GRAPH + "weight_bytes",
    layers=GRAPH + "layers",
    hbm="limit:read",
)
def one_matmul_read(weights: float, layers: float, hbm: float) -> float:
    """Bytes of all weights over the number of matmuls and the bandwidth of reads from HBM."""
    return weights_read(weights, hbm) / (MATMULS * layers)
