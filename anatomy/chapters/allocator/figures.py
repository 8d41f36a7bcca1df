"""Memory drawn: what two training steps hold over time, and the pieces that free memory is in."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from anatomy.chapters.allocator.lifetimes import levels
from anatomy.figures import framing, tables
from anatomy.figures.charts import figures
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, FOURTH, GOOD, LINE, MUTED, QUIET, THIRD, Canvas
from anatomy.figures.diagrams.lanes import round_step
from anatomy.figures.text import spans
from anatomy.judge.rows import Row
from anatomy.record.showing import current
from anatomy.table import units

# Kinds of memory from below, as they lie on each other, with their colours.
KINDS = {
    "weights and batch": QUIET,
    "optimizer state": FOURTH,
    "gradients": GOOD,
    "activations": THIRD,
    "temporary": BAD,
}
HIGH, LEFT = 190.0, 52.0  # pixels of the layers, and what is left of them for the axis
BAR, GAP = 16.0, 5.0  # pixels of a segment, and between two
Levels = Mapping[str, Sequence[int]]


def memory_of_a_step(*, caption: str | None = None) -> str:
    """The blocks of `allocator.training_step` on each other, over the allocator's events."""
    found = current().find("allocator.training_step")

    def draw() -> str:
        table = found.recording.rows
        parts = [row for row in table if row.get("kind") == "part"]
        if units.missing(parts[-1].get("died_event")):
            return spans.gap_because(table[0].get("note") or "not measured")
        blocks = [row for row in table if not units.missing(row.get("block_bytes"))]
        seen = levels(blocks, parts[-1]["died_event"])
        by_kind = {kind: seen[kind] for kind in KINDS if kind in seen}
        total = [sum(each) for each in zip(*by_kind.values(), strict=True)]
        label = f"Memory by kind over two training steps, {units.byte_count(max(total))} at most."
        drawn = canvas.both(lambda sheet: _layers(sheet, by_kind, parts, total), label)
        return drawn + figures.twin(_ends(by_kind, parts))

    return framing.exhibit(found, caption, draw)


def _layers(sheet: Canvas, by_kind: Levels, parts: Sequence[Row], total: list[int]) -> None:
    kinds = {kind: KINDS[kind] for kind in reversed(by_kind)}  # as they lie, from above
    top = sheet.key(12, kinds)[1] + 24  # the peak is named above the plot
    count, most = parts[-1]["died_event"], max(total)
    across, up = (sheet.width - LEFT - 2) / count, HIGH / most
    step = round_step(most / 2**20, 5) * 2**20
    for number in range(int(most // step) + 1):
        y = top + HIGH - number * step * up
        sheet.line((LEFT, y), (sheet.width, y), colour=LINE, thick=1)
        text = f"{number * step / 2**20:g} MiB" if number else "0"
        sheet.words(LEFT - 6, y + 4, text, anchor="end", size=11, colour=MUTED)
    below = [0] * count
    for kind, sizes in by_kind.items():
        above = [low + size for low, size in zip(below, sizes, strict=True)]
        # A step for each event: there and back along its two edges.
        upper = _edge(above, across, up, top + HIGH)
        lower = _edge(below, across, up, top + HIGH)
        sheet.shape(*upper, *reversed(lower), fill=KINDS[kind])
        below = above
    began = 0
    for row in parts:
        ends = LEFT + began * across, LEFT + row["died_event"] * across
        if began:
            sheet.line((ends[0], top), (ends[0], top + HIGH + 14), dashed=True)
        name = row["variant"].partition(", ")[2]
        if canvas.wide(name, 11) < ends[1] - ends[0]:
            middle = sum(ends) / 2
            sheet.words(middle, top + HIGH + 14, name, anchor="middle", size=11, colour=MUTED)
        began = row["died_event"]
    peak, at = f"{units.byte_count(most)} at most", LEFT + total.index(most) * across
    sheet.words(at, top - 4, peak, anchor="middle", size=11, bold=True)
    sheet.space(2)


def _edge(
    heights: Sequence[int], across: float, up: float, bottom: float
) -> list[tuple[float, float]]:
    """The corners of a line that keeps its height from one event to the next."""
    kept = [0, *(at for at in range(1, len(heights)) if heights[at] != heights[at - 1])]
    found = []
    for at, after in pairwise([*kept, len(heights)]):
        y = bottom - heights[at] * up
        found += [(LEFT + at * across, y), (LEFT + after * across, y)]
    return found


def _ends(by_kind: Levels, parts: Sequence[Row]) -> str:
    lines = []
    for row in parts:
        sizes = (by_kind[kind][row["died_event"] - 1] for kind in by_kind)
        cells = [units.byte_count(each) for each in (*sizes, row.get("most_bytes"))]
        lines.append([row["variant"], *cells])
    heads = ["at the end of", *(f"#{kind}" for kind in by_kind), "#most in it"]
    return tables.listed(heads, lines, "Memory where the parts of steps end")


def pieces(labels: Mapping[str, str], *, caption: str | None = None) -> str:
    """The segments of `allocator.fragmentation` with what is used of them and what is free.

    Args:
        labels: `way` of the recording -> its title.
    """
    found = current().find("allocator.fragmentation")

    def draw() -> str:
        table = [row for row in found.recording.rows if row.get("op") == "piece"]
        if not table:
            return spans.gap_because(found.recording.rows[0].get("note") or "not measured")
        label = "Segments of memory, with pieces in use and free ones."
        return canvas.both(lambda sheet: _segments(sheet, table, labels), label)

    return framing.exhibit(found, caption, draw)


def _segments(sheet: Canvas, table: Sequence[Row], labels: Mapping[str, str]) -> None:
    sizes: dict[tuple[str, int], int] = {}
    for row in table:
        key = row["way"], row["segment"]
        sizes[key] = sizes.get(key, 0) + row["piece_bytes"]
    widest = sheet.width - 2  # what one way holds, in one row, its segments apart
    y = 0.0
    for way, title in labels.items():
        own = [segment for each, segment in sizes if each == way]
        total = sum(sizes[way, segment] for segment in own)
        room = widest - (len(own) - 1) * GAP
        y += 14
        free = [row["piece_bytes"] for row in table if row["way"] == way and not row["in_use"]]
        largest = units.byte_count(max(free, default=0))
        said = f"{units.byte_count(sum(free))} free, {largest} in one piece"
        sheet.words(0, y, title, bold=True)
        sheet.words(sheet.width, y, said, size=11, colour=MUTED, anchor="end")
        x = 1.0
        for segment in own:
            for row in (r for r in table if (r["way"], r["segment"]) == (way, segment)):
                wide = room * row["piece_bytes"] / total
                size = units.byte_count(row["piece_bytes"])
                told = f"{size} {'in use' if row['in_use'] else 'free'}"
                look = {"fill": THIRD, "opacity": 0.85} if row["in_use"] else {"fill": QUIET}
                look |= {} if row["in_use"] else {"opacity": 0.15, "dashed": True, "edge": MUTED}
                sheet.box(x, y + 8, wide, BAR, told=told, round_=0, **look)
                x += wide
            x += GAP
        y += 8 + BAR + 14
