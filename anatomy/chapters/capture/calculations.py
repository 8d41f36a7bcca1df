"""Answers of the exercises on graph capture."""

from anatomy.figures.curriculum.calculations import calculation

LARGE = 'capture.calls."large input"'


@calculation(
    unit="calls",
    setup=f"{LARGE}.compile.setup_s",
    eager=f"{LARGE}.eager.median_s",
    compiled=f"{LARGE}.compile.median_s",
)
def calls_until_compiling_has_paid(setup: float, eager: float, compiled: float) -> float:
    """Time of compiling and of the first calls, over what each later call saves; to ten."""
    return round(setup / (eager - compiled), -1)
