"""Where data can lie, how fast it comes from there, and how much fits: bars to scale."""

from typing import NamedTuple

from anatomy.figures import framing
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, FOURTH, GOOD, LINE, MUTED, THIRD, Canvas
from anatomy.figures.limits import curves
from anatomy.judge import limits as machine
from anatomy.judge import rows
from anatomy.record.recording import Recording
from anatomy.record.showing import current
from anatomy.table import units
from anatomy.table.errors import BadParameter

BANDWIDTH, TRANSFERS = "limits.bandwidth", "transfers.to_device"
# Of reads by kernels that show the caches, and what each level holds; where these are recorded.
LADDER, HELD, CHASE = (f"memory_ladder.{name}" for name in ("bandwidth", "levels", "latency"))
BAR = 22.0  # pixels


class Level(NamedTuple):
    """One place for data: bytes per second that come from there, and bytes that fit; `more` is the
    rate of a byte more, without what a call takes to start and to end. It is the bar's rate where
    there is one."""

    name: str
    what: str
    bytes_per_s: float
    fits: int | None
    colour: str
    more: float | None = None
    waits: str = ""  # how long it is from one load to the next that depends on it
    rates: str = ""  # what stands beside its bar, where that is not one rate


def memory_ladder(*, caption: str | None = None) -> str:
    """Measured bandwidth of the caches, of HBM and of the link to the host, to one scale, with what
    fits into each.

        memory_ladder(caption="To scale.")
    """
    showing = current()
    names = (BANDWIDTH, TRANSFERS, LADDER, HELD, CHASE, machine.EXPERIMENT)
    *found, limits = showing.find_together((name, {}) for name in names)

    def draw() -> str:
        copies, transfers, ladder, held, chase = (each.recording for each in found)
        if copies is None or transfers is None:
            return ""
        copy = showing.ceilings_of(limits).get("copy")
        levels = _levels(copies, transfers, hbm=copy.value if copy else None)
        if ladder and held:
            own = curves.marginals(copies.rows).get("read")
            levels = (_read(ladder, held, chase, own) or levels[:-1]) + levels[-1:]
        label = "Bandwidth to scale: " + "; ".join(_said(each) for each in levels)
        return canvas.both(lambda sheet: _bars(sheet, levels), f"{label}.")

    return framing.exhibit([*found, limits], caption, draw)


def _levels(bandwidth: Recording, transfers: Recording, *, hbm: float | None) -> list[Level]:
    """`hbm` is the limit of copies in bytes per second; without it the fastest copy of the curve of
    bandwidths stands for it."""
    card = bandwidth.data["machine"]
    copy = next((s for s in curves.steps(bandwidth.rows) if s.op == "copy"), None)
    pinned = _pinned(transfers)
    if not copy or not copy.cache or not copy.memory or not pinned:
        raise BadParameter("no copies within the cache, in memory and from the host are recorded.")
    link = pinned["bytes"] / pinned["median_s"]
    whole = units.rate(curves.rate(copy.cache), "B/s", most=2)
    l2 = f"each further byte; dark: a whole copy, {whole}"
    slope = curves.marginals(bandwidth.rows).get("copy")
    more = slope.rate.median if slope else None
    if more is None:
        l2 = "copies that stay in the cache"
    outside = hbm or curves.rate(copy.memory)
    return [
        Level("L2 cache", l2, curves.rate(copy.cache), card.get("l2_bytes"), THIRD, more),
        Level("HBM", "copies larger than the cache", outside, card.get("memory_bytes"), GOOD),
        Level("link to the CPU", "copies from pinned memory", link, None, BAD),
    ]


