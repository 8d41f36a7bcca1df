"""The kernels that one call launches, in a row of boxes, for each variant of a comparison."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Any

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
LANE, BOX = 70.0, 26.0  # pixels: a variant with its words, and the height of a kernel
BAR = 5.0  # pixels: how high the bar of a call's time is
OTHER = "other"
NONE = "its kernels were not recorded."
NOTE = "A box is a kernel, whatever its time; the bar under a row is the time."


def kernel_rows(
    experiment: str,
    *,
    op: str,
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
        names: Variant -> what it is called, in the order drawn.
        kinds: Kind of kernel -> pattern of the names of its kernels, or several with `|`
            between them; the first that fits counts, and the rest are `other`.
            Neighbours of a kind share a box with their number.
        work: The kind that does what was asked for; the others are what comes with it.
        beside: A second quantity, whose time is written too, such as `step_wall`.
    """
    showing = current()
    found = showing.find(experiment, **selectors(experiment, params, op, quantity))
    if work not in kinds:
        raise BadParameter(f"{work!r} is none of the kinds: {', '.join(kinds)}.")

    def draw() -> str:
        wanted = {"op": op, "variants": list(names)}
        table = rows.select(found.recording.rows, quantity=quantity, **wanted)
        if missing := [name for name in names if name not in rows.names(table, "variant")]:
            raise BadParameter(f"no kernels of {experiment} {op}: {', '.join(missing)}.")
        unseen = (row for row in table if not row.get("kernels"))
        without = [{**row, "median_s": None, "note": row.get("note") or NONE} for row in unseen]
        if len(without) == len(table):
            return figures.refused(without)
        table = [row for row in table if row.get("kernels")]
        also = rows.select(found.recording.rows, quantity=beside, **wanted) if beside else []
        times = {row["variant"]: _times(row, also) for row in table}
        lasts = {row["variant"]: row["median_s"] for row in table}
        steps = {row["variant"]: runs(row["kernels"], kinds) for row in table}
        drawn = {variant: name for variant, name in names.items() if variant in steps}
        said = (
            f"{name}: {', '.join(_named(*each) for each in steps[v])}; {times[v]}"
            for v, name in drawn.items()
        )
        label = f"Kernels of one call. {'. '.join(said)}."
        both = canvas.both(lambda sheet: _lanes(sheet, drawn, steps, times, lasts, work), label)
        return both + figures.refused(without)

    return framing.exhibit(found, caption, draw)


def runs(kernels: Sequence[str], kinds: Mapping[str, str]) -> list[tuple[str, int]]:
    """The kinds of the kernels in order, each with how many follow one another."""
    kept = [name for name in kernels if not fnmatchcase(name, FILLS)]
    every = (
        next((kind for kind, like in kinds.items() if _meets(name, like)), OTHER) for name in kept
    )
    return [(kind, len(list(each))) for kind, each in groupby(every)]


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


def _lanes(
    sheet: Canvas,
    names: Mapping[str, str],
    steps: Mapping[str, Sequence[tuple[str, int]]],
    times: Mapping[str, str],
    lasts: Mapping[str, float],
    work: str,
) -> None:
    widest = max(sum(_wide(*each) for each in row) for row in steps.values())
    scale = min(1.0, (sheet.width - 2) / widest)
    pixels_per_s = (sheet.width - 2) / max(lasts[variant] for variant in names)
    for number, (variant, name) in enumerate(names.items()):
        top = number * LANE
        sheet.words(1, top + 13, name, bold=True, code=True)
        slow = [kind for kind, _ in steps[variant] if kind != work]
        colour = BAD if slow else GOOD
        sheet.words(
            sheet.width - 1, top + 13, times[variant], bold=True, anchor="end", colour=colour
        )
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
        across = lasts[variant] * pixels_per_s
        sheet.box(1, top + 24 + BOX, across, BAR, fill=colour, round_=0, told=times[variant])
    note = f"{NOTE} Blue is the {work}; the other colour, what comes with it."
    sheet.paragraph(1, len(names) * LANE + 6, sheet.width - 2, note, colour=MUTED, size=11)


def _wide(kind: str, count: int) -> float:
    """Pixels of the box of a run of kernels; not to scale with their time."""
    return max(canvas.wide(_named(kind, count), 11.5) + 22, 40 + 14 * count)
