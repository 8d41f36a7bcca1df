"""What a compiler fuses: trips of a tensor between HBM and the SMs, eager and in one kernel."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, MUTED, QUIET, Canvas
from anatomy.figures.diagrams.trips import BOX, DROP, LEFT, Kernel, panel
from anatomy.figures.framing import drawn_from
from anatomy.judge import rows
from anatomy.judge.limits import Ceilings
from anatomy.judge.rows import Row
from anatomy.table import units
from anatomy.table.errors import BadParameter

FUSED, EAGER = "0 breaks", "eager"
LEAST_TRIPS = 2  # of one kernel for all: it reads the tensor once, and writes it once
GAP = 46.0  # pixels between two panels


# The layer of `compilation.breaks`, relu(x) * weight + x, as eager PyTorch runs it.
LAYER = (
    Kernel("relu(x)", ("x",), ("r",)),
    Kernel("r * w", ("r",), ("p",)),
    Kernel("p + x", ("p", "x"), ("x",)),
)


@drawn_from(ceilings=True)
def fusion(table: Sequence[Row], ceilings: Ceilings | None, *, op: str, layers: int) -> str:
    """The trips through HBM of one elementwise layer, eager and compiled, with the bytes of the
    whole chain, the least time that they take, and the time recorded.

        fusion("compilation.breaks", op="large elementwise", layers=17)

    Args:
        op: A chain of such layers; its rows tell the bytes of one read and one write.
        layers: How many layers the chain has.
    """
    table = rows.select(table, op=op, variants=[EAGER, FUSED])
    eager, fused = (_one(table, name) for name in (EAGER, FUSED))
    told = {EAGER: Told(eager, trips(layers), ceilings), FUSED: Told(fused, 2, ceilings)}
    label = (
        f"One layer as three eager kernels makes {trips(1)} trips to HBM; {layers} layers as one "
        f"compiled kernel make {LEAST_TRIPS}. Eager: {told[EAGER]}. Compiled: {told[FUSED]}."
    )
    return canvas.both(lambda sheet: _panels(sheet, told, layers), label)


def trips(layers: int) -> int:
    """Trips of eager layers."""
    return layers * sum(kernel.trips for kernel in LAYER)


class Told(NamedTuple):
    """What is said beside a panel."""

    row: Row
    trips: int
    ceilings: Ceilings | None

    @property
    def moved(self) -> str:
        """The bytes of all trips, and the time that they take at the bandwidth of a copy."""
        count = self.row["bytes"] / LEAST_TRIPS * self.trips
        copy = self.ceilings.get("copy") if self.ceilings else None
        least = f": {units.seconds(count / copy.value)} at a copy's rate" if copy else ""
        return f"{units.byte_count(count)}{least}"

    @property
    def time(self) -> str:
        """The time of a step, with its interval where that is wide."""
        time = rows.printed(self.row, "median_s", units.PLAIN_DIGITS)
        return time + rows.if_wide(self.row, "median_s")

    @property
    def pace(self) -> str:
        """Who paces it, where that is the host."""
        return "host-bound" if self.row.get("paced_by") == "host" else ""

    def __str__(self) -> str:
        pace = f", {self.pace}" if self.pace else ""
        return f"{self.trips} trips, {self.moved}, measured {self.time}{pace}"


def _one(table: Sequence[Row], name: str) -> Row:
    found = next(row for row in table if row["variant"] == name)
    if units.missing(found.get("bytes")) or units.missing(found.get("median_s")):
        raise BadParameter(f"the row {name!r} has no bytes or no time to draw.")
    return found


def _panels(sheet: Canvas, told: Mapping[str, Told], layers: int) -> None:
    desk = sheet.width > 500
    across = sheet.width - 215 if desk else sheet.width
    each = (across - LEFT) / len(LAYER)
    top = panel(sheet, 16, across, "Eager: three kernels for each layer", LAYER, [each] * 3, BAD)
    _said(sheet, told[EAGER], f"{trips(1)} trips × {layers} layers", top, across, BAD)
    down = GAP if desk else GAP + 62
    whole = (Kernel(f"all {layers} layers", ("x",), ("x",)),)
    title = "Compiled: one kernel for all layers"
    top = panel(sheet, top + down, across, title, whole, [1.5 * each], GOOD)
    _said(sheet, told[FUSED], "1 read + 1 write", top, across, GOOD)


def _said(sheet: Canvas, told: Told, how: str, hbm: float, across: float, colour: str) -> None:
    """The sums of a panel: at its right on a desk, under it on a phone."""
    desk = sheet.width > 500
    x, y = (across + 14, hbm - DROP - BOX + 4) if desk else (LEFT, hbm + 36)
    if desk:
        sheet.box(across + 4, y - 12, 1.5, 74, fill=QUIET)
    sheet.words(x, y, how, size=12)
    sheet.words(x, y + 18, told.moved, colour=MUTED, size=11.5)
    sheet.words(x, y + 40, told.time, colour=colour, bold=True, size=15 if desk else 13)
    if told.pace:
        sheet.words(x, y + 56, told.pace, colour=MUTED, size=11.5)
