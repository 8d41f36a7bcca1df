"""Figures of the page on limits: the cache curve, the roofline, and what asking a GPU costs."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from anatomy import limits, rows, tables, units
from anatomy.charts import figures, svg
from anatomy.errors import UnknownName
from anatomy.exhibits import curves
from anatomy.intervals import Interval
from anatomy.limits import Ceilings
from anatomy.rows import Row
from anatomy.showing import Found, Showing

BANDWIDTH, FLOORS = "limits.bandwidth", "limits.floors"
# Part of the page -> the experiment that it is made of.
PARTS = {
    "ceilings": limits.EXPERIMENT,
    "roofline": limits.EXPERIMENT,
    "bandwidth": BANDWIDTH,
    "floors": FLOORS,
    "graphs": FLOORS,
}
TERA = 1e12
# What the rows of the floors are, in words: operation and variant -> what is asked.
ASKED = {
    ("launch", "nothing"): "call a Python function that does nothing",
    ("launch", "record event"): "record an event",
    ("launch", "empty kernel"): "launch the emptiest kernel",
    ("launch", "add"): "add to one element, result in place",
    ("launch", "add, new result"): "add to one element, new tensor",
    ("wait", "synchronize"): "synchronize with nothing to wait for",
    ("wait", "add, synchronize"): "add to one element and synchronize",
    ("wait", "item"): "read one element with <code>.item()</code>",
    ("wait", "cpu"): "read one element with <code>.cpu()</code>",
}
FLOOR_QUANTITIES = ("host_enqueue", "step_wall", "gpu_warm")
FLOOR_HEADS = {
    "host_enqueue": "until the call returns",
    "step_wall": "from call to call, wall",
    "gpu_warm": "from call to call, GPU",
}


def calls(showing: Showing, part: str) -> tuple[list[Found], Ceilings | None]:
    """The recordings of a part, noted as the page's, and the ceilings where it draws them.

    Raises:
        UnknownName: There is no such part.
    """
    if part not in PARTS:
        raise UnknownName("part of the limits", part, PARTS)
    ceilings = None if part in ("floors", "graphs") else showing.ceilings
    return [showing.find(PARTS[part])], ceilings


def shown(
    showing: Showing, found: Sequence[Found], part: str, ceilings: Any, caption: str | None
) -> str:
    """One part of the page as HTML; a gap where its recording is missing or has nothing of it."""
    table = found[0].recording.data["rows"] if found[0].recording else []
    if part == "ceilings":  # the maker's figures stand there without any recording
        return figures.framed(showing, found, _ceilings(showing, table, ceilings), caption)
    draw: dict[str, Callable[[], str]] = {
        "bandwidth": lambda: _bandwidth(showing, table, ceilings),
        "roofline": lambda: _roofline(showing, ceilings),
        "floors": lambda: _floors(table),
        "graphs": lambda: _graphs(table),
    }
    return figures.framed(showing, found, draw[part]() if table else "", caption)


def formats(ceilings: Ceilings) -> list[str]:
    """Number formats that a machine has a ceiling of products for, the fastest last."""
    names = [each for each in ceilings if each.name.startswith(limits.MATMUL)]
    return [each.name for each in sorted(names, key=lambda each: each.value)]


def _ceilings(showing: Showing, table: Sequence[Row], ceilings: Ceilings) -> str:
    """Each ceiling beside the maker's figure and the clock that it holds at."""
    sheet = limits.datasheet(_gpu(showing)) or limits.datasheet(showing.machine)
    theirs = limits.stated(sheet.slug) if sheet else {}
    refused = {row["limit"]: row["note"] for row in table if row.get("note")}
    lines = []
    for name in dict.fromkeys([*theirs, *(each.name for each in ceilings), *refused]):
        found, maker = ceilings.get(name), theirs.get(name)
        known = found is not None and found.kind == "measured"
        here = units.rate(found.value, found.unit) if known else tables.NONE
        if not known and name in refused:
            here = f'<span class="why">{escape(refused[name])}</span>'
        clock = sheet.peak_clock_mhz.get(name.removeprefix(limits.MATMUL)) if sheet else None
        lines.append(
            [
                escape(name),
                here,
                units.rate(maker.value, maker.unit) if maker else tables.NONE,
                units.percent(found.value / maker.value) if known and maker else "",
                f"{clock:g} MHz" if clock else "",
            ]
        )
    if not lines:
        return ""
    head = ("ceiling", "#measured here", "#maker's figure", "#reached", "#which holds at")
    sources = "; ".join(dict.fromkeys(escape(each.source) for each in theirs.values()))
    cited = f'<p class="cite">Maker\'s figures: {sources}.</p>' if sources else ""
    return tables.listed(head, lines, "Ceilings of the machine") + cited


