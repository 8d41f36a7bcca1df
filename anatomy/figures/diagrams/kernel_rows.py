"""The kernels that one call launches, in a row of boxes, for each variant of a comparison."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Any, NamedTuple

from anatomy.figures import framing
from anatomy.figures.charts import figures
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, INK, MUTED, Canvas
from anatomy.judge import rows
from anatomy.record.showing import current, selectors
from anatomy.table.errors import BadParameter

Row = Mapping[str, Any]
# A memory fill before a kernel: neither work that was asked for nor a step of its own.
FILLS = "Mem*"
LANE, BOX = 78.0, 26.0  # pixels: a variant with its words, and the height of a kernel
APART = 24.0  # pixels between panels that stand side by side
BAR, UNDER = 5.0, 10.0  # pixels: how high the bar of a call's time is, and how far under the boxes
OTHER = "other"
NONE = "its kernels were not recorded."
NOTE = "Box: a kernel, not to scale. Bar: the time of all."
SPLIT = "Blue in a bar: what the same kernel takes alone."


class Panel(NamedTuple):
    """One operation: the title over it, if there are several, and by variant what is drawn."""

    title: str
    names: Mapping[str, str]
    steps: Mapping[str, Sequence[tuple[str, int]]]
    times: Mapping[str, str]  # as they are written
    lasts: Mapping[str, float]  # seconds
    works: Mapping[str, float]  # seconds of `lasts` for the work, where that kernel is alone once

    @property
    def said(self) -> str:
        """The kernels and the time of each variant, for who can't see them."""
        each = (
            f"{name}: {', '.join(_named(*run) for run in self.steps[v])}; {self.times[v]}"
            for v, name in self.names.items()
        )
        return f"{self.title and f'{self.title}. '}{'. '.join(each)}."


def kernel_rows(
    experiment: str,
    *,
    op: str | Mapping[str, str],
    names: Mapping[str, str],
    work: str,
    kinds: Mapping[str, str],
    quantity: str | None = None,
    beside: str | None = None,
    caption: str | None = None,
    **params: Any,
) -> str:
    """The kernels of one call of each variant, in order, and the time of the call.

        kernel_rows("channels_last.map", op="C=64 inference bf16 N=64", work="convolution",
                 names={"NCHW": "NCHW", "channels_last": "channels_last"},
                 kinds={"convolution": "*fprop*", "convert": "*ToN*Kernel*"})

    Args:
        op: The operation; or title -> operation of several, side by side on a desk.
        names: Variant -> what it is called, in the order drawn.
        kinds: Kind of kernel -> pattern of the names of its kernels, or several with `|`
            between them; the first that fits counts, and the rest are `other`.
            Neighbours of a kind share a box with their number.
        work: The kind that does what was asked for; the others are what comes with it.
        beside: A second quantity, whose time is written too, such as `step_wall`.
    """
    showing = current()
    ops = {"": op} if isinstance(op, str) else op
    first = next(iter(ops.values()))
    found = showing.find(experiment, **selectors(experiment, params, first, quantity))
    if work not in kinds:
        raise BadParameter(f"{work!r} is none of the kinds: {', '.join(kinds)}.")

    def panel(title: str, op: str) -> tuple[Panel, list[Row]]:
        """What is drawn of an operation, and its rows without kernels."""
        wanted = {"op": op, "variants": list(names)}
        table = rows.select(found.recording.rows, quantity=quantity, **wanted)
        if missing := [name for name in names if name not in rows.names(table, "variant")]:
            raise BadParameter(f"no kernels of {experiment} {op}: {', '.join(missing)}.")
        unseen = (row for row in table if not row.get("kernels"))
        without = [{**row, "median_s": None, "note": row.get("note") or NONE} for row in unseen]
        table = [row for row in table if row.get("kernels")]
        also = rows.select(found.recording.rows, quantity=beside, **wanted) if beside else []
        times = {row["variant"]: _times(row, also) for row in table}
        lasts = {row["variant"]: row["median_s"] for row in table}
        steps = {row["variant"]: runs(row["kernels"], kinds) for row in table}
        drawn = {variant: name for variant, name in names.items() if variant in steps}
        return Panel(title, drawn, steps, times, lasts, working(table, kinds[work])), without

    def draw() -> str:
        read = [panel(*each) for each in ops.items()]
        without = [row for _, unseen in read for row in unseen]
        panels = [each for each, _ in read if each.names]
        if not panels:
            return figures.refused(without)
        label = f"Kernels of one call. {' '.join(each.said for each in panels)}"
        both = canvas.both(lambda sheet: _panels(sheet, panels, work), label)
        return both + figures.refused(without)

    return framing.exhibit(found, caption, draw)


