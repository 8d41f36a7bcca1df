"""Day 6: read the ridge off a sweep. About six lines."""


def ridge(flops: list[float], moved: list[float], seconds: list[float]) -> float:
    """Operations per byte at which memory and arithmetic take equally long.

    For each point of the sweep there are its operations, the bytes that it moved, and its time. The
    best bandwidth of any point is the slope; the best rate of any point is the flat part.
    """
    raise NotImplementedError


def attainable(intensity: float, peak: float, bandwidth: float) -> float:
    """Operations per second that a call of such an intensity (FLOP/B) can reach at most."""
    raise NotImplementedError
