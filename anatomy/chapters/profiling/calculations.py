"""Answers of the exercises on profiles."""

from anatomy.figures.curriculum.calculations import calculation

SMALL = 'profiling.overhead."small step"'
ROW = f'{SMALL}."CPU and GPU"'


@calculation(unit="B", size=f"{ROW}.trace_bytes")
def trace_of_ten_thousand_steps(size: float) -> float:
    """Bytes of one step's Chrome trace, times 10,000."""
    return 10_000 * size


@calculation(unit="%", both=f"{ROW}.ratio")
def what_a_profile_adds(both: float) -> float:
    """What a profile of CPU and GPU adds to the small step, as a share of it."""
    return both - 1


@calculation(unit="%", stacks=f'{SMALL}."with_stack".ratio', both=f"{ROW}.ratio")
def what_stacks_add(stacks: float, both: float) -> float:
    """What Python's stacks add to the small step beyond the other profile, as a share of it."""
    return stacks - both


@calculation(
    unit="s",
    plain='profiling.averages."aten::mm".self_device_s',
    with_bias='profiling.averages."aten::addmm".self_device_s',
)
def matmuls_kernels(plain: float, with_bias: float) -> float:
    """The kernels of all matmuls of a step, under the profiler."""
    return plain + with_bias
