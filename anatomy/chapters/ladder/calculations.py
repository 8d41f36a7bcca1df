"""Answers of the ladder that are calculated from what was measured."""

from anatomy.figures.curriculum.calculations import calculation

DECODING = 'ladder.decoding.decoding."{}".weight_bytes'
GRAPH = 'ladder.decoding.decoding."5 bf16".'
FP32 = 'ladder.training(width=1024, layers=2)."forward and backward"."0 fp32".'
WIDE = 'ladder.training(width=4096, layers=2, budget_s=30)."forward and backward"."0 fp32".'
UNFUSED = 'ladder.training(width=2048, layers=2)."forward and backward"."1 amp bf16".'
BF16 = FP32.replace("0 fp32", "5 bf16")
WIDE_BF16 = WIDE.replace("0 fp32", "5 bf16")
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


@calculation(
    "decoding-cache-read",
    unit="s",
    read=GRAPH + "bytes",
    weights=GRAPH + "weight_bytes",
    hbm="limit:read",
)
def cache_read(read: float, weights: float, hbm: float) -> float:
    """Bytes of all keys and values over the bandwidth of reads from HBM."""
    return (read - weights) / hbm


@calculation(
    "fp32-matmuls-share",
    unit="%",
    matmuls=FP32 + "product_s",
    layers=FP32 + "layers",
    batch=FP32 + "batch",
    sequence=FP32 + "sequence",
    width=FP32 + "width",
    best="limit:matmul fp32",
)
def matmuls_share(
    matmuls: float, layers: float, batch: float, sequence: float, width: float, best: float
) -> float:
    """The rate of the linear layers' matmuls of a step over the card's best one's: `24 C²` FLOPs
    for each token and layer forward, and three times that with the backward pass."""
    return 72 * width**2 * batch * sequence * layers / matmuls / best


@calculation(
    "best-bf16-at-1024",
    unit="FLOP/s",
    flops=BF16 + "flops",
    step=BF16 + "median_s",
    share=BF16 + "share_of_ceiling",
)
@calculation(
    "best-bf16-at-4096",
    unit="FLOP/s",
    flops=WIDE_BF16 + "flops",
    step=WIDE_BF16 + "median_s",
    share=WIDE_BF16 + "share_of_ceiling",
)
def best_of_the_run(flops: float, step: float, share: float) -> float:
    """The rate of the best matmul that a step was held against, from the share that it reached."""
    return flops / step / share


@calculation(
    unit="s",
    batch=FP32 + "batch",
    width=FP32 + "width",
    sequence=FP32 + "sequence",
    hbm="limit:read",
)
def scores_read(batch: float, width: float, sequence: float, hbm: float) -> float:
    """Bytes of one layer's table of scores in fp32, with heads of 128, over the bandwidth of reads
    from HBM."""
    return batch * width / 128 * sequence**2 * 4 / hbm


@calculation(
    "unfused-attention-rate",
    unit="B/s",
    moved='ladder.traffic."forward and backward T=2048 H=32"."written out".dram_bytes',
    attention=UNFUSED + "attention_s",
)
def unfused_rate(moved: float, attention: float) -> float:
    """Bytes of both passes of one sequence of 2048 tokens with 32 heads, by the card's counters,
    over the time of attention's kernels in a step: two layers, four sequences of 1024 tokens and 16
    heads have as many scores."""
    return moved / attention


@calculation(unit="s", weights=WIDE + "parameters", hbm="limit:copy")
def adamw_once(weights: float, hbm: float) -> float:
    """Bytes of one pass of AdamW in fp32 over the bandwidth of a copy: it reads weights, gradients
    and two averages, and writes all but the gradients."""
    return 7 * 4 * weights / hbm


@calculation("decoding-floor", unit="s", read=GRAPH + "bytes", hbm="limit:read")
def floor(read: float, hbm: float) -> float:
    """Bytes of weights, keys and values over the bandwidth of reads from HBM."""
    return read / hbm


@calculation(
    "decoding-gap-a-kernel", unit="s", idle=GRAPH + "gap_s", kernels=GRAPH + "kernels_per_call"
)
def gap_a_kernel(idle: float, kernels: float) -> float:
    """Time without a kernel of a step over the number of its kernels."""
    return idle / kernels


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


@calculation(unit="s", hbm="limit:read")
def seven_billion_read(hbm: float) -> float:
    """Bytes of 7 billion weights in bf16 over the bandwidth of reads from HBM."""
    return weights_read(7e9 * 2, hbm)
