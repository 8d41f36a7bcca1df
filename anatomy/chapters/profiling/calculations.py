"""Answers of the exercises on profiles."""

from anatomy.figures.curriculum.calculations import calculation

ROW = 'profiling.overhead."small step"."CPU and GPU"'


@calculation("trace-of-ten-thousand-steps", unit="B", size=f"{ROW}.trace_bytes")
def trace_of_ten_thousand_steps(size: float) -> float:
    """Bytes of one step's Chrome trace, times 10,000."""
    return 10_000 * size


@calculation(
    "faster-without-idling",
    unit="x",
    idle='profiling.overhead."small step"."no profiler".gpu_idle_share',
)
def faster_without_idling(idle: float) -> float:
    """A step whose kernels follow each other takes what is left without the idle share."""
    return 1 / (1 - idle)
