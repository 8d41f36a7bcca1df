"""The roofline measured point by point, and operations on it with what keeps each from its roof."""

from collections.abc import Iterable, Sequence
from html import escape

from anatomy.chapters.roofline import roofs
from anatomy.chapters.roofline.claims import ABOVE
from anatomy.claims.table import why_not
from anatomy.figures import framing, tables
from anatomy.figures.charts import figures
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import Canvas
from anatomy.figures.limits import curves, rooflines
from anatomy.figures.limits.placed import Placed, key, named, with_table
from anatomy.judge.comparisons import rates
from anatomy.judge.limits import DRAM, Ceilings
from anatomy.judge.rows import Row
from anatomy.record.showing import current
from anatomy.table import units

AT_ROOF = 0.85  # from this share of its roof on nothing is left to explain
# Calls that the text is about: they have their names on a desk, and numbers on a phone.
NAMED = ("relu", "multiply, in the L2", "AdamW, fused", "AdamW, foreach", "softmax", "layer_norm")
NAMED += ("add, small", "matrix × vector", "attention")
# One or two for each cause, in the order in which the text goes through these.
CAUSES = ("relu", "add, small", "matmul, small", "AdamW, foreach", "sort", "cross_entropy")
CAUSES += ("transposed copy", "softmax")
DRAWN_FROM = 4  # FMAs: fewer lie on the slope as well, and would leave the bend no room
# What a profile lists beside kernels: fills, copies, and the range of an optimizer's step.
NO_KERNEL = ("Memset", "Memcpy", "Optimizer.step#")


@framing.drawn_from("roofline.intensity", ceilings=True)
def sweep(table: Sequence[Row], ceilings: Ceilings) -> str:
    """FMAs on each element, from one to a thousand: each number's mark on the FP32 roof."""
    points = [row for row in table if _timed(row)]
    if not points:
        return figures.refused(table)
    every, slope, _ = rooflines.roofs(ceilings)
    matmul = [each | {"series": "fp32 matmul"} for each in every if each["series"] == "fp32"]
    peak, ridge = _flat(points), _flat(points) / slope["bandwidth"]
    rate = units.rate(peak, "FLOP/s")
    own = {"peak": peak, "rate": rate, "ridge": ridge, "text": units.significant(ridge)}
    own["hover"] = f"the sweep's own: {rate}"
    roof = [*matmul, own | {"series": "multiply-adds"}]
    marks, lines = [], []
    for row in points:
        one = Placed(row["variant"], row, row["flops"] / row["bytes"])
        if row["fmas"] >= DRAWN_FROM:
            number = row["variant"] if row["fmas"] in (4, 16, 48, 64, 1024) else ""
            marks.append(one.mark(number) | {"series": "multiply-adds"})
        moved, *ends = rates(row, "bytes")
        bandwidth = units.rate(moved, "B/s", *ends)
        intensity = f"{units.significant(one.intensity)} FLOP/B"
        lines.append([str(row["fmas"]), intensity, tables.time(row), bandwidth, one.said])
    head = ("FMAs", "#arithmetic intensity", "#time", "#bytes moved", "#operations done")
    name = "FMAs on each element, on the FP32 roof"
    return with_table((roof, slope, marks), name, head, lines) + key((), roof)


def _flat(points: Iterable[Row]) -> float:
    """FLOP/s of the best point: what arithmetic outside matmuls reached."""
    return max(row["flops"] / row["median_s"] for row in points)


def operations(only: Sequence[str] = (), *, caption: str | None = None) -> str:
    """Some twenty operations on the measured roofs, and of each what keeps it from its roof; or
    `only` some of them, by name, as `named` draws them."""
    showing = current()
    found, cache = showing.find("roofline.operations"), showing.find(rooflines.BANDWIDTH)
    ceilings = showing.ceilings_of(found)

    def draw() -> str:
        if found.recording is None:
            return ""
        every, given = found.recording.rows, found.recording.data["machine"]
        there = sorted((row for row in every if _timed(row)), key=_intensity)
        # Like HBM's slope it is of copies: half of what an elementwise call moves, it writes.
        copy = curves.marginals(cache.recording.rows if cache.recording else ()).get("copy")
        copies = copy and copy.rate.median
        if only and there:
            return named(there, only, lambda row: roofs.least(row, ceilings), ceilings)
        drawn = _placed(there, ceilings, copies, given.get("l2_bytes") or 0) if there else ""
        return drawn + figures.refused(every)

    return framing.exhibit([found, cache], caption, draw)


