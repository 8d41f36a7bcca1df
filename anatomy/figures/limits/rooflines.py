"""The machine's limits on a page: ceilings, roofline, cache curve, what asking a GPU costs."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from anatomy.figures import framing, tables
from anatomy.figures.charts import figures, svg
from anatomy.figures.limits import curves
from anatomy.judge import limits as machine
from anatomy.judge import rows
from anatomy.judge.comparisons import rates
from anatomy.judge.limits import Ceilings
from anatomy.judge.rows import Row
from anatomy.record.showing import current
from anatomy.table import units
from anatomy.table.errors import lookup
from anatomy.table.intervals import Interval

BANDWIDTH, FLOORS = "limits.bandwidth", machine.FLOORS
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
FLOOR_HEADS = {
    "host_enqueue": "until the call returns",
    "step_wall": "from call to call, wall",
    "gpu_warm": "from call to call, GPU",
}
FLOOR_QUANTITIES = tuple(FLOOR_HEADS)


def limits(part: str = "ceilings", *, caption: str | None = None) -> str:
    """The machine's limits: its ceilings beside the maker's figures, or another part of them.

        limits("bandwidth", caption="Copy, read and write over the size of the working set.")

    Args:
        part: `ceilings`, `roofline` (of them, by number format), `bandwidth` (over working-set
            size), `floors` (a launch, a wait, a readback) or `graphs` (their cost over length).
    """
    experiment, draw = lookup("part of the limits", part, PARTS)
    showing = current()
    found = showing.find(experiment)
    ceilings = None if experiment == FLOORS else showing.ceilings_of(found)
    table = found.recording.rows if found.recording else []
    # The maker's figures stand there without any recording.
    there = table or part == "ceilings"
    return framing.exhibit([found], caption, lambda: draw(table, ceilings) if there else "")


def formats(ceilings: Ceilings) -> list[str]:
    """Number formats that a machine has a ceiling of products for, the fastest last."""
    names = [each for each in ceilings if each.name.startswith(machine.MATMUL)]
    return [each.name for each in sorted(names, key=lambda each: each.value)]


def _ceilings(table: Sequence[Row], ceilings: Ceilings) -> str:
    """Each ceiling beside the maker's figure, and its share of that at the clock read after."""
    sheet, memory_clock = _datasheet(), _known().get("max_memory_clock_mhz")
    theirs = machine.from_datasheet(sheet.slug) if sheet else {}
    refused = {row["limit"]: row["note"] for row in table if row.get("note")}
    lines = []
    for name in dict.fromkeys([*theirs, *(each.name for each in ceilings), *refused]):
        found, maker = ceilings.get(name), theirs.get(name)
        here, share = tables.NONE, ""
        if found is not None and found.kind == "measured":
            here = units.rate(found.value, found.unit)
            share = units.percent(found.value / maker.value) if maker else ""
        elif name in refused:
            here = tables.why(refused[name])
        stated = units.rate(maker.value, maker.unit) if maker else tables.NONE
        clock = sheet.peak_clock_mhz.get(name.removeprefix(machine.MATMUL)) if sheet else None
        read = _clock_of(name, table) if clock and share else None
        peak, of = maker.value * read / clock if read else None, ""
        if share and found.unit == "B/s" and (peak := sheet.hbm_bytes_per_s(memory_clock)):
            read, of = memory_clock, " (memory)"
        at_clock = units.percent(found.value / peak) if peak else ""
        clocks = [f"{each:.0f} MHz" if each else "" for each in (clock, read)]
        called = escape(name).replace(" ", "&nbsp;")
        lines.append([called, here, stated, share, clocks[0], clocks[1] + of, at_clock])
    if not lines:
        return ""
    head = ("ceiling", "#measured here", "#maker's figure", "#reached")
    head += ("#maker's clock", "#clock here", "#reached at that clock")
    sources = "; ".join(dict.fromkeys(escape(each.source) for each in theirs.values()))
    cited = f'<p class="cite">Maker\'s figures: {sources}.</p>' if sources else ""
    return tables.listed(head, lines, "Ceilings of the machine") + cited


