"""Answers of the exercises on graph capture."""

from anatomy.figures.curriculum.calculations import calculation

TIMES = {"setup": "compile.setup_s", "eager": "eager.median_s", "compiled": "compile.median_s"}


@calculation(unit="calls", **{n: f'capture.calls."large input".{of}' for n, of in TIMES.items()})
def calls_until_compiling_has_paid(setup: float, eager: float, compiled: float) -> float:
    """Time of compiling and of the first calls, over what each later call saves; to ten."""
    return round(setup / (eager - compiled), -1)
