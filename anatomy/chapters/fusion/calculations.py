"""Answers of the exercises on fusion."""

from anatomy.chapters.fusion.requirements import MATRIX, SIDE
from anatomy.figures.curriculum.calculations import calculation


def long_over_short(long: float, short: float) -> float:
    """Time of a compiled chain over that of one operation, compiled."""
    return long / short


for _op, _long in (("multiplications", 32), ("cosines", 2), ("cosines", 32)):
    _name = f"fused-{_op}-{_long}-over-1"
    _of = 'fusion.chains.{}."compiled, {}".median_s'.format
    calculation(_name, unit="x", long=_of(_op, _long), short=_of(_op, 1))(long_over_short)


@calculation(unit="s", copy="limit:copy")
def gate_at_a_copys_rate(copy: float) -> float:
    """Ten trips of a tensor of 8192 x 8192 floats, at the bandwidth of a copy."""
    return 10 * 4 * SIDE**2 / copy


@calculation(unit="s", copy="limit:copy")
def fused_gate_at_a_copys_rate(copy: float) -> float:
    """Four trips of a tensor of 8192 x 8192 floats, at the bandwidth of a copy."""
    return 4 * 4 * SIDE**2 / copy


@calculation(unit="%", copy="limit:copy", both='fusion.matmuls."a @ b @ c".eager.median_s')
def between_two_matmuls(copy: float, both: float) -> float:
    """Of the time of a @ b @ c in bf16, what writing and reading the matrix between takes at the
    bandwidth of a copy, as a share."""
    return 2 * 2 * MATRIX**2 / copy / both