def _clock_of(name: str, table: Sequence[Row]) -> float | None:
    """MHz of the SMs, read after the calls that are a ceiling; None where it was not read."""
    products = [row for row in table if row.get("limit") == name and row.get("flops")]
    there = [row for row in products if row.get("median_s") and row.get("role") != "again"]
    best = max(there, key=lambda row: row["flops"] / row["median_s"], default={})
    return best.get("sm_clock_mhz")


def _bandwidth(table: Sequence[Row], _: Ceilings) -> str:
    best = curves.fastest(table)
    if not best:
        return _unmeasured(table)
    points = []
    for row in best:
        size = units.byte_count(row["working_set_bytes"])
        hover = f"{row['op']} of {size}: {_rate(row)}, {row['way']}"
        point = {"bytes": row["working_set_bytes"], "series": row["op"], "hover": hover}
        ends = (rate / TERA for rate in rates(row, "bytes"))
        points.append(point | dict(zip(("value", "low", "high"), ends, strict=True)))
    rules = []
    if sheet := _datasheet():
        name = f"memory, datasheet: {units.rate(sheet.dram_bytes_per_s, 'B/s')}"
        rules.append({"value": sheet.dram_bytes_per_s / TERA, "name": name})
    cache = best[0]["cache_bytes"]
    edges = [{"bytes": cache, "name": f"reported: {units.byte_count(cache)}"}]
    knees = [step.knee_bytes for step in curves.steps(table) if step.op == "copy"]
    for knee in filter(None, knees):
        edges.append({"bytes": knee, "name": f"a copy is halfway down: {units.byte_count(knee)}"})
    drawn = svg.Drawing("loglog.bandwidth", (points, rules, edges))
    label = "Bandwidth of copy, read and write over working-set size. The tables have the figures."
    picture = svg.chart([("", drawn)], label)
    steps = figures.twin(_steps(table, cache), name="Table: in the cache, and from memory")
    return picture + steps + figures.twin(_curve(best), name="Table: by size")


def _steps(table: Sequence[Row], cache: int) -> str:
    """Plateaus and knee of each operation, and what a byte more takes inside the cache."""
    more, lines = curves.marginals(table), []
    for step in curves.steps(table):
        knee = rate = start = tables.NONE
        if step.knee_bytes is not None:
            share = f'<span class="ci">{units.percent(step.knee_bytes / cache, 2)} of it</span>'
            knee = f"{units.byte_count(step.knee_bytes)} {share}"
        if slope := more.get(step.op):
            ends = slope.rate.median / TERA, slope.rate.low / TERA, slope.rate.high / TERA
            rate = f"{tables.figure(*ends)} TB/s"
            start = units.seconds(slope.fixed.median, most=2)
        rates = (_rate(step.cache), rate, start, _rate(step.memory))
        lines.append([escape(step.op), *rates, knee])
    rates = ("#best call that fits the cache", "#slope there", "#start and end of a call")
    head = ("operation", *rates, "#from memory", "#halfway down at")
    return tables.listed(head, lines, "Plateaus, the rate of a byte more, and knee")


def _curve(best: Sequence[Row]) -> str:
    """The twin of the chart: rate by working set and operation."""
    ops = rows.names(best, "op")
    lines = []
    for size in sorted({row["working_set_bytes"] for row in best}):
        by_op = {row["op"]: row for row in best if row["working_set_bytes"] == size}
        ways = ", ".join(escape(by_op[op]["way"]) if op in by_op else "" for op in ops)
        rates = (_rate(by_op.get(op)) for op in ops)
        lines.append([units.byte_count(size), *rates, f'<span class="ci">{ways}</span>'])
    head = ("working set", *(f"#{op}" for op in ops), "fastest way of each")
    return tables.listed(head, lines, "Bandwidth by working set")


def roofs(ceilings: Ceilings) -> tuple[list[dict], dict, list[list[str]]]:
    """Roofs by number format and the slope under them, as the chart takes them, and the lines of
    their table."""
    memory = ceilings.get("copy")
    found, lines = [], []
    for name in formats(ceilings):
        peak, ridge = ceilings.get(name), machine.ridge(ceilings, name)
        rate, corner = units.rate(peak.value, "FLOP/s"), units.significant(ridge)
        dtype, at = name.removeprefix(machine.MATMUL), f"{corner} FLOP/B"
        roof = {"series": dtype, "peak": peak.value, "rate": rate, "ridge": ridge, "text": corner}
        found.append(roof | {"hover": f"{dtype}: {rate} ({peak.kind}), ridge point at {at}"})
        lines.append([escape(dtype), rate, at, escape(peak.kind)])
    bandwidth = units.rate(memory.value, "B/s")
    slope = {"bandwidth": memory.value, "name": f"copy, {bandwidth} ({memory.kind})"}
    return found, slope, lines


