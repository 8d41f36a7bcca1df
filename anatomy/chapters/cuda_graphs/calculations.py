"""What a graph can gain at most: the time of an eager step over that of its kernels."""

from anatomy.figures.curriculum.calculations import calculation

EAGER = 'graph_capture.training."training C={} tokens={}".step_wall.eager.'


def over_its_kernels(step: float, kernels: float) -> float:
    """Time of an eager step over the time in which its kernels run, as a profiler reads it."""
    return step / kernels


for width, tokens in ((128, 1024), (512, 1024), (1024, 4096), (2048, 4096)):
    row = EAGER.format(width, tokens)
    calculation(
        f"most-a-graph-gains-at-{width}", unit="x", step=f"{row}median_s", kernels=f"{row}busy_s"
    )(over_its_kernels)
