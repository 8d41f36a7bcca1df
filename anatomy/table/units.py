"""Numbers with their units: the only place that turns one into text. A number is printed with the
digits its interval pays for: the last digit shown is the one that the half-width of the interval
reaches. Its ends are rounded at that same digit, so that it lies between them as it reads, too; a
number that does not lie in its interval is refused. Without an interval three significant digits
are shown. What was not measured (None, NaN) reads `not measured`; nothing reads `-0`."""

import re
from functools import lru_cache
from math import floor, isfinite, isinf, isnan, log10
from numbers import Real
from typing import Any

from anatomy.table.errors import BadParameter, MeasurementError

NOT_MEASURED = "not measured"
FEWEST_DIGITS = 2  # an interval wider than its median still leaves a size to read
MOST_DIGITS = 5  # a clock that ticks in steps can give an interval of no width
PLAIN_DIGITS = 3  # without an interval
_ONE = re.compile(r"1(\.0*)?")
PANDAS_MISSING = ("NAType", "NaTType")  # types of what pandas puts where there is no value

TIMES = ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s"))
PREFIXES = ((1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P"))
BINARY = ((1.0, "B"), (2.0**10, "KiB"), (2.0**20, "MiB"), (2.0**30, "GiB"), (2.0**40, "TiB"))

# Unit name in a page's reference -> (size of the unit, what is printed after the number).
UNITS = (
    {name.replace("µ", "u"): (size, f" {name}") for size, name in TIMES}
    | {"µs": (1e-6, " µs"), "%": (0.01, "%"), "x": (1.0, "×"), "×": (1.0, "×")}
    | {f"{p}{unit}": (size, f" {p}{unit}") for size, p in PREFIXES for unit in ("FLOP/s", "B/s")}
    | {name: (size, f" {name}") for size, name in BINARY}
    | {"MHz": (1e6, " MHz"), "GHz": (1e9, " GHz"), "W": (1.0, " W")}
)


def missing(x: Any) -> bool:
    """Whether `x` stands for a value that was not measured: None, NaN, or pandas' NA and NaT."""
    if type(x) in (str, int, float):  # most are, and to ask what else they might be takes long
        return x != x
    return x is None or (isinstance(x, Real) and isnan(x)) or type(x).__name__ in PANDAS_MISSING


def significant(x: float | None, digits: int = PLAIN_DIGITS) -> str:
    """`x` with `digits` significant digits and no exponent: 1234.5 with 3 is `1230`."""
    if missing(x):
        return NOT_MEASURED
    return _fixed(x, _places(x, digits))


def seconds(
    x: float | None, low: float | None = None, high: float | None = None, most: int = MOST_DIGITS
) -> str:
    """A time given in seconds, in the unit that suits it: `57.6 µs`, with `most` digits at most."""
    return _scaled(x, low, high, TIMES, show=False, most=most)


def seconds_range(x: float | None, low: float | None, high: float | None) -> str:
    """A time given in seconds with its interval: `57.6 µs [57.4, 57.9]`."""
    return _scaled(x, low, high, TIMES, show=True)


def ratio(
    x: float | None, low: float | None = None, high: float | None = None, most: int = MOST_DIGITS
) -> str:
    """A ratio, with the digits its interval pays for, at most so many: `1.99×`."""
    return _scaled(x, low, high, ((1.0, "×"),), show=False, most=most)


def ratio_range(x: float | None, low: float | None, high: float | None) -> str:
    """A ratio with its interval: `1.99× [1.97, 2.01]`."""
    return _scaled(x, low, high, ((1.0, "×"),), show=True)


def rate(
    x: float | None,
    unit: str,
    low: float | None = None,
    high: float | None = None,
    most: int = MOST_DIGITS,
) -> str:
    """Work per second, in `FLOP/s` or `B/s`, with a decimal prefix: `812 TFLOP/s`."""
    steps = tuple((size, p + unit) for size, p in PREFIXES)
    return _scaled(x, low, high, steps, show=False, most=most)


def rate_range(x: float | None, unit: str, low: float | None, high: float | None) -> str:
    """Work per second with its interval: `4.02 TB/s [4.01, 4.03]`."""
    return _scaled(x, low, high, tuple((size, p + unit) for size, p in PREFIXES), show=True)


def byte_count(n: float | None) -> str:
    """Bytes with a binary prefix: `16.0 MiB`; below 1024, the exact `512 B`."""
    if missing(n):
        return NOT_MEASURED
    if isinf(n) or abs(n) < 1024:
        return f"{_fixed(n, 0)} B"
    for size, name in BINARY[1:]:
        shown = _fixed(n / size, max(_places(n / size, PLAIN_DIGITS), 0))
        if abs(float(shown)) < 1024 or name == BINARY[-1][1]:
            break
    return f"{shown} {name}"


def percent(x: float | None, digits: int = PLAIN_DIGITS) -> str:
    """A share of 1 as a percentage with at most two decimals: 0.8123 is `81.2%`."""
    if missing(x):
        return NOT_MEASURED
    return f"{_fixed(x * 100, min(max(_places(x * 100, digits), 0), 2))}%"


def with_interval(
    x: float | None,
    low: float | None = None,
    high: float | None = None,
    unit: str = "",
    most: int = MOST_DIGITS,
) -> str:
    """A number that is in `unit` already, with its interval: `57.6 W [57.4, 57.9]`."""
    return _scaled(x, low, high, ((1.0, unit),), show=True, most=most)


def format_value(value: Any, spec: str = "") -> str:
    """One value of a table, in SI units if it is a number, as a page's reference asks for it.
    `spec` is a Python format spec such as `.2f`, or a unit's name such as `us`, `TFLOP/s`, `%`, `x`
    or `MiB`, to which decimals may be added: `us.1`. Empty: as it comes. A spec that is neither, or
    does not suit the value, is a BadParameter."""
    spec = spec.strip()
    if missing(value):
        return NOT_MEASURED
    if isinstance(value, list | tuple):
        return ", ".join(format_value(item, spec) for item in value)
    if type(value).__name__ in ("bool", "bool_"):
        value = "yes" if value else "no"
    if not isinstance(value, Real):
        if spec:
            raise BadParameter(f"{value!r} is text, and text takes no format; got {spec!r}.")
        return str(value)
    if not spec:
        whole = isinf(value) or value == floor(value)
        return _fixed(value, 0) if whole else significant(value)
    name, _, digits = spec.rpartition(".") if re.search(r"\.\d+$", spec) else (spec, "", "")
    if name in UNITS:
        size, shown = UNITS[name]
        number = value / size
        return (_fixed(number, int(digits)) if digits else significant(number)) + shown
    try:
        return _without_minus_zero(format(value, spec))
    except (ValueError, TypeError):
        raise BadParameter(
            f"{spec!r} is neither a format such as '.2f' nor a unit; "
            f"the units are {', '.join(UNITS)}, with decimals as in 'us.1'."
        ) from None


def inert(value: Any) -> Any:
    """A cell of a CSV file: text that a spreadsheet would compute begins with an apostrophe."""
    formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if formula else value


@lru_cache(maxsize=1 << 16)  # a page says most of its numbers several times
def _scaled(
    x, low, high, steps: tuple[tuple[float, str], ...], *, show: bool, most: int = MOST_DIGITS
) -> str:
    """`x` in the largest of the units in `steps` that it fills, with or without its interval."""
    if missing(x):
        return NOT_MEASURED
    if not (missing(low) or missing(high)) and not low <= x <= high:
        raise MeasurementError(
            f"{x:g} lies outside of its own interval, {low:g} to {high:g}. Take all three "
            "from the same values."
        )
    steps = tuple(step for step in steps if step[0] == 1.0) if x == 0 or isinf(x) else steps
    for index, (size, name) in enumerate(steps):  # noqa: B007 - the step that the loop stops at
        ends = tuple(None if missing(end) else end / size for end in (low, high))
        places = min(_paid_places(x / size, *ends), _places(x / size, most))
        if index == len(steps) - 1:
            break
        full = steps[index + 1][0] / size * (1 - 1e-9)  # 1000, but for rounding
        if abs(float(_fixed(x / size, places))) < full:
            break
    text = _fixed(x / size, places)
    text += name if name in ("", "×") else f" {name}"
    if show and not (missing(low) or missing(high)):
        # Where the number itself reads 1, its ends can only go with it.
        beside_1 = (ends[0] > 1 or ends[1] < 1) and not _ONE.fullmatch(_fixed(x / size, places))
        text += f" [{', '.join(_end(end, places, beside_1) for end in ends)}]"
    return text


def _end(x: float, places: int, beside_1: bool) -> str:
    """An end of an interval, which reads 0 only where it is 0, and not 1 where the interval lies
    `beside_1`, which of a ratio means *as fast*."""
    text = _fixed(x, places)
    if x and text.strip("0.") == "":
        return _fixed(x, _places(x, 1))
    if beside_1 and _ONE.fullmatch(text):
        closer = (_fixed(x, places + more) for more in range(1, MOST_DIGITS))
        return next((each for each in closer if not _ONE.fullmatch(each)), text)
    return text


def _paid_places(x: float, low: float | None, high: float | None) -> int:
    """Decimals (negative: places before the point) that an interval pays for."""
    if low is None or high is None or not isfinite(high - low):
        return _places(x, PLAIN_DIGITS)
    largest = x or max(abs(low), abs(high))  # a median of 0 has no first digit to count from
    fewest, most = _places(largest, FEWEST_DIGITS if x else 1), _places(largest, MOST_DIGITS)
    half_width = abs(high - low) / 2
    # 0.1 may come out as 0.09999..., and must not buy a digit by it.
    paid = most if half_width == 0 else -floor(log10(half_width) + 1e-9)
    return min(max(paid, fewest), most)


def _places(x: float, digits: int) -> int:
    """Decimals that show `x` with `digits` significant digits, after rounding."""
    if x == 0 or isinf(x):
        return 0
    rounded = float(f"{abs(x):.{max(digits - 1, 0)}e}")  # 9.996 has its first digit at the tens
    return digits - 1 - floor(log10(rounded) + 1e-12)


def _fixed(x: float, places: int) -> str:
    if isinf(x):
        return "∞" if x > 0 else "-∞"
    return _without_minus_zero(f"{round(x, places):.{max(places, 0)}f}")


def _without_minus_zero(text: str) -> str:
    return text if "-" not in text else re.sub(r"^(\s*)-(?=0*\.?0*(e[+-]?\d+)?%?\s*$)", r"\1", text)