def _bandwidth(showing: Showing, table: Sequence[Row], ceilings: Ceilings) -> str:
    best = curves.fastest(table)
    if not best:
        return _unmeasured(table)
    cache = best[0]["cache_bytes"]
    points = []
    for row in best:
        rate, low, high = (
            curves.rate(row),
            row["bytes"] / row["high_s"],
            row["bytes"] / row["low_s"],
        )
        told = units.rate(rate, "B/s", low, high)
        points.append(
            {
                "bytes": row["working_set_bytes"],
                "series": row["op"],
                "value": rate / TERA,
                "low": low / TERA,
                "high": high / TERA,
                "hover": f"{row['op']} of {units.byte_count(row['working_set_bytes'])}: {told}, "
                f"{row['way']}",
            }
        )
    sheet = limits.datasheet(_gpu(showing)) or limits.datasheet(showing.machine)
    rules = []
    if sheet:
        name = f"memory, datasheet: {units.rate(sheet.dram_bytes_per_s, 'B/s')}"
        rules.append({"value": sheet.dram_bytes_per_s / TERA, "name": name})
    edge = {"bytes": cache, "name": f"cache, {units.byte_count(cache)}"}
    drawn = svg.Drawing("loglog.bandwidth", (points, rules, edge))
    label = "Bandwidth of copy, read and write over working-set size. The tables have the figures."
    steps = figures.twin(_steps(table, cache), unfold=True)
    return svg.chart(showing, [("", drawn)], label) + steps + _curve(best)


def _steps(table: Sequence[Row], cache: int) -> str:
    """Plateaus and knee of each operation."""
    lines = []
    for step in curves.steps(table):
        ends = [_rate(row) if row else tables.NONE for row in (step.cache, step.memory)]
        times = tables.NONE
        if step.cache and step.memory:
            times = units.ratio(curves.rate(step.cache) / curves.rate(step.memory))
        knee, share = tables.NONE, ""
        if step.knee_bytes is not None:
            knee = units.byte_count(step.knee_bytes)
            share = f' <span class="ci">{units.percent(step.knee_bytes / cache, 2)} of it</span>'
        lines.append([escape(step.op), *ends, times, knee + share])
    head = ("operation", "#best within the cache", "#several caches", "#one over the other",
            "#half way down at")  # fmt: skip
    return tables.listed(head, lines, "Plateaus and knee")


def _curve(best: Sequence[Row]) -> str:
    """The twin of the chart: rate by working set and operation."""
    ops = list(dict.fromkeys(row["op"] for row in best))
    by = {(row["op"], row["working_set_bytes"]): row for row in best}
    lines = []
    for size in sorted({row["working_set_bytes"] for row in best}):
        cells = [by.get((op, size)) for op in ops]
        ways = ", ".join(escape(row["way"]) if row else "" for row in cells)
        lines.append(
            [units.byte_count(size)]
            + [_rate(row) if row else tables.NONE for row in cells]
            + [f'<span class="ci">{ways}</span>']
        )
    head = ("working set", *(f"#{op}" for op in ops), "fastest way of each")
    return figures.twin(tables.listed(head, lines, "Bandwidth by working set"), unfold=False)


