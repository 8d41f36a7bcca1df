"""Day 8: say what a comparison found. About eight lines."""


def interval(values: list[float]) -> tuple[float, float]:
    """The third smallest and the third largest of a dozen values: they enclose the median that the
    next dozens would have in 96 % of cases, whatever the values are distributed like."""
    raise NotImplementedError


def verdict(variant: list[float], control: list[float], again: list[float]) -> str:
    """`faster`, `slower` or `undecided`, from twelve blocks of each; `again` is the control, too.

    In each block the variant is divided by the control, and so is the control's second time. How
    far from 1 the interval of that reaches is the noise floor. A difference is claimed if both
    ends of the interval of the variant's ratios lie on one side of 1, further off than the floor.
    """
    raise NotImplementedError
