"""Day 8: a comparison, judged."""


# --8<-- [start:solution]
def interval(values: list[float]) -> tuple[float, float]:
    """The third smallest and the third largest of a dozen values."""
    ordered = sorted(values)
    return ordered[2], ordered[-3]


def verdict(variant: list[float], control: list[float], again: list[float]) -> str:
    """`faster`, `slower` or `undecided`, from twelve blocks of each."""
    low, high = interval([a / b for a, b in zip(variant, control, strict=True)])
    equals = interval([a / b for a, b in zip(again, control, strict=True)])
    floor = max(abs(end - 1) for end in equals)
    if high < 1 - floor:
        return "faster"
    return "slower" if low > 1 + floor else "undecided"


# --8<-- [end:solution]
