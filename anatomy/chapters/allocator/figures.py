"""Memory drawn: what two training steps hold over time, and the pieces that free memory is in."""

from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from operator import itemgetter

from anatomy.chapters.allocator.lifetimes import levels
from anatomy.figures import tables
from anatomy.figures.charts import figures
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, FOURTH, GOOD, LINE, MUTED, QUIET, THIRD, Canvas
from anatomy.figures.diagrams.lanes import round_step
from anatomy.figures.framing import drawn_from
from anatomy.judge.rows import Row
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
# A piece that is in use, and a free one.
LOOKS = {
    True: ("in use", {"fill": THIRD, "opacity": 0.85}),
    False: ("free", {"fill": QUIET, "opacity": 0.15, "dashed": True, "edge": MUTED}),
}
Levels = Mapping[str, Sequence[int]]


@drawn_from("allocator.training_step", needs="block_bytes")
def memory_of_a_step(table: Sequence[Row]) -> str:
    """The blocks of `allocator.training_step` on each other, over the allocator's events."""
    parts = [row for row in table if row.get("kind") == "part"]
    seen = levels(table, parts[-1]["died_event"])
    by_kind = {kind: seen[kind] for kind in KINDS if kind in seen}
    total = [sum(each) for each in zip(*by_kind.values(), strict=True)]
    label = f"Memory by kind over two training steps, {units.byte_count(max(total))} at most."
    drawn = canvas.both(lambda sheet: _layers(sheet, by_kind, parts, total), label)
    return drawn + figures.twin(_ends(by_kind, parts))


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
    began, lines = 0, [0.0]  # how far each line of names reaches
    for row in parts:
        ends = LEFT + began * across, LEFT + row["died_event"] * across
        if began:
            sheet.line((ends[0], top), (ends[0], top + HIGH + 14), dashed=True)
        name = row["variant"].partition(", ")[2]
        half, fits = canvas.wide(name, 11) / 2, canvas.wide(name, 11) < ends[1] - ends[0]
        middle = min(sum(ends) / 2, sheet.width - half)
        # One without room of its own goes to the next line that is free there.
        free = (at for at, end in enumerate([*lines, 0.0]) if (fits or at) and end < middle - half)
        line = next(free)
        lines[line : line + 1] = [middle + half + 4]
        y = top + HIGH + 14 * (line + 1)
        sheet.words(middle, y, name, anchor="middle", size=11, colour=MUTED)
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


@drawn_from("allocator.fragmentation", needs="piece_bytes")
def pieces(table: Sequence[Row], labels: Mapping[str, str]) -> str:
    """The segments of `allocator.fragmentation` with what is used of them and what is free.

    Args:
        labels: `way` of the recording -> its title.
    """
    found = [row for row in table if row["op"] == "piece"]
    label = "Segments of memory, with pieces in use and free ones."
    return canvas.both(lambda sheet: _segments(sheet, found, labels), label)


def _segments(sheet: Canvas, table: Sequence[Row], labels: Mapping[str, str]) -> None:
    """What each way holds, in a row as wide as the sheet, its segments apart."""
    y = 0.0
    for way, title in labels.items():
        own = [row for row in table if row["way"] == way]
        free = [row["piece_bytes"] for row in own if not row["in_use"]]
        largest = units.byte_count(max(free, default=0))
        said = f"{units.byte_count(sum(free))} free, {largest} in one piece"
        y += 14
        sheet.words(0, y, title, bold=True)
        sheet.words(sheet.width, y, said, size=11, colour=MUTED, anchor="end")
        segments = [list(each) for _, each in groupby(own, key=itemgetter("segment"))]
        total = sum(row["piece_bytes"] for row in own)
        room = sheet.width - 2 - (len(segments) - 1) * GAP
        x = 1.0
        for segment in segments:
            for row in segment:
                wide = room * row["piece_bytes"] / total
                told, look = LOOKS[row["in_use"]]
                told = f"{units.byte_count(row['piece_bytes'])} {told}"
                sheet.box(x, y + 8, wide, BAR, told=told, round_=0, **look)
                x += wide
            x += GAP
        y += 8 + BAR + 14