def runs(kernels: Sequence[str], kinds: Mapping[str, str]) -> list[tuple[str, int]]:
    """The kinds of the kernels in order, each with how many follow one another."""
    kept = [name for name in kernels if not fnmatchcase(name, FILLS)]
    every = (
        next((kind for kind, like in kinds.items() if _meets(name, like)), OTHER) for name in kept
    )
    return [(kind, len(list(each))) for kind, each in groupby(every)]


def working(table: Sequence[Row], like: str) -> dict[str, float]:
    """Variant -> seconds of its kernels whose name is like this, where they are the same as in a
    variant that has no others."""
    kept = {r["variant"]: [k for k in r["kernels"] if not fnmatchcase(k, FILLS)] for r in table}
    lasts = {row["variant"]: row["median_s"] for row in table}
    its = {name: tuple(k for k in kernels if _meets(k, like)) for name, kernels in kept.items()}
    alone = {own: lasts[name] for name, own in its.items() if own and len(own) == len(kept[name])}
    known = {name: alone[own] for name, own in its.items() if own in alone}
    return {name: s for name, s in known.items() if s <= lasts[name]} if len(known) > 1 else {}


def _meets(name: str, like: str) -> bool:
    return any(fnmatchcase(name, each) for each in like.split("|"))


def _times(row: Row, also: Sequence[Row]) -> str:
    own = rows.printed(row, "median_s")
    for other in also:
        if other["variant"] == row["variant"]:
            return f"GPU {own}, call {rows.printed(other, 'median_s')}"
    return own


def _named(kind: str, count: int) -> str:
    return kind if count == 1 else f"{count} × {kind}"


def _panels(sheet: Canvas, panels: Sequence[Panel], work: str) -> None:
    """Panels side by side where there is room, else one under the other."""
    abreast = len(panels) if sheet.width > 500 else 1
    wide = (sheet.width - (abreast - 1) * APART) / abreast
    for number, each in enumerate(panels):
        part = Canvas(wide)
        _lanes(part, each, work)
        x = number * (wide + APART) if abreast > 1 else 0.0
        sheet.place(part, x, 0.0 if abreast > 1 or not number else sheet.height + 8)
    split = f" {SPLIT}" if any(each.works for each in panels) else ""
    note = f"{NOTE} Blue: the {work}. Orange: what comes with it.{split}"
    sheet.paragraph(1, sheet.height + 17, sheet.width - 2, note, colour=MUTED, size=11)


def _lanes(sheet: Canvas, panel: Panel, work: str) -> None:
    _, names, steps, times, lasts, works = panel
    head = 22.0 if panel.title else 0.0
    if head:
        sheet.words(1, 13, panel.title, colour=MUTED, bold=True)
    widest = max(sum(_wide(*each) for each in row) for row in steps.values())
    scale = min(1.0, (sheet.width - 2) / widest)
    # The times stand after their bars; the longest bar leaves them room.
    room = max(canvas.wide(times[variant], bold=True) for variant in names) + 8
    pixels_per_s = (sheet.width - 2 - room) / max(lasts[variant] for variant in names)
    for number, (variant, name) in enumerate(names.items()):
        top = head + number * LANE
        sheet.words(1, top + 13, name, bold=True, code=True)
        x = 1.0
        for kind, count in steps[variant]:
            wide = _wide(kind, count) * scale
            tone = GOOD if kind == work else BAD
            sheet.box(x, top + 20, wide - 4, BOX, fill=tone, opacity=0.28, edge=tone, round_=3)
            size = min(11.5, 11.5 * scale + 0.5)
            middle = x + (wide - 4) / 2
            text = _named(kind, count)
            sheet.words(middle, top + 37, text, size=max(size, 10), anchor="middle", colour=INK)
            x += wide
        across, under = lasts[variant] * pixels_per_s, top + 20 + BOX + UNDER
        fill = BAD if variant in works else MUTED
        sheet.box(1, under, across, BAR, fill=fill, round_=0, told=times[variant])
        if variant in works:
            sheet.box(1, under, works[variant] * pixels_per_s, BAR, fill=GOOD, round_=0)
        sheet.words(across + 7, under + BAR + 1, times[variant], bold=True)


def _wide(kind: str, count: int) -> float:
    """Pixels of the box of a run of kernels; not to scale with their time."""
    return max(canvas.wide(_named(kind, count), 11.5) + 22, 40 + 14 * count)
