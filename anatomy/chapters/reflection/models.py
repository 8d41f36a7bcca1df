"""Mental models drawn from recordings: ways to a graph as bars, a step before and after, and which
operations fuse as a tree whose leaves are patterns with their counted kernels."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from anatomy.figures import framing, tables
from anatomy.figures.charts.figures import twin
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, LINE, MUTED, QUIET, THIRD, Canvas
from anatomy.figures.text import spans
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.record import signatures
from anatomy.record.showing import Found, current
from anatomy.table import units

MAP, PATTERNS, MATMULS = "compilation.map", "fusion.patterns", "fusion.matmuls"
CALLS, CATALOGUE = "capture.calls", "capture.catalogue"
LARGE = "large input"  # of `capture.calls`
RIGHT = ("right", "graph break")  # outcomes of `capture.catalogue` that are no mistake
# Steps that are drawn, and what readers call them.
STEPS = {
    "training C=256 T=256": "small layer: width 256, 256 tokens",
    "training C=4096 T=4096": "large layer: width 4096, 4096 tokens",
}
WAYS = {"eager": "eager", "compiled": "compiled", "reduce-overhead": "compiled, CUDA graph"}
BAR, GAP = 18.0, 6.0  # pixels


class Way(NamedTuple):
    """One way to run a function: how many of `of` functions it gets right, and the row of its time
    on a large input, None where it was not timed."""

    name: str
    right: int
    of: int
    timed: Row | None


def spectrum(*, caption: str | None = None) -> str:
    """Ways from eager mode to a compiled graph, by two measured bars each: how many of some small
    functions it gets right, and how fast it runs one that all of them can capture.

        spectrum(caption="Above what it takes, below what it gives.")
    """
    found = _there(CALLS, CATALOGUE)

    def draw() -> str:
        calls, catalogue = (each.recording.rows if each.recording else [] for each in found)
        every = list(ways(calls, catalogue))
        if not every:
            return ""
        said = "; ".join(
            f"{way.name}: {way.right} of {way.of} right, {_fast(way)}" for way in every
        )
        drawn = canvas.both(lambda sheet: _two_bars(sheet, every), f"Ways to a graph. {said}.")
        lines = [
            [tables.code(way.name), f"{way.right} of {way.of}", tables.time(way.timed), _fast(way)]
            for way in every
        ]
        head = ("way", "#functions right", "#time of a large call", "#over eager")
        return drawn + twin(tables.listed(head, lines, "Ways to a graph"))

    return framing.exhibit(found, caption, draw if found else _not_yet)


def ways(calls: Sequence[Row], catalogue: Sequence[Row]) -> Iterator[Way]:
    """Each way of the catalogue, in its order."""
    for name in rows.names(catalogue, "variant"):
        tried = [row for row in catalogue if row.get("variant") == name]
        right = sum(row.get("outcome") in RIGHT for row in tried)
        timed = rows.select(calls, op=LARGE, variants=[name]) if _has(calls, name) else []
        there = [row for row in timed if not units.missing(row.get("median_s"))]
        yield Way(name, right, len(tried), there[0] if there else None)


def _has(calls: Sequence[Row], name: str) -> bool:
    return any(row.get("op") == LARGE and row.get("variant") == name for row in calls)


def _fast(way: Way) -> str:
    if way.timed is None:
        return "not timed"
    return "" if way.timed.get("role") == "control" else rows.speed_in_words(way.timed)


def _two_bars(sheet: Canvas, every: Sequence[Way]) -> None:
    timed = [way.timed["median_s"] for way in every if way.timed]
    fastest = min(timed, default=1.0)
    left = 130.0 if sheet.width > 500 else 122.0
    room, y = sheet.width - left - 80, 2.0
    for way in every:
        sheet.words(0, y + 18, way.name, code=True, size=11.5)
        for share, text, colour in (
            (way.right / way.of, f"{way.right} of {way.of} right", GOOD),
            (
                fastest / way.timed["median_s"] if way.timed else 0.0,
                units.seconds(way.timed["median_s"]) if way.timed else "not timed",
                THIRD,
            ),
        ):
            sheet.box(left, y, max(room * share, 1.5), 12, fill=colour, opacity=0.85)
            sheet.words(left + max(room * share, 1.5) + 6, y + 10, text, size=11)
            y += 14
        y += 8


def _there(*names: str) -> list[Found]:
    """The recordings, if all of these experiments are there; a chapter may still be to come."""
    known = signatures.experiments()
    return [current().find(name) for name in names] if known.keys() >= {*names} else []


def _not_yet() -> str:
    return f"<p>{spans.gap_because('not measured yet')}</p>"


def step_bars(*, caption: str | None = None) -> str:
    """A training step of two layers, eager, compiled, and compiled into a CUDA graph: time, and how
    much of it the GPU computes.

        step_bars(caption="In the light part the GPU waits.")
    """
    found = current().find(MAP)

    def draw() -> str:
        every = [
            (step, row)
            for step in STEPS
            for row in (_ways(found.recording.rows, step) if found.recording else [])
        ]
        if not every:
            return ""
        said = "; ".join(f"{STEPS[step]}, {_named(row)}: {_time(row)}" for step, row in every)
        drawn = canvas.both(lambda sheet: _bars(sheet, every), f"Time of a step. {said}.")
        lines = [
            [STEPS[step], _named(row), tables.time(row), _over(row), _waits(row)]
            for step, row in every
        ]
        head = ("step", "way", "#time", "#over eager", "#of it the GPU waits")
        return drawn + twin(tables.listed(head, lines, "A step before and after"))

    return framing.exhibit(found, caption, draw)


def _ways(table: Sequence[Row], step: str) -> list[Row]:
    """The rows of one step that were timed, in the order of `WAYS`."""
    there = {row["variant"]: row for row in table if row["op"] == step and row.get("median_s")}
    return [there[way] for way in WAYS if way in there]


def _named(row: Row) -> str:
    return WAYS[row["variant"]]


def _time(row: Row) -> str:
    return units.seconds(row["median_s"])


def _over(row: Row) -> str:
    return "" if row["variant"] == "eager" else rows.speed_in_words(row)


def _waits(row: Row) -> str:
    return tables.percent(row.get("gap_share"))


def _bars(sheet: Canvas, every: Sequence[tuple[str, Row]]) -> None:
    y, x = 14.0, 0.0
    for text, look in (
        ("GPU computes", {"fill": THIRD, "opacity": 0.9}),
        ("GPU waits", {"fill": BAD, "opacity": 0.3}),
        ("not told apart", {"fill": QUIET}),
    ):
        sheet.box(x, y - 10, 11, 11, **look)
        x += 16 + sheet.words(x + 16, y, text, size=11, colour=MUTED) + 14
    left, before = 150.0, None
    room = sheet.width - left - 62
    for step, row in every:
        if step != before:
            y += 24
            sheet.words(0, y, STEPS[step], bold=True)
            y += 8
            before = step
            longest = max(other["median_s"] for each, other in every if each == step)
        wide, busy = room * row["median_s"] / longest, row.get("gap_share")
        sheet.words(0, y + 13, _named(row), size=11.5)
        told = not units.missing(busy)
        look = {"fill": BAD, "opacity": 0.3} if told else {"fill": QUIET}
        sheet.box(left, y, wide, BAR, **look)
        if told:
            sheet.box(left, y, wide * (1 - busy), BAR, fill=THIRD, opacity=0.9)
        sheet.words(left + wide + 6, y + 13, _time(row), size=11)
        y += BAR + GAP


class Leaf(NamedTuple):
    """A question of the tree, and the pattern that stands for yes, in one of two experiments."""

    asks: str
    experiment: str
    pattern: str


LEAVES = (
    Leaf("Elementwise, shapes that broadcast?", PATTERNS, "x.cos().cos()"),
    Leaf("Side by side, from the same input?", PATTERNS, "x.sin(), x.cos()"),
    Leaf("Sums over rows, and elementwise?", PATTERNS, "softmax by hand"),
    Leaf("Elementwise after a matmul?", MATMULS, "relu(a @ b + bias)"),
    Leaf("Elementwise before a matmul?", MATMULS, "a @ int8.to(bf16)"),
    Leaf("Elementwise after a sum over all?", PATTERNS, "x / x.sum()"),
    Leaf("Two matmuls, one after the other?", MATMULS, "a @ b @ c"),
)


def fusion_tree(*, caption: str | None = None) -> str:
    """Which operations a compiler puts into one kernel, as questions; at each leaf the kernels of a
    pattern, eager and compiled, as they were counted.

        fusion_tree(caption="Ask from above.")
    """
    found = _there(PATTERNS, MATMULS)

    def draw() -> str:
        recorded = {each.name: each.recording.rows if each.recording else [] for each in found}
        counts = {leaf: counted(recorded.get(leaf.experiment, []), leaf.pattern) for leaf in LEAVES}
        said = "; ".join(f"{leaf.asks} {leaf.pattern}: {each}" for leaf, each in counts.items())
        return canvas.both(lambda sheet: _tree(sheet, counts), f"Fusion, as questions. {said}.")

    return framing.exhibit(found, caption, draw)


def counted(table: Sequence[Row], pattern: str) -> str:
    """How many kernels a pattern launches eager, compiled, and with a Triton template for a matmul
    where that was tried, in words."""
    there = {row["variant"]: row.get("launched") for row in table if row.get("op") == pattern}
    if any(units.missing(there.get(way)) for way in ("eager", "compiled")):
        return "not counted yet"
    own = there.get("Triton template")
    more = "" if units.missing(own) else f", template {own}"
    return f"{there['eager']} → {there['compiled']}{more}"


def _tree(sheet: Canvas, counts: dict[Leaf, str]) -> None:
    broad = sheet.width > 500
    high, pitch = (34.0, 50.0) if broad else (40.0, 58.0)
    asks = sheet.width / 2
    leaf_x = asks + (80 if broad else 26)
    for at, (leaf, kernels) in enumerate(counts.items()):
        y = 2 + at * pitch
        sheet.box(1, y, asks, high, edge=MUTED)
        sheet.paragraph(9, y + (21 if broad else 16), asks - 14, leaf.asks)
        middle = y + high / 2
        sheet.line((asks + 1, middle), (leaf_x, middle), arrow=True)
        sheet.words((asks + leaf_x) / 2, middle - 5, "yes", size=11, anchor="middle", colour=MUTED)
        wide = sheet.width - leaf_x - 1
        sheet.box(leaf_x, y, wide, high, fill=LINE, opacity=0.5, edge=GOOD)
        sheet.words(leaf_x + 6, y + (14 if broad else 16), leaf.pattern, size=11, code=True)
        sheet.words(leaf_x + 6, y + (28 if broad else 32), kernels, size=11, bold=True)
        end = y + pitch
        sheet.line((asks / 2, y + high), (asks / 2, end), arrow=True)
        sheet.words(asks / 2 + 6, y + high + 14, "no", size=11, colour=MUTED)
    y = 2 + len(counts) * pitch
    sheet.box(1, y, asks, 28, edge=BAD)
    sheet.words(9, y + 18, "Kernels of their own.", bold=True)
    sheet.space(2)
