"""A machine's limits for a terminal: ceilings beside the maker's, cache, floors, and what lacks."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from rich.table import Table

from anatomy.cli.output import table
from anatomy.figures.limits import curves, rooflines
from anatomy.judge import limits, rows
from anatomy.judge.rows import Row
from anatomy.record import recording
from anatomy.record.recording import Recording
from anatomy.table import units
from anatomy.table.errors import RecordingError

# Experiments whose text is this one, and what each of them measures.
EXPERIMENTS = {
    limits.EXPERIMENT: "the ceilings",
    rooflines.BANDWIDTH: "bandwidth over working-set size",
    rooflines.FLOORS: "the floors of launches, waits and graphs",
}


def compared(slug: str, gpu: str | None, fresh: Recording | None = None) -> list[dict[str, Any]]:
    """Each ceiling of a machine with the maker's figure beside the measured one. A `fresh`
    recording of the ceilings, which may lie nowhere, stands in the place of older ones."""
    theirs, found = limits.from_datasheet(gpu), _measured(slug, fresh)
    pairs = {name: (found.get(name), theirs.get(name)) for name in [*theirs, *found]}
    return [
        {
            "limit": name,
            "unit": (stated or reached).unit,
            "measured": reached.value if reached else None,
            "datasheet": stated.value if stated else None,
            "source": "; ".join(each.source for each in (reached, stated) if each),
        }
        for name, (reached, stated) in pairs.items()
    ]


def report(found: Recording) -> Iterator[Table | str]:
    """What a new recording of one of `EXPERIMENTS` says, beside what is recorded of the others."""
    slug, gpu = found.machine, found.data["machine"].get("gpu")
    recorded = {name: _recorded(slug, name) for name in EXPERIMENTS} | {found.experiment: found}
    fresh = recorded[limits.EXPERIMENT]
    if found_limits := compared(slug, gpu, fresh):
        yield table_of(found_limits)
        yield from sources(found_limits)
    if fresh:
        yield from (f"{row['limit']}: {row['note']}" for row in fresh.rows if row.get("note"))
        yield from _ridges(slug, gpu, fresh)
    if recorded[rooflines.BANDWIDTH]:
        yield from _cache(recorded[rooflines.BANDWIDTH].rows)
    if recorded[rooflines.FLOORS]:
        yield from _floors(recorded[rooflines.FLOORS].rows)
    if found.params.get("scale", 1) < limits.LEAST_SCALE:
        yield (
            f"A quick look: at scale {found.params['scale']:g} these are no limits of the machine, "
            f"and no share is taken of them; from --scale {limits.LEAST_SCALE:g} on they are."
        )
    yield from (f"warning: {warning}" for warning in found.warnings)
    option = "" if found.params["device"] == "cuda:0" else f" --device {found.params['device']}"
    for name, what in EXPERIMENTS.items():
        if recorded[name] is None:
            yield f"Not recorded yet: {what}. pytorch-gpu-anatomy record {name}{option}"


def table_of(compared: list[dict[str, Any]]) -> Table:
    """The ceilings as a table: measured, the maker's, and the share that is reached."""
    lines = []
    for each in compared:
        measured, maker = each["measured"], each["datasheet"]
        rates = (value and units.rate(value, each["unit"]) for value in (measured, maker))
        share = units.percent(measured / maker) if measured and maker else None
        lines.append((each["limit"], *rates, share))
    heads = ("limit", "#measured", "#datasheet", "#measured / datasheet")
    return table(heads, lines, "\nLimits")


def sources(compared: list[dict[str, Any]]) -> Iterator[str]:
    """Where the figures of that table come from: each source once, after what it is of."""
    of: dict[str, list[str]] = {}
    for each in compared:
        of.setdefault(each["source"], []).append(each["limit"])
    for source, names in of.items():
        yield f"{', '.join(names) if len(of) > 1 else 'from'}: {source}"


def _measured(slug: str, fresh: Recording | None) -> dict[str, limits.Ceiling]:
    if fresh is not None:
        source = f"{slug}/{limits.EXPERIMENT}, {fresh.data['started_at'][:10]}"
        return limits.measured((row, source) for row in fresh.rows)
    return {each.name: each for each in known(slug) if each.kind == "measured"}


def _ridges(slug: str, gpu: str | None, fresh: Recording) -> Iterator[str]:
    ceilings = limits.Ceilings(slug, limits.from_datasheet(gpu) | _measured(slug, fresh))
    parts = [
        f"{name.removeprefix(limits.MATMUL)} {units.significant(corner)}"
        for name in rooflines.formats(ceilings)
        if (corner := limits.ridge(ceilings, name)) is not None
    ]
    if parts:
        copies = units.rate(ceilings.get("copy").value, "B/s")
        what = f"operations per byte on (FLOP/B, copies at {copies})"
        yield f"\nCompute-bound from so many {what}: {', '.join(parts)}"


def _cache(found: list[Row]) -> Iterator[Table | str]:
    if not curves.fastest(found):
        return
    size = units.byte_count(found[0]["cache_bytes"])
    lines = []
    for step in curves.steps(found):
        ends = [row and units.rate(curves.rate(row), "B/s") for row in (step.cache, step.memory)]
        lines.append((step.op, *ends, step.knee_bytes and units.byte_count(step.knee_bytes)))
    heads = ("bandwidth", "#best within the cache", "#from memory", "#halfway down at")
    yield table(heads, lines, f"\nCache of {size}, back-to-back calls")


def _floors(found: list[Row]) -> Iterator[Table | str]:
    measured = [row for row in found if row.get("median_s") and row.get("role") != "again"]
    if not measured:
        yield f"Floors: {', '.join(rows.names(found, 'note'))}"
        return
    lines = []
    by = {(row["op"], row["variant"], row["quantity"]): row for row in measured}
    for op, variant in dict.fromkeys((op, variant) for op, variant, _ in by):
        there = [by.get((op, variant, quantity)) for quantity in rooflines.FLOOR_QUANTITIES]
        times = [row and (row["median_s"], row["low_s"], row["high_s"]) for row in there]
        spans = (time and units.seconds_range(*time) for time in times)
        lines.append((variant if op == "graph" else f"{op}: {variant}", *spans))
    more = [curves.each_kernel(found, quantity) for quantity in rooflines.FLOOR_QUANTITIES]
    spans = (each and units.seconds_range(each.median, each.low, each.high) for each in more)
    lines.append(("each kernel more of a long graph", *spans))
    heads = (f"#{head}" for head in rooflines.FLOOR_HEADS.values())
    yield table(("floor", *heads), lines, "\nWhat asking the GPU costs")


def _recorded(slug: str, name: str) -> Recording | None:
    with suppress(RecordingError):
        return recording.find(recording.local_root(), slug, name)
    return None


def known(slug: str) -> limits.Ceilings:
    """The ceilings of a machine, measured and the maker's, as far as they are known."""
    return recording.ceilings(recording.local_root(), slug)
