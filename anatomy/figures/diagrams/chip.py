"""The parts of a GPU that a kernel meets: multiprocessors, warps, caches, memory."""

from typing import Any

from anatomy.figures import framing
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, INK, MUTED, QUIET, THIRD, Canvas
from anatomy.judge import limits
from anatomy.record.showing import current
from anatomy.table import units
from anatomy.table.errors import BadParameter

GAP = 18.0  # pixels between memories, for the arrows from one to the other
# Threads of a warp, and warps that an SM of this capability keeps ready (NVIDIA, CUDA C++
# Programming Guide, technical specifications per compute capability).
THREADS, WARPS = 32, {"7.5": 32, "8.0": 64, "8.6": 48, "8.9": 48, "9.0": 64, "10.0": 64, "12.0": 48}


def chip(*, caption: str | None = None) -> str:
    """The shown machine's multiprocessors around its L2 cache and HBM, one of them enlarged.

    chip(caption="What a kernel meets.")
    """
    showing = current()
    found = showing.find(limits.EXPERIMENT)

    def draw() -> str:
        machine = found.recording.data["machine"]
        if not machine.get("sm_count"):
            raise BadParameter("the recording is not of a GPU.")
        l2, hbm = (units.byte_count(machine[name]) for name in ("l2_bytes", "memory_bytes"))
        label = (
            f"{machine['gpu']}: {machine['sm_count']} multiprocessors share an L2 cache of {l2}; "
            f"the CPU launches kernels over a link; {hbm} of HBM"
        )
        read = showing.ceilings_of(found).get("read")
        rate = f", read at {units.rate(read.value, 'B/s')}" if read else ""
        return canvas.both(lambda sheet: _drawn(sheet, machine, rate), f"{label}{rate}.")

    return framing.exhibit(found, caption, draw)


def _drawn(sheet: Canvas, machine: dict[str, Any], rate: str) -> None:
    """`rate` is said of HBM, after what it holds."""
    desk = sheet.width > 500
    left = 92.0 if desk else 0.0
    if desk:
        sheet.box(1, 40, 69, 70, edge=MUTED)
        sheet.words(35, 72, "CPU", anchor="middle", bold=True)
        sheet.words(35, 88, "launches", anchor="middle", size=10, colour=MUTED)
        sheet.line((72, 75), (90, 75), colour=BAD, thick=2, arrow=True)
    else:
        sheet.box(1, 1, sheet.width - 2, 22, edge=MUTED)
        sheet.words(sheet.width / 2, 16, "CPU: launches", anchor="middle", bold=True)
        sheet.line((sheet.width / 2, 25), (sheet.width / 2, 41), colour=BAD, thick=2, arrow=True)
    right = sheet.width * (0.62 if desk else 1.0)
    bottom = _multiprocessors(sheet, machine, left, right, 0 if desk else 40)
    l2, hbm = (units.byte_count(machine[name]) for name in ("l2_bytes", "memory_bytes"))
    for name, fits, colour in (("L2 cache", l2, THIRD), ("HBM", hbm + rate, GOOD)):
        for x, ends in ((0.4, (3, GAP - 3)), (0.6, (GAP - 3, 3))):  # what is stored, and loaded
            across = left + x * (right - left)
            start, end = ((across, bottom + y) for y in ends)
            sheet.line(start, end, thick=1.5, arrow=True)
        top = bottom + GAP
        sheet.box(left, top, right - left, 24, fill=colour, opacity=0.28, edge=colour)
        sheet.words((left + right) / 2, top + 16, f"{name}, {fits}", anchor="middle", bold=True)
        bottom = top + 24
    sheet.space(4)
    _enlarged(sheet, machine, *((right + 24, 14) if desk else (0, sheet.height + 22)))


def _multiprocessors(
    sheet: Canvas, machine: dict[str, Any], left: float, right: float, top: float
) -> float:
    count, across = machine["sm_count"], 22 if sheet.width > 500 else 20
    used = sheet.words(left, top + 12, f"{count} SMs", bold=True)
    sheet.words(left + used + 12, top + 12, "(streaming multiprocessors)", colour=MUTED, size=11)
    each = (right - left) / across
    for at in range(count):
        x, y = left + (at % across) * each, top + 20 + (at // across) * each
        first = at == across - 1
        sheet.box(x + 1, y + 1, each - 2, each - 2, fill=INK if first else QUIET, opacity=0.7)
    return top + 20 + -(-count // across) * each


def _enlarged(sheet: Canvas, machine: dict[str, Any], x: float, y: float) -> None:
    """One multiprocessor: what lies in it, and the warps that wait for their turn."""
    width = sheet.width - x
    warps = WARPS.get(machine["capability"])
    sheet.words(x, y, "One SM", bold=True)
    y += 8
    frame = y
    parts = (
        ("registers", "nearest, private to a thread"),
        ("shared memory, L1", "shared by the SM's threads"),
        ("fp32 units", "each a multiply-add in every clock"),
        ("tensor cores", "multiply small tiles of matrices"),
    )
    beside = canvas.wide(parts[1][0], 11, bold=True) + canvas.wide(parts[2][1], 10) + 40 < width
    high = 21 if beside else 33  # or what a part is stands under its name
    for at, (name, what) in enumerate(parts):
        top = y + 8 + (high + 5) * at
        sheet.box(x + 8, top, width - 17, high, fill=QUIET, opacity=0.3)
        used = sheet.words(x + 14, top + 14.5, name, bold=True, size=11)
        spot = (x + used + 24, top + 14.5) if beside else (x + 14, top + 27)
        sheet.words(*spot, what, size=10, colour=MUTED)
    top = y + 8 + (high + 5) * len(parts) + 6
    step = (width - 18) / 16
    shown = warps or 32
    issuing = {shown * part // 32 for part in (3, 10, 21, 28)}
    for at in range(shown):
        fill = GOOD if at in issuing else QUIET
        box = x + 8 + (at % 16) * step, top + (at // 16) * 11
        sheet.box(*box, step - 2, 8, fill=fill, opacity=0.9 if fill == GOOD else 0.45)
    top += 11 * (shown // 16)
    many = f"up to {warps} warps of {THREADS} threads" if warps else f"warps of {THREADS} threads"
    said = f"{many}; blue ones issue, the rest wait"
    below = sheet.paragraph(x + 8, top + 14, width - 17, said, size=10, colour=MUTED)
    sheet.box(x, frame, width - 1, below - frame - 2, edge=INK)
