"""Answers that are calculated from what was measured: `[[calculated: time-to-read-a-gib | us]]`.

    @calculation("time-to-read-a-gib", unit="s", bandwidth="limit:copy")
    def time_to_read_a_gib(bandwidth: float) -> float:
        \"""1 GiB divided by the bandwidth of a copy.\"""
        return 2**30 / bandwidth

A chapter declares them in its `calculations.py`. The function is pure, so a test asks it for the
constants of any machine; on a page it gets those of the machine shown, in base units: seconds,
bytes, bytes or operations per second.
"""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import getdoc, signature

from anatomy.figures.text import inline, spans
from anatomy.judge import limits
from anatomy.record.showing import Found, Showing
from anatomy.table import chapters, units
from anatomy.table.errors import AnatomyError, BadParameter, lookup

# What a result with a unit reads like; one in another word, such as `blocks`, reads `132 blocks`.
PRINTED: dict[str, Callable[[float], str]] = {
    "s": units.seconds,
    "B": units.byte_count,
    "B/s": lambda value: units.rate(value, "B/s"),
    "FLOP/s": lambda value: units.rate(value, "FLOP/s"),
    "x": units.ratio,
    "%": units.percent,
}
DECLARED: dict[str, "Calculation"] = {}
Function = Callable[..., float]


@dataclass(frozen=True)
class Calculation:
    """One declared function, and where its arguments come from."""

    function: Function
    unit: str
    arguments: dict[str, str]  # name -> a reference without its brackets


def calculation(name: str, *, unit: str, **arguments: str) -> Callable[[Function], Function]:
    """Declare a function as what `[[calculated: NAME]]` stands for.

    Args:
        unit: Of what it returns: `s`, `B`, `B/s`, `FLOP/s`, `x` of a ratio, `%` of a share of 1,
            or a word such as `blocks`.
        arguments: For each of its parameters where it comes from: `limit:NAME`, `machine:NAME`, or
            a row and its column, as in `[[...]]`.
    """

    def declare(function: Function) -> Function:
        if name in DECLARED and DECLARED[name].function.__module__ != function.__module__:
            raise BadParameter(f"the calculation {name!r} is declared twice.")
        if set(arguments) != set(signature(function).parameters) or not getdoc(function):
            raise BadParameter(
                f"the calculation {name!r} lacks a docstring or an argument's source."
            )
        DECLARED[name] = Calculation(function, unit, arguments)
        return function

    return declare


def calculated(showing: Showing, name: str, spec: str) -> str:
    """The result for the machine shown, with how it is calculated on hover; a gap where something
    that it needs is not recorded."""
    chapters.load("calculations")
    asked = lookup("calculation", name, DECLARED)
    numbers, missing = {}, []
    for argument, reference in asked.arguments.items():
        found, number = _number(showing, reference)
        missing += [found] if number is None else []
        numbers[argument] = number
    if showing.collecting:
        return ""
    if missing:
        there = all(found.recording for found in missing)
        return spans.gap_because("not measured") if there else spans.gap(*missing)
    value = asked.function(**numbers)
    if spec:
        text = units.format_value(value, spec)
    elif asked.unit in PRINTED:
        text = PRINTED[asked.unit](value)
    else:
        text = f"{units.significant(value)} {asked.unit}"
    given = ", ".join(f"{key} = {number:.4g}" for key, number in numbers.items())
    how = " ".join((getdoc(asked.function) or "").split())
    return spans.figure("measured", text, f"{how} Here {given}, in base units.")


def _number(showing: Showing, reference: str) -> tuple[Found, float | None]:
    """The recording behind a reference, and its number in base units; None where it is missing."""
    kind, _, name = reference.partition(":")
    if kind in ("limit", "machine"):
        found = showing.find(limits.EXPERIMENT)
        if showing.collecting or (kind == "machine" and found.recording is None):
            return found, None
        if kind == "machine":
            return found, float(lookup("field of the machine", name, found.recording.data[kind]))
        ceiling = showing.ceilings.get(
            lookup("limit", name, dict.fromkeys(limits.known_names(), name))
        )
        return found, ceiling and ceiling.value
    experiment, params, selectors, column = inline.parse(reference)
    found = showing.find(experiment, **params)
    ceilings = showing.ceilings_of(found)
    if showing.collecting or found.recording is None:
        return found, None
    try:
        value = lookup("column", column, inline.pick(found, selectors, ceilings))
    except AnatomyError:
        if found.freshness.current:
            raise
        value = None  # a recording that is out of date lacks it
    return found, None if units.missing(value) else float(value)
