"""Kernels on the SMs above, memory below, and an arrow for each trip of a tensor between them."""

from collections.abc import Sequence
from typing import NamedTuple

from anatomy.figures.diagrams.canvas import LINE, MUTED, Canvas

BOX, DROP = 26.0, 30.0  # pixels: a kernel, the way to HBM
LEFT = 40.0  # where kernels begin
GAP = 6.0  # between kernels


class Kernel(NamedTuple):
    """One kernel: what it does, and the tensors that it reads and writes, by their names; of one
    letter each a text will do."""

    does: str
    reads: Sequence[str]
    writes: Sequence[str]

    @property
    def trips(self) -> int:
        """How often a tensor goes between HBM and the SMs."""
        return len(self.reads) + len(self.writes)


def panel(
    sheet: Canvas,
    top: float,
    across: float,
    title: str,
    kernels: Sequence[Kernel],
    widths: Sequence[float],
    colour: str,
) -> float:
    """Draw kernels from the left, each with the gap after it so many pixels wide. Returns where
    HBM begins."""
    sheet.words(1, top, title, bold=True)
    y = top + 12
    hbm = y + BOX + DROP
    sheet.words(1, y + 17, "SMs", colour=MUTED)
    sheet.words(1, hbm + 13, "HBM", colour=MUTED)
    sheet.box(LEFT, hbm, across - LEFT - 1, 18, fill=LINE)
    for at, (kernel, taken) in enumerate(zip(kernels, widths, strict=True)):
        x, width = LEFT + sum(widths[:at]), taken - GAP
        sheet.box(x, y, width, BOX, fill=colour, opacity=0.22, edge=colour)
        sheet.words(x + width / 2, y + 17, kernel.does, anchor="middle", code=True, size=11.5)
        _trips(sheet, kernel, x, width, y + BOX, hbm, colour)
    return hbm


def _trips(sheet: Canvas, kernel: Kernel, x: float, width: float, sm: float, hbm: float, colour):
    """Reads go up and writes come down; each has the name of its tensor beside it."""
    step = width / (kernel.trips + 1)
    for number, name in enumerate((*kernel.reads, *kernel.writes), start=1):
        at = x + number * step
        write = number > len(kernel.reads)
        ends = ((at, sm + 2), (at, hbm - 2)) if write else ((at, hbm - 2), (at, sm + 2))
        sheet.line(*ends, colour=colour, thick=1.6, arrow=True)
        sheet.words(at + 6, (sm + hbm) / 2 + 4, name, code=True, size=10.5, colour=MUTED)