def _roofline(showing: Showing, ceilings: Ceilings) -> str:
    memory = ceilings.get("copy")
    roofs, lines = [], []
    for name in formats(ceilings) if memory else ():
        peak, ridge = ceilings.get(name), limits.ridge(ceilings, name)
        told, at = units.rate(peak.value, "FLOP/s"), f"{units.significant(ridge)} FLOP/B"
        dtype = name.removeprefix(limits.MATMUL)
        roofs.append(
            {
                "series": dtype,
                "peak": peak.value,
                "ridge": ridge,
                "text": units.significant(ridge),
                "hover": f"{dtype}: {told} ({peak.kind}), corner at {at}",
            }
        )
        lines.append([escape(dtype), told, at, escape(peak.kind)])
    if not roofs:
        return ""
    bandwidth = units.rate(memory.value, "B/s")
    slope = {"bandwidth": memory.value, "name": f"slope: copy, {bandwidth} ({memory.kind})"}
    drawn = svg.Drawing("loglog.roofline", (roofs, slope))
    label = "Roofline by number format. The table under it has the peaks and the corners."
    head = ("format", "#most operations", f"#corner, with copies at {bandwidth}", "peak is")
    table = tables.listed(head, lines, "Corners of the roofline")
    return svg.chart(showing, [("", drawn)], label) + figures.twin(table, unfold=True)


def _floors(table: Sequence[Row]) -> str:
    if not any(row.get("median_s") for row in table):
        return _unmeasured(table)
    by = {
        (row["op"], row["variant"], row["quantity"]): row
        for row in table
        if row.get("role") != "again"
    }
    cells = [row for (op, _, _), row in by.items() if op in ("launch", "wait")]
    size, unit = tables.time_unit([row["median_s"] for row in cells if row.get("median_s")])
    lines = []
    for (op, variant), words in ASKED.items():
        there = [by.get((op, variant, quantity), {}) for quantity in FLOOR_QUANTITIES]
        if any(there):
            lines.append([words, *(_time(row, size) for row in there)])
    head = ("what is asked", *(f"#{FLOOR_HEADS[q]}, {unit}" for q in FLOOR_QUANTITIES))
    return tables.listed(head, lines, "What asking the GPU costs")


def _graphs(table: Sequence[Row]) -> str:
    graphs = [r for r in table if r.get("op") == "graph" and r.get("role") != "again"]
    if not any(row.get("median_s") for row in graphs):
        return _unmeasured(table)
    lengths = list(dict.fromkeys(row["kernel_count"] for row in graphs))
    by = {(row["kernel_count"], row["quantity"]): row for row in graphs}
    lines = [
        [
            f"{length} kernel{'s' if length > 1 else ''}",
            *(_time(by.get((length, quantity), {})) for quantity in FLOOR_QUANTITIES),
        ]
        for length in lengths
    ]
    fits = [curves.graph_line(table, quantity) for quantity in FLOOR_QUANTITIES]
    for name, part in (("each kernel adds", "each"), ("fixed cost of a replay", "fixed")):
        found = [getattr(fit, part) if fit else None for fit in fits]
        lines.append([name, *(_interval(each) for each in found)])
    strays = (units.percent(fit.strays, 2) if fit else tables.NONE for fit in fits)
    lines.append(["farthest from that line", *strays])
    head = ("graph of", *(f"#{FLOOR_HEADS[q]}" for q in FLOOR_QUANTITIES))
    return tables.listed(head, lines, "Replays of CUDA graphs")


def _gpu(showing: Showing) -> str | None:
    found = showing.find(limits.EXPERIMENT).recording
    return found.data["machine"].get("gpu") if found else None


def _rate(row: Row) -> str:
    work = row["bytes"]
    low, high = work / row["high_s"], work / row["low_s"]
    return units.rate(curves.rate(row), "B/s", low, high)


def _time(row: Row, size: float | None = None) -> str:
    values = [row.get(name) for name in ("median_s", "low_s", "high_s")]
    if size is not None:
        return tables.figure(*values, size=size)
    return tables.NONE if units.missing(values[0]) else _split(units.seconds_range(*values))


def _interval(found: Interval | None) -> str:
    if found is None:
        return tables.NONE
    return _split(units.seconds_range(found.median, found.low, found.high))


def _split(text: str) -> str:
    number, bracket, rest = text.partition(" [")
    return number + (f' <span class="ci">[{rest}</span>' if bracket else "")


def _unmeasured(table: Sequence[Row]) -> str:
    """What a recording without times says of itself."""
    notes = rows.names(table, "note")
    return "".join(f'<p class="gap">{escape(note)}</p>' for note in notes)
