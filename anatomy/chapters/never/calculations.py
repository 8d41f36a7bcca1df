"""What the medians of a trip to the CPU give, beside those of differences and of ratios."""

from anatomy.figures.curriculum.calculations import calculation

STAY = 'never.costs."ping-pong 1024"."stay on the GPU".median_s'
TRAVEL = 'never.costs."ping-pong 1024"."by way of the CPU".median_s'


@calculation("trip-by-medians", unit="s", stay=STAY, travel=TRAVEL)
def price(stay: float, travel: float) -> float:
    """The difference of the two medians."""
    return travel - stay


@calculation("trip-slowdown-by-medians", unit="x", stay=STAY, travel=TRAVEL)
def slowdown(stay: float, travel: float) -> float:
    """The ratio of the two medians."""
    return travel / stay
