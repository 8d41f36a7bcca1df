"""Answers of the exercises on profiles."""

from anatomy.figures.curriculum.calculations import calculation

SMALL = 'profiling.overhead."small step"'
ROW = f'{SMALL}."CPU and GPU"'
OFF = f'{SMALL}."no profiler"'


@calculation(unit="B", size=f"{ROW}.trace_bytes")
def trace_of_ten_thousand_steps(size: float) -> float:
    """Bytes of one step's Chrome trace, times 10,000."""
    return 10_000 * size


def gaps(idle: float, step: float) -> float:
    """Seconds of a step in which the GPU idles."""
    return idle * step


for _name, _row in (("gaps-without-a-profiler", OFF), ("gaps-under-the-profiler", ROW)):
    calculation(_name, unit="s", idle=f"{_row}.gpu_idle_share", step=f"{_row}.median_s")(gaps)
