"""Where data can lie, how fast it comes from there, and how much fits: bars to scale."""

from typing import NamedTuple

from anatomy.figures import framing
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, LINE, MUTED, THIRD, Canvas
from anatomy.figures.limits import curves
from anatomy.judge import rows
from anatomy.record.recording import Recording
from anatomy.record.showing import current
from anatomy.table import units
from anatomy.table.errors import BadParameter

BANDWIDTH, TRANSFERS = "limits.bandwidth", "transfers.to_device"
BAR = 22.0  # pixels


class Level(NamedTuple):
    """One place for data: bytes per second that a copy there reaches, and bytes that fit; `more` is
    the rate of a byte more, without what a call takes to start and to end."""

    name: str
    what: str
    bytes_per_s: float
    fits: int | None
    colour: str
    more: float | None = None


def memory_ladder(*, caption: str | None = None) -> str:
    """Measured bandwidth of the L2 cache, of HBM and of the link to the host, to one scale, with
    what fits into each.

        memory_ladder(caption="To scale.")
    """
    showing = current()
    found = [showing.find(BANDWIDTH), showing.find(TRANSFERS)]

    def draw() -> str:
        if any(each.recording is None for each in found):
            return ""
        levels = _levels(*(each.recording for each in found))
        label = "Bandwidth to scale: " + "; ".join(_said(each) for each in levels)
        return canvas.both(lambda sheet: _bars(sheet, levels), f"{label}.")

    return framing.exhibit(found, caption, draw)


def _levels(bandwidth: Recording, transfers: Recording) -> list[Level]:
    machine = bandwidth.data["machine"]
    copy = next((s for s in curves.steps(bandwidth.rows) if s.op == "copy"), None)
    pinned = _pinned(transfers)
    if not copy or not copy.cache or not copy.memory or not pinned:
        raise BadParameter("no copies within the cache, in memory and from the host are recorded.")
    link = pinned["bytes"] / pinned["median_s"]
    l2, hbm = "a whole copy; pale: each byte more", "copies larger than the cache"
    slope = curves.marginals(bandwidth.rows).get("copy")
    more = slope.rate.median if slope else None
    if more is None:
        l2 = "copies that stay in the cache"
    return [
        Level("L2 cache", l2, curves.rate(copy.cache), machine.get("l2_bytes"), THIRD, more),
        Level("HBM", hbm, curves.rate(copy.memory), machine.get("memory_bytes"), GOOD),
        Level("link to the CPU", "copies from pinned memory", link, None, BAD),
    ]


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
    return f"{level.name} {_rate(level)}{fits}"


def _rate(level: Level) -> str:
    whole = units.rate(level.bytes_per_s, "B/s", most=2)
    if level.more is None:
        return whole
    return f"{whole.split()[0]} and {units.rate(level.more, 'B/s', most=2)}"


def _bars(sheet: Canvas, levels: list[Level]) -> None:
    most = max(each.more or each.bytes_per_s for each in levels)
    beside = max(canvas.wide(_rate(each), bold=True) for each in levels) + 10
    for level in levels:
        top = sheet.height + (20 if sheet.height else 12)
        used = sheet.words(0, top, level.name, bold=True)
        if sheet.width > 500:
            sheet.words(used + 14, top, level.what, colour=MUTED, size=11)
        if level.fits:
            fits = f"{units.byte_count(level.fits)} fit"
            sheet.words(sheet.width, top, fits, colour=MUTED, size=11, anchor="end")
        long = (sheet.width - beside) * level.bytes_per_s / most
        sheet.box(0, top + 7, sheet.width - beside, BAR, fill=LINE, opacity=0.5)
        end = max((sheet.width - beside) * (level.more or 0) / most, long, 1.5)
        if level.more:
            sheet.box(0, top + 7, end, BAR, fill=level.colour, opacity=0.4)
        sheet.box(0, top + 7, max(long, 1.5), BAR, fill=level.colour, opacity=0.85)
        sheet.words(end + 8, top + 7 + 15, _rate(level), bold=True)
    sheet.space(4)
