"""Answers that are calculated from what was measured: `[[calculated: time-to-read-a-gib | us]]`.

    @calculation(unit="s", bandwidth="limit:copy")
    def time_to_read_a_gib(bandwidth: float) -> float:
        \"""1 GiB divided by the bandwidth of a copy.\"""
        return 2**30 / bandwidth

A chapter declares them in its `calculations.py`. A calculation's name is its function's with `-`
for `_`, unless another is given: one function may answer several questions. It is pure, so a test
asks it for the constants of any machine; on a page it gets those of the machine shown, in base
units: seconds, bytes, bytes or operations per second.
"""

from collections.abc import Callable
from inspect import getdoc, signature
from typing import NamedTuple

from anatomy.figures.text import inline, spans
from anatomy.judge import limits
from anatomy.record.showing import Found, Showing
from anatomy.table import chapters, units
from anatomy.table.errors import AnatomyError, BadParameter, lookup

# How a result with a unit reads; one in any other word, such as `blocks`, reads `132 blocks`.
PRINTED: dict[str, Callable[[float], str]] = {
    "s": units.seconds,
    "B": units.byte_count,
    "B/s": lambda value: units.rate(value, "B/s"),
    "FLOP/s": lambda value: units.rate(value, "FLOP/s"),
    "x": units.ratio,
    "%": units.percent,
}
Function = Callable[..., float]


class Calculation(NamedTuple):
    """A declared function, the unit of its result, and a reference for each of its arguments."""

    function: Function
    unit: str
    arguments: dict[str, str]


DECLARED: dict[str, Calculation] = {}


def calculation(called: str = "", *, unit: str, **arguments: str) -> Callable[[Function], Function]:
    """Declare a function as what `[[calculated: NAME]]` stands for.

    Args:
        called: Its name, where that is not the function's.
        unit: Of its result: one of `PRINTED`, or a word such as `blocks`.
        arguments: Where each of its parameters comes from: `limit:NAME`, `machine:NAME`, or a row
            and its column, as in `[[...]]`.
    """

    def declare(function: Function) -> Function:
        name = called or function.__name__.replace("_", "-")
        if name in DECLARED:
            raise BadParameter(f"the calculation {name!r} is declared twice.")
        if set(arguments) != set(signature(function).parameters) or not getdoc(function):
            raise BadParameter(
                f"the calculation {name!r} lacks a docstring, or an argument's source."
            )
        DECLARED[name] = Calculation(function, unit, arguments)
        return function

    return declare


def calculated(showing: Showing, name: str, spec: str) -> str:
    """The result for the machine shown, with how it comes about on hover; a gap where something
    that it needs is not recorded."""
    chapters.load("calculations")
    function, unit, arguments = lookup("calculation", name, DECLARED)
    given = showing.of_one_machine(
        lambda: {argument: value_behind(showing, where) for argument, where in arguments.items()}
    )
    if showing.collecting:
        return ""
    if missing := [found for found, number in given.values() if number is None]:
        there = all(found.recording for found in missing)
        return spans.gap_because("not measured") if there else spans.gap(*missing)
    value = function(**{argument: number for argument, (_, number) in given.items()})
    if spec or unit in PRINTED:
        text = units.format_value(value, spec) if spec else PRINTED[unit](value)
    else:
        number = float(value if float(value).is_integer() else units.significant(value))
        text = f"{f'{number:,.0f}' if number.is_integer() else units.significant(value)} {unit}"
    numbers = ", ".join(f"{argument} = {number:.4g}" for argument, (_, number) in given.items())
    how = " ".join((getdoc(function) or "").split())
    found = {id(each): each for each, _ in given.values()}
    origin = f"{how} Here {numbers}, in base units."
    return spans.figure("measured", text, origin) + spans.marks(*found.values())


def value_behind(showing: Showing, reference: str) -> tuple[Found, float | None]:
    """The recording behind a reference, and its number in base units; None where it is missing."""
    kind, _, name = reference.partition(":")
    if kind == "limit":
        found, known = showing.find(limits.EXPERIMENT), dict.fromkeys(limits.known_names())
        ceiling = None if showing.collecting else showing.ceilings.get(name)
        return found, ceiling.value if ceiling else lookup("limit", name, known)
    if kind == "machine":
        found = showing.find(limits.EXPERIMENT)
        known = found.recording.data["machine"] if found.recording else {name: None}
        return found, lookup("field of the machine", name, known)
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
    return found, None if units.missing(value) else value