def _placed(table: Sequence[Row], ceilings: Ceilings, copies: float | None, cache: int) -> str:
    """`copies` is the rate of a byte more of a copy within the L2, in bytes per second."""
    every, slope, _ = rooflines.roofs(ceilings)
    if copies:
        name = f"dashed: copy within the L2, {units.rate(copies, 'B/s', most=2)}"
        slope |= {"name": f"solid: {slope['name']}"}
        slope |= {"steeper": {"bandwidth": copies, "name": name}}
    marks, lines = [], []
    for row in table:
        one, least = Placed(row["variant"], row, _intensity(row)), roofs.least(row, ceilings)
        share = least.seconds / row["median_s"] if least else None
        told = f", {units.percent(share)} of what {least.roof} allows" if least else ""
        size = f'<span class="ci">{escape(row["extent"])}, {row["dtype"]}</span>'
        of = (
            f'{units.percent(share)} <span class="ci">{least.roof}</span>' if least else tables.NONE
        )
        if copies and _from_cache(row, share, cache):
            inside = units.percent(row["bytes"] / copies / row["median_s"], 2)
            told += f", {inside} of copies within the L2"
            of += f'<br>{inside} <span class="ci">copy in the L2</span>'
        name, why = f"{escape(row['variant'])} {size}", escape(reason(row, share, cache))
        lines.append([name, units.significant(one.intensity), tables.time(row), of, why])
        if not row["flops"]:
            continue  # what computes nothing has no place on the axis
        place = NAMED.index(row["variant"]) + 1 if row["variant"] in NAMED else 0
        own = {"name": row["variant"], "series": row["dtype"]}
        marks.append(one.mark(str(place or ""), told) | own)
    head = ("operation", "#FLOP/B", "#time", "#of its roof", "what keeps it from there")
    by_name = {row["variant"]: line for row, line in zip(table, lines, strict=True)}
    some = [by_name[name] for name in CAUSES if name in by_name]
    drawn = with_table((every, slope, marks), "Operations on their roofs", head, lines)
    return (
        drawn
        + key(NAMED, every, "The others are in the table.")
        + tables.listed(head, some, "What keeps some from their roofs")
    )


def reason(row: Row, share: float | None, cache_bytes: int) -> str:
    """What keeps a row from its roof: recorded evidence where there is any, else what the operation
    is known to do beside what is counted, called likely."""
    if share is None:
        return ""
    if share > 1 + ABOVE:
        if _from_cache(row, share, cache_bytes):
            return "its bytes stay in the L2"
        return "a higher clock, or fewer bytes than counted"
    if share >= AT_ROOF:
        return "at its roof"
    told = []
    if (row.get("enqueue_s") or 0) > row["median_s"]:
        told.append("too short: a kernel's start and end; the CPU takes longer to ask for it")
    names = [name for name in row.get("kernels") or () if not name.startswith(NO_KERNEL)]
    if len(set(names)) > 1:
        told.append(f"{len(names)} kernels of {len(set(names))} kinds")
    if row.get("beside"):
        told.append(f"likely: {row['beside']}")
    return "; ".join(told) or "not explained by what was recorded"


def _from_cache(row: Row, share: float | None, cache_bytes: int) -> bool:
    """Whether it is too fast for HBM, and all its bytes fit the L2."""
    above = share is not None and share > 1 + ABOVE
    return above and row["limit"] in DRAM and row["bytes"] <= cache_bytes


def _intensity(row: Row) -> float:
    return row["flops"] / row["bytes"]


def _timed(row: Row) -> bool:
    return row.get("role") != "again" and not why_not(row)


@framing.drawn_from("roofline.intensity", ceilings=True)
def clocks(table: Sequence[Row], ceilings: Ceilings, *, fmas: Sequence[int]) -> str:
    """Of some numbers of FMAs the time that their bytes take at the bandwidth of a copy, the time
    that they take at the FP32 peak, and the time measured, to one scale."""
    timed, copy = {row["fmas"]: row for row in table if _timed(row)}, ceilings.get("copy")
    if not timed or not copy:
        return figures.refused(table)
    peak, told = _flat(timed.values()), []
    for row in (timed[count] for count in fmas):
        parts = row["bytes"] / copy.value, row["flops"] / peak
        told.append((row["variant"], *parts, row["median_s"]))
    label = "; ".join(
        f"{name}: bytes {units.seconds(moved)}, arithmetic {units.seconds(done)}, measured "
        f"{units.seconds(seen)}"
        for name, moved, done, seen in told
    )
    return canvas.both(lambda sheet: _bars(sheet, told), label)


def _bars(sheet: Canvas, told: Sequence[tuple[str, float, float, float]]) -> None:
    """For each number of FMAs two bars that begin together, and a mark where the kernel ended; the
    colours stand above them, as a short bar has no room for its name."""
    left, room = 76.0, sheet.width - 76 - 70
    bars = {"bytes": canvas.GOOD, "arithmetic": canvas.BAD}
    _, y = sheet.key(12, bars, opacity=0.45)
    size, y = room / max(max(times) for _, *times in told), y + 16
    for name, moved, done, seen in told:
        sheet.words(1, y + 21, name, bold=True)
        for at, (seconds, colour) in enumerate(zip((moved, done), bars.values(), strict=True)):
            width = max(2.0, size * seconds)
            sheet.box(left, y + 16 * at, width, 13, fill=colour, opacity=0.45)
        end = left + size * seen
        sheet.line((end, y - 3), (end, y + 32), colour=canvas.INK, thick=2)
        sheet.words(end + 5, y + 20, units.seconds(seen))
        y += 46
