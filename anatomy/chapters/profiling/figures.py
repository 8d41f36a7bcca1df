"""The beginning of a traced step, drawn large: operators, their launches and their kernels."""

from collections.abc import Sequence

from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, LINE, MUTED, QUIET, Canvas
from anatomy.figures.diagrams.lanes import BOX, COPY, KERNEL, LANE, LAUNCH, Lanes
from anatomy.figures.framing import drawn_from
from anatomy.judge.rows import Row
from anatomy.table import kernel_names, units

OPERATORS, DRIVER, GPU = "PyTorch", "CPU", "GPU"  # lanes of the recording
DEEP = 2  # levels of nested operators that are drawn
TOP, LEFT, DROP = 4.0, 54.0, 30.0  # pixels; DROP is from a launch down to its kernel


@drawn_from("profiling.trace", needs="start_s")
def first_kernels(table: Sequence[Row], count: int) -> str:
    """The traced step up to the end of its kernel number `count`: operators with those that they
    call, what they ask of the driver, and an arrow from there to what the GPU runs.

        first_kernels(3)
    """
    # Of two that begin together the one that lasts longer calls the other.
    events = sorted(
        (row for row in table if row.get("start_s") is not None),
        key=lambda row: (row["start_s"], -row["end_s"]),
    )
    kernels = [row for row in events if row["kind"] == "kernel"][:count]
    if not kernels:
        return '<p class="why">The traced step ran no kernel.</p>'
    until = kernels[-1]["end_s"]
    seen = {
        lane: [row for row in events if row["lane"] == lane and row["start_s"] < until]
        for lane in (OPERATORS, DRIVER, GPU)
    }
    told = "; ".join(f"{_what(row)} after {units.seconds(row['start_s'])}" for row in seen[GPU])
    label = f"Lanes of operators, launches and kernels over time. On the GPU: {told}."
    return canvas.both(lambda sheet: _drawn(sheet, seen, until), label)


def _what(row: Row) -> str:
    return f"{kernel_names.short(row['variant'])}, {units.seconds(row['end_s'] - row['start_s'])}"


def _drawn(sheet: Canvas, seen: dict[str, list[Row]], until_s: float) -> None:
    lanes = Lanes(sheet, 1.03 * until_s, LEFT)
    driver = TOP + DEEP * LANE
    gpu = driver + BOX + DROP
    for y, name in ((TOP, "PyTorch"), (driver, "driver"), (gpu, "GPU")):
        lanes.lane(y, name)
    _operators(lanes, seen[OPERATORS])
    for row in seen[DRIVER]:
        lanes.box(driver, row["start_s"], row["end_s"], LAUNCH, told=_what(row))
    launches = (row for row in seen[DRIVER] if row["kind"] == "launch")  # all run in their order
    reached, pause = 0.0, (0.0, 0.0)
    for row in seen[GPU]:
        colour = KERNEL if row["kind"] == "kernel" else COPY
        lanes.box(gpu, row["start_s"], row["end_s"], colour, told=_what(row))
        if (asked := next(launches, None)) is not None:
            ends = (lanes.at(asked["start_s"]), driver + BOX), (lanes.at(row["start_s"]), gpu - 1)
            sheet.line(*ends, arrow=True)
        if reached:
            pause = max(pause, (reached, row["start_s"]), key=lambda ends: ends[1] - ends[0])
        reached = row["end_s"]
    idle = f"GPU idle: {units.seconds(pause[1] - pause[0])}"
    lanes.pause(gpu + BOX, *pause, idle, BAD)
    lanes.axis(gpu + LANE + 24)


def _operators(lanes: Lanes, operators: Sequence[Row]) -> None:
    """Each under the one that calls it, with its name where that fits."""
    around: list[float] = []  # ends of those that the next one may be called by
    for row in operators:
        around = [end for end in around if end > row["start_s"]]
        if len(around) < DEEP:
            y, x = TOP + LANE * len(around), lanes.at(row["start_s"])
            wide = lanes.at(row["end_s"]) - x
            lanes.sheet.box(x, y, wide, BOX, fill=QUIET, opacity=0.35, edge=LINE)
            name = str(row["variant"]).removeprefix("aten::")
            if canvas.wide(name, 11) + 12 < wide:
                lanes.sheet.words(x + 4, y + 13, name, size=11, colour=MUTED)
        around.append(row["end_s"])
