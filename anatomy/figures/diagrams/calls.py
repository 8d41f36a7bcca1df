"""The way of one call from Python to the GPU, with what was measured of it."""

from collections.abc import Sequence

from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, MUTED, THIRD, Canvas
from anatomy.figures.framing import drawn_from
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.table import units

BEFORE = ("Python", "dispatcher", "allocator")  # what a call passes through before the driver
SHOWN = {"PyTorch op": "step_wall", "C++ loop": "step_wall", "PyTorch's empty kernel": "gpu_warm"}
BOX, GAP, PACKETS = 28.0, 14.0, 3  # pixels: a part's height, the arrow to the next; drawn kernels


@drawn_from("launches.rates")
def way_of_a_call(table: Sequence[Row]) -> str:
    """The parts of the CPU that a call passes through, the queue, and the GPU that takes kernels
    from it: with the time of a call of PyTorch, of the driver alone, and of an empty kernel."""
    times = [
        _time(rows.select(table, op="100 launches", quantity=quantity, variants=[variant])[0])
        for variant, quantity in SHOWN.items()
    ]
    label = (
        f"A call of torch.add passes Python, the dispatcher, the allocator and the driver{times[0]}"
        f"; the driver alone{times[1]}. It puts a kernel into a queue, from which the GPU takes it"
        f": an empty one{times[2]}."
    )
    return canvas.both(lambda sheet: _drawn(sheet, *times), label)


def _time(row: Row) -> str:
    found = rows.derived(row, None)
    there = not units.missing(found.get("per_launch_s"))
    return f": {rows.printed(found, 'per_launch_s', 3)}" if there else ""


def _drawn(sheet: Canvas, call: str, driver: str, kernel: str) -> None:
    sheet.words(0, 12, f"CPU, a call of torch.add{call}", bold=True)
    names, top = (*BEFORE, "driver"), 22.0
    wide = (sheet.width - GAP * (len(names) - 1)) / len(names)
    for at, name in enumerate(names):
        x, seen = at * (wide + GAP), 0.22 if name in BEFORE else 0.45
        sheet.box(x + 1, top, wide - 2, BOX, fill=GOOD, opacity=seen, edge=GOOD)
        sheet.words(x + wide / 2, top + 18, name, anchor="middle")
        if at:
            sheet.line((x - GAP, top + BOX / 2), (x, top + BOX / 2), arrow=True)
    left, middle = sheet.width - wide, sheet.width - wide / 2
    said = f"driver alone{driver}"
    sheet.words(left - 8, top + BOX + 20, said, anchor="end", colour=MUTED, size=11)
    below = top + BOX + 34
    sheet.line((middle, top + BOX + 2), (middle, below), colour=BAD, thick=2, arrow=True)
    each = (wide - 2) / PACKETS
    for at in range(PACKETS):
        sheet.box(left + 1 + at * each, below + 2, each - 3, BOX, fill=BAD, opacity=0.3, edge=BAD)
    sheet.words(middle, below + BOX + 16, "queue", anchor="middle", size=11)
    end = 2 * wide + GAP
    sheet.box(1, below + 2, end - 2, BOX, fill=THIRD, opacity=0.22, edge=THIRD)
    sheet.words(end / 2, below + 20, "GPU", anchor="middle", bold=True)
    sheet.line((left - 2, below + 2 + BOX / 2), (end, below + 2 + BOX / 2), thick=2, arrow=True)
    sheet.words(1, below + BOX + 16, f"an empty kernel{kernel}", colour=MUTED, size=11)
    sheet.space(2)
