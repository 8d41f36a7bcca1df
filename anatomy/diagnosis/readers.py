"""`anatomy.diagnose`: as `steps.diagnose`, for a reader's own step, of which nothing is known."""

import functools
from collections.abc import Callable
from dataclasses import replace
from html import escape

from anatomy.diagnosis import steps
from anatomy.diagnosis.plain_functions import require_run
from anatomy.table.errors import told_in_python

OF_OPERATORS = (
    "The operators' shares are of the time in PyTorch's operators, not of the step: what it "
    "sleeps, reads or computes elsewhere is in none of them."
)


class Diagnosis(steps.Diagnosis):
    """A diagnosis that a notebook can show."""

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


@functools.wraps(steps.diagnose)
def diagnose(step: Callable[..., object], *, name: str = "step", **given) -> Diagnosis:
    """As `steps.diagnose`; BadParameter also where the step is async or yields, and never runs."""
    with told_in_python():
        found = steps.diagnose(lambda *batch: require_run(name, step(*batch)), name=name, **given)
    if found.device == "cpu" and found.kernels:
        found = replace(found, warnings=(*found.warnings, OF_OPERATORS))
    return Diagnosis(**vars(found))