def _roofline(_: Sequence[Row], ceilings: Ceilings) -> str:
    if not ceilings.get("copy") or not formats(ceilings):
        return ""
    found, slope, lines = roofs(ceilings)
    drawn = svg.Drawing("loglog.roofline", (found, slope))
    label = "Roofline by number format. The table under it has the peaks and the ridge points."
    bandwidth = units.rate(slope["bandwidth"], "B/s")
    head = ("format", "#most operations", f"#ridge point, with copies at {bandwidth}", "peak is")
    table = tables.listed(head, lines, "Ridge points of the roofline")
    return svg.chart([("", drawn)], label) + figures.twin(table)


def _floors(table: Sequence[Row], _: None) -> str:
    if not any(row.get("median_s") for row in table):
        return _unmeasured(table)
    own = [row for row in table if row.get("role") != "again"]
    by = {(row["op"], row["variant"], row["quantity"]): row for row in own}
    cells = [row for row in by.values() if row["op"] in ("launch", "wait")]
    size, unit = tables.time_unit([row["median_s"] for row in cells if row.get("median_s")])
    lines = []
    for (op, variant), words in ASKED.items():
        there = [by.get((op, variant, quantity), {}) for quantity in FLOOR_HEADS]
        if any(there):
            lines.append([words, *(tables.interval(row, "median_s", size) for row in there)])
    head = ("what is asked", *(f"#{name}, {unit}" for name in FLOOR_HEADS.values()))
    return tables.listed(head, lines, "What asking the GPU costs")


def _graphs(table: Sequence[Row], _: None) -> str:
    graphs = curves.graph_rows(table)
    if not any(row.get("median_s") for row in graphs):
        return _unmeasured(table)
    by = {(row["kernel_count"], row["quantity"]): row for row in graphs}
    lines = []
    for length in dict.fromkeys(row["kernel_count"] for row in graphs):
        times = (tables.time(by.get((length, quantity))) for quantity in FLOOR_HEADS)
        lines.append([f"{length} kernel{'s' if length > 1 else ''}", *times])
    more = (_interval(curves.each_kernel(table, quantity)) for quantity in FLOOR_HEADS)
    lines.append(["a kernel more, between the last two", *more])
    head = ("graph of", *(f"#{name}" for name in FLOOR_HEADS.values()))
    return tables.listed(head, lines, "Replays of CUDA graphs")


def _datasheet() -> machine.Datasheet | None:
    """What the maker says of the machine that is shown."""
    return machine.datasheet(_known().get("gpu")) or machine.datasheet(current().machine)


def _known() -> Mapping[str, Any]:
    """What the recording of the ceilings knows of its machine."""
    found = current().find(machine.EXPERIMENT).recording
    return found.data["machine"] if found else {}


def _rate(row: Row | None) -> str:
    if row is None:
        return tables.NONE
    value, low, high = rates(row, "bytes")
    return units.rate(value, "B/s", low, high)


def _interval(found: Interval | None) -> str:
    if found is None:
        return tables.NONE
    return tables.lighter(units.seconds_range(found.median, found.low, found.high))


def _unmeasured(table: Sequence[Row]) -> str:
    """What a recording without times says of itself."""
    notes = rows.names(table, "note")
    return "".join(f'<p class="gap">{escape(note)}</p>' for note in notes)


# Part of the page -> the experiment that it is made of, and what draws it.
PARTS: dict[str, tuple[str, Callable[[Sequence[Row], Ceilings | None], str]]] = {
    "ceilings": (machine.EXPERIMENT, _ceilings),
    "roofline": (machine.EXPERIMENT, _roofline),
    "bandwidth": (BANDWIDTH, _bandwidth),
    "floors": (FLOORS, _floors),
    "graphs": (FLOORS, _graphs),
}
