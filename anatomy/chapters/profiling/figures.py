"""The beginning of a traced step, drawn large: operators, their launches and their kernels."""

from collections.abc import Sequence
from itertools import pairwise

from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, MUTED, Canvas
from anatomy.figures.diagrams.lanes import BOX, COPY, KERNEL, LANE, LAUNCH, WAIT, Lanes
from anatomy.figures.framing import drawn_from
from anatomy.judge.rows import Row
from anatomy.table import kernel_names, units

DEEP = 2  # levels of nested operators that are drawn
# Pixels: where the lanes of the recording begin, with room for the arrows above the last one, and
# what is left of them for their names.
TOPS = {"PyTorch": 4.0, "CPU": 4.0 + DEEP * LANE, "GPU": 4.0 + DEEP * LANE + BOX + 30.0}
LEFT = 54.0
COLOURS = {"operator": MUTED, "launch": LAUNCH, "wait": WAIT, "kernel": KERNEL, "copy": COPY}


@drawn_from("profiling.trace", needs="start_s")
def first_kernels(table: Sequence[Row], count: int) -> str:
    """The traced step up to the end of its kernel number `count`: operators with those that they
    call, what they ask of the driver, and an arrow from there to what the GPU runs.

        first_kernels(3)
    """
    # Of two that begin together the one that lasts longer calls the other.
    events = sorted(table, key=lambda row: (row["start_s"], -row["end_s"]))
    kernels = [row for row in events if row["kind"] == "kernel"][:count]
    if not kernels:
        return '<p class="why">The traced step ran no kernel.</p>'
    shown = [row for row in events if row["start_s"] < kernels[-1]["end_s"]]
    ran = [row for row in shown if row["lane"] == "GPU"]
    told = "; ".join(f"{_what(row)} after {units.seconds(row['start_s'])}" for row in ran)
    label = f"Lanes of operators, launches and kernels over time. On the GPU: {told}."
    return canvas.both(lambda sheet: _drawn(sheet, shown, ran), label)


def _what(row: Row) -> str:
    return f"{kernel_names.short(row['variant'])}, {units.seconds(row['end_s'] - row['start_s'])}"


def _drawn(sheet: Canvas, shown: Sequence[Row], ran: Sequence[Row]) -> None:
    lanes = Lanes(sheet, 1.03 * ran[-1]["end_s"], LEFT)
    for lane, top in TOPS.items():
        lanes.lane(top, lane)
    around: list[float] = []  # ends of the operators that the next one may be called by
    launched: list[float] = []  # and where those launches begin that have not run: in their order
    for row in (row for row in shown if row["lane"] in TOPS):
        y, start, end, kind = TOPS[row["lane"]], row["start_s"], row["end_s"], row["kind"]
        if kind == "operator":
            around = [each for each in around if each > start]
            name = str(row["variant"]).removeprefix("aten::")
            if len(around) < DEEP:
                lanes.box(y + LANE * len(around), start, end, MUTED, name, told=_what(row))
            around.append(end)
            continue
        lanes.box(y, start, end, COLOURS[kind], told=_what(row))
        if kind == "launch":
            launched.append(lanes.at(start))
        elif row["lane"] == "GPU" and launched:
            sheet.line((launched.pop(0), TOPS["CPU"] + BOX), (lanes.at(start), y - 1), arrow=True)
    pauses = [(one["end_s"], after["start_s"]) for one, after in pairwise(ran)]
    if pauses:
        start, end = max(pauses, key=lambda ends: ends[1] - ends[0])
        lanes.pause(TOPS["GPU"] + BOX, start, end, f"GPU idle: {units.seconds(end - start)}", BAD)
    lanes.axis(TOPS["GPU"] + LANE + 24)
