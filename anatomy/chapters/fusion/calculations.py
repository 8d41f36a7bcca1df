"""Answers of the exercises on fusion."""

from anatomy.chapters.fusion.requirements import MATRIX, SIDE
from anatomy.figures.curriculum.calculations import calculation

LENGTHS = {"long": 32, "short": 1}


def long_over_short(long: float, short: float) -> float:
    """Time of the compiled chain of 32 over that of one operation, compiled."""
    return long / short


for _op in ("multiplications", "cosines"):
    _rows = {name: f'fusion.chains.{_op}."compiled, {n}".median_s' for name, n in LENGTHS.items()}
    calculation(f"fused-{_op}-32-over-1", unit="x", **_rows)(long_over_short)


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
