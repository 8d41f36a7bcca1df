"""Memory drawn: what two training steps hold over time, and the pieces that free memory is in."""

from collections.abc import Mapping, Sequence

from anatomy.chapters.allocator.lifetimes import LEFT_BY, TEMPORARY, WEIGHTS, levels
from anatomy.figures import tables
from anatomy.figures.charts import figures, svg
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import MUTED, QUIET, THIRD, Canvas
from anatomy.figures.framing import drawn_from
from anatomy.judge.rows import Row
from anatomy.table import units

# Kinds of memory as they lie on each other, from above.
KINDS = [TEMPORARY, *LEFT_BY.values(), WEIGHTS]
MIB = 2**20
BAR, GAP = 16.0, 5.0  # pixels of a segment, and between two
# A piece that is in use, and a free one.
LOOKS = {
    True: ("in use", {"fill": THIRD, "opacity": 0.85}),
    False: ("free", {"fill": QUIET, "opacity": 0.15, "dashed": True, "edge": MUTED}),
}


@drawn_from("allocator.training_step", needs="block_bytes")
def memory_of_a_step(table: Sequence[Row]) -> str:
    """The blocks of `allocator.training_step` on each other, over the allocator's events."""
    parts = [row for row in table if row.get("kind") == "part"]
    last = parts[-1]["died_event"]
    held = levels(table, last)[KINDS]
    # Where each kind ends above, at changes that can be seen; the last holds until the end.
    tops = held.reindex(range(last + 1), method="ffill")[KINDS[::-1]].cumsum(axis=1) / MIB
    tops = tops.round(1)
    points = [
        {"kind": kind, "x": at, "value": top}
        for kind in KINDS
        for at, top in tops[kind].items()
        if at in (0, last) or top != tops[kind][at - 1]
    ]
    named, lines, start = [], [], 0
    for row in parts:
        end = row["died_event"]
        named.append({"start": start, "end": end, "text": row["variant"].partition(", ")[2]})
        sizes = map(units.byte_count, held.loc[end - 1])
        lines.append([row["variant"], *sizes, tables.cell(row, "most_bytes")])
        start = end
    at, most = int(tops[KINDS[0]].idxmax()), tops[KINDS[0]].max()
    peak = {"x": at, "value": most, "text": f"{units.byte_count(most * MIB)} at most"}
    drawing = svg.Drawing("stacks.areas", (points, named, peak, KINDS, "memory, MiB"))
    drawn = svg.chart([("", drawing)], f"Memory by kind over two training steps, {peak['text']}.")
    heads = ["at the end of", *(f"#{kind}" for kind in KINDS), "#most in it"]
    twin = tables.listed(heads, lines, "Memory where the parts of steps end")
    return drawn + figures.twin(twin)


@drawn_from("allocator.fragmentation", needs="piece_bytes")
def pieces(table: Sequence[Row], labels: Mapping[str, str]) -> str:
    """The segments of `allocator.fragmentation` with what is used of them and what is free.

    Args:
        labels: `way` of the recording -> its title.
    """
    label = "Segments of memory, with pieces in use and free ones."
    return canvas.both(lambda sheet: _segments(sheet, table, labels), label)


def _segments(sheet: Canvas, table: Sequence[Row], labels: Mapping[str, str]) -> None:
    """What each way holds, in a row as wide as the sheet, its segments apart."""
    for way, title in labels.items():
        own = [row for row in table if row["op"] == "piece" and row["way"] == way]
        free = [row["piece_bytes"] for row in own if not row["in_use"]]
        y = sheet.height + 20
        sheet.words(0, y, title, bold=True)
        said = f"{units.byte_count(sum(free))} free, {units.byte_count(max(free))} in one piece"
        sheet.words(sheet.width, y, said, size=11, colour=MUTED, anchor="end")
        room = sheet.width - 2 - GAP * own[-1]["segment"]
        scale, before = room / sum(row["piece_bytes"] for row in own), 0
        for row in own:
            size, (use, look) = row["piece_bytes"], LOOKS[row["in_use"]]
            x = 1 + scale * before + GAP * row["segment"]
            told = f"{units.byte_count(size)} {use}"
            sheet.box(x, y + 8, scale * size, BAR, told=told, round_=0, **look)
            before += size
