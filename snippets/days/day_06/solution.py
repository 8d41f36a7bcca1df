"""Day 6: the ridge, read off."""


# --8<-- [start:solution]
def ridge(flops: list[float], moved: list[float], seconds: list[float]) -> float:
    """Operations per byte at which memory and arithmetic take equally long."""
    peak = max(f / s for f, s in zip(flops, seconds, strict=True))
    bandwidth = max(b / s for b, s in zip(moved, seconds, strict=True))
    return peak / bandwidth


def attainable(intensity: float, peak: float, bandwidth: float) -> float:
    """Operations per second that a call of such an intensity (FLOP/B) can reach at most."""
    return min(peak, bandwidth * intensity)


# --8<-- [end:solution]
