"""Answers of the exercises on fusion."""

from anatomy.chapters.fusion.requirements import MATRIX, SIDE
from anatomy.figures.curriculum.calculations import calculation


def _long_over_short(op: str, length: int) -> None:
    rows = {n: f'fusion.chains.{op}."compiled, {n}".median_s' for n in (1, length)}

    @calculation(f"fused-{op}-{length}-over-1", unit="x", long=rows[length], short=rows[1])
    def over(long: float, short: float) -> float:
        """Time of a compiled chain over that of one of its operations, compiled."""
        return long / short


_long_over_short("multiplications", 32)
_long_over_short("cosines", 2)
_long_over_short("cosines", 32)


@calculation("gate-at-a-copys-rate", unit="s", copy="limit:copy")
def gate_at_a_copys_rate(copy: float) -> float:
    """Ten trips of a tensor of 8192 x 8192 floats, at the bandwidth of a copy."""
    return 10 * 4 * SIDE**2 / copy


@calculation("fused-gate-at-a-copys-rate", unit="s", copy="limit:copy")
def fused_gate_at_a_copys_rate(copy: float) -> float:
    """Four trips of a tensor of 8192 x 8192 floats, at the bandwidth of a copy."""
    return 4 * 4 * SIDE**2 / copy


@calculation(
    "between-two-matmuls",
    unit="%",
    copy="limit:copy",
    both='fusion.matmuls."a @ b @ c".eager.median_s',
)
def between_two_matmuls(copy: float, both: float) -> float:
    """Of the time of a @ b @ c in bf16, what writing and reading the matrix between takes at the
    bandwidth of a copy, as a share."""
    return 2 * 2 * MATRIX**2 / copy / both
