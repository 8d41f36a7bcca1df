"""Answers of the exercises on profiles."""

from anatomy.figures.curriculum.calculations import calculation

SMALL = 'profiling.overhead."small step"'
ROW = f'{SMALL}."CPU and GPU"'


@calculation(unit="B", size=f"{ROW}.trace_bytes")
def trace_of_ten_thousand_steps(size: float) -> float:
    """Bytes of one step's Chrome trace, times 10,000."""
    return 10_000 * size


@calculation(unit="%", stacks=f'{SMALL}."with_stack".ratio', both=f"{ROW}.ratio")
def what_stacks_add(stacks: float, both: float) -> float:
    """What Python's stacks add to the small step beyond the other profile, as a share of it."""
    return stacks - both