def _read(
    ladder: Recording, held: Recording, chase: Recording | None, own: curves.Marginal | None
) -> list[Level]:
    """The levels as kernels read them that do nothing else, with how long one load waits where a
    chase found three levels as well; none where fewer were found. `own` is what whole calls found
    that the L2 itself delivers of each byte more."""
    fits = {row["variant"]: row.get("gpu_bytes") for row in held.rows}
    every = [row for row in ladder.rows if row.get("level_rate")]
    cached, parts = (
        [row["level_rate"] for row in every if row["op"] == f"{op}, levels"]
        for op in ("read by all", "read in parts")
    )
    if len(cached) < 2 or not parts:
        return []
    l1 = "reads of what each has near it"
    # One fetch may serve several SMs: what arrives is not shown to be what the L2 delivers.
    l2 = Level("L2", "reads by all SMs of the same lines", cached[1], fits["L2"], THIRD)
    if own and own.rate.median < cached[1]:
        least, most = (units.rate(rate, "B/s", most=2) for rate in (own.rate.median, cached[1]))
        rates = f"{least.removesuffix(most[most.index(' ') :])} to {most}"
        what = "full colour: PyTorch's reads; pale: all read the same lines"
        l2 = l2._replace(what=what, bytes_per_s=own.rate.median, more=cached[1], rates=rates)
    levels = [row for row in chase.rows if row["op"] == "chase, levels"] if chase else []
    waits = [rows.printed(row, "latency_s") for row in levels if row.get("latency_s")]
    found = [
        Level("L1 caches, all SMs together", l1, cached[0], fits["L1 and shared memory"], FOURTH),
        l2,
        Level("HBM", "reads of more than the caches hold", parts[-1], fits["HBM"], GOOD),
    ]
    if len(waits) != len(found):
        return found
    return [level._replace(waits=wait) for level, wait in zip(found, waits, strict=True)]


def _pinned(transfers: Recording) -> rows.Row | None:
    """The largest copy from pinned host memory."""
    copies = (
        row
        for row in transfers.rows
        if str(row.get("op")).startswith("to the GPU")
        and (row.get("variant"), row.get("quantity")) == ("pinned", "step_wall")
        and row.get("bytes")
        and row.get("median_s")
    )
    return max(copies, key=lambda row: row["bytes"], default=None)


def _said(level: Level) -> str:
    fits = f", {units.byte_count(level.fits)} fit" if level.fits else ""
    waits = f", one load waits {level.waits}" if level.waits else ""
    return f"{level.name} {_rate(level)}{fits}{waits}"


def _rate(level: Level) -> str:
    if level.rates:
        return level.rates
    if level.more:  # a slope is worth two digits
        return units.rate(level.more, "B/s", most=2)
    return units.rate(level.bytes_per_s, "B/s")


def _bars(sheet: Canvas, levels: list[Level]) -> None:
    most = max(each.more or each.bytes_per_s for each in levels)
    longest = (each for each in levels if (each.more or each.bytes_per_s) > 0.7 * most)
    beside = max(canvas.wide(_rate(each), bold=True) for each in longest) + 10
    said = "one load waits " if sheet.width > 500 else "waits "
    if waits := [canvas.wide(said + each.waits, bold=True) for each in levels if each.waits]:
        beside += max(waits) + 14  # right of the longest bar and its rate
    for level in levels:
        top = sheet.height + (20 if sheet.height else 12)
        used = sheet.words(0, top, level.name, bold=True)
        if level.fits:
            fits = f"{units.byte_count(level.fits)} fit"
            sheet.words(sheet.width, top, fits, colour=MUTED, size=11, anchor="end")
        if sheet.width > 500:
            sheet.words(used + 14, top, level.what, colour=MUTED, size=11)
        else:  # on a phone under the name, in as many lines as it takes
            below = sheet.paragraph(0, top + 16, sheet.width, level.what, colour=MUTED, size=11)
            top = below - 15
        if level.waits:
            sheet.words(sheet.width, top + 22, said + level.waits, bold=True, anchor="end")
        long = (sheet.width - beside) * level.bytes_per_s / most
        sheet.box(0, top + 7, sheet.width - beside, BAR, fill=LINE, opacity=0.5)
        end = max((sheet.width - beside) * (level.more or 0) / most, long, 1.5)
        if level.more:
            sheet.box(0, top + 7, end, BAR, fill=level.colour, opacity=0.4)
        sheet.box(0, top + 7, max(long, 1.5), BAR, fill=level.colour, opacity=0.85)
        sheet.words(end + 8, top + 7 + 15, _rate(level), bold=True)
    sheet.space(4)
