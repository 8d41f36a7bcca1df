"""Answers of the exercises on measuring."""

from math import ceil

from anatomy.figures.curriculum.calculations import calculation

AIM = 0.002  # half of the interval that is asked for


@calculation(unit="blocks", half_width='timing.equals.addition."12 blocks".half_width')
def blocks_for_two_permille(half_width: float) -> float:
    """Twelve blocks times the square of their half width over 0.2 %, rounded up."""
    return ceil(12 * (half_width / AIM) ** 2)
