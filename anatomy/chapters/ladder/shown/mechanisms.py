"""What rungs change, drawn without figures of a recording: how a tensor core uses a number more
than once, which trips to HBM a fused sum and norm save, and why FP8 keeps a tensor twice."""

from anatomy.figures import framing
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, LINE, MUTED, PAPER, THIRD, Canvas
from anatomy.figures.diagrams.trips import LEFT, Kernel, panel

TILE, CELL = 4, 15.0  # numbers along the side of a tile as it is drawn, and pixels of one
DESK = 500
# The residual's sum x + y, the norm of it, and the cast of that, under autocast.
EAGER = (
    Kernel("x + y", ("x", "y"), ("s",)),
    Kernel("norm", ("s",), ("n",)),
    Kernel("cast", ("n",), ("h",)),
)
FUSED = (Kernel("+, norm, cast", ("x", "y"), ("s", "h")),)
BYTES = {"x": 4, "y": 2, "s": 4, "n": 4, "h": 2}  # of one number: y and h are bf16


def moved(kernels: tuple[Kernel, ...]) -> int:
    """Bytes that go to HBM and back for one number of the tensor."""
    return sum(BYTES[name] for kernel in kernels for name in (*kernel.reads, *kernel.writes))


def multipliers(*, caption: str | None = None) -> str:
    """One multiply-add of an ordinary unit beside two tiles of a tensor core.

    multipliers(caption="What is read, and how often it is used.")
    """
    label = (
        f"An ordinary unit reads two numbers and multiplies them once. A tensor core reads two "
        f"tiles of {TILE} by {TILE}, {2 * TILE**2} numbers, and does {TILE**3} multiplications."
    )
    return framing.exhibit([], caption, lambda: canvas.both(_multipliers, label))


def sum_and_norm(*, caption: str | None = None) -> str:
    """Trips through HBM of a residual's sum and the norm after it, eager and in one kernel.

    sum_and_norm(caption="Bytes of one number.")
    """
    label = (
        f"Eager, a sum, a norm and a cast move {moved(EAGER)} bytes for each number; as one kernel "
        f"they move {moved(FUSED)}."
    )
    return framing.exhibit([], caption, lambda: canvas.both(_sum_and_norm, label))


def two_layouts(*, caption: str | None = None) -> str:
    """A tensor as a table and in memory, with what a sum of each pass runs over, and its copy.

    two_layouts(caption="Neighbours or not.")
    """
    label = (
        "The forward pass sums over the inputs, a row of x: neighbours in memory. The backward "
        "pass sums over the tokens, a column: no neighbours, but in a transposed copy they are."
    )
    return framing.exhibit([], caption, lambda: canvas.both(_two_layouts, label))


def _multipliers(sheet: Canvas) -> None:
    desk, side = sheet.width > DESK, TILE * CELL
    middle = 20 + side / 2  # of the tiles
    sheet.words(1, 12, "Ordinary unit", bold=True)
    for x, fill, name in ((1, GOOD, "a"), (43, GOOD, "b"), (85, THIRD, "c")):
        _cells(sheet, x, middle - CELL / 2, 1, fill)
        sheet.words(x + CELL / 2, middle + 24, name, anchor="middle", code=True, colour=MUTED)
    sheet.words(30, middle + 4, "×", anchor="middle")
    sheet.words(72, middle + 4, "=", anchor="middle")
    said = "2 numbers read", "1 multiplication", "each used once"
    _lines(sheet, 122, middle - 14, said)
    x, top = (sheet.width / 2 - 50, 0.0) if desk else (1.0, side + 46)
    sheet.words(x, top + 12, "Tensor core", bold=True)
    for at, fill in enumerate((GOOD, GOOD, THIRD)):
        left = x + at * (side + 24)
        _cells(sheet, left, top + 20, TILE, fill, at)
        if at:
            sign = "×" if at == 1 else "="
            sheet.words(left - 12, top + 20 + side / 2 + 4, sign, anchor="middle")
    said = f"{2 * TILE**2} numbers read", f"{TILE**3} multiplications", f"each used {TILE} times"
    beside = x + 3 * side + 60
    if beside + canvas.wide(said[1]) < sheet.width:
        _lines(sheet, beside, top + 20 + side / 2 - 14, said)
    else:
        sheet.words(x, top + side + 40, "; ".join(said), size=11.5)
    sheet.space(4)


def _cells(sheet: Canvas, x: float, y: float, count: int, fill: str, lit: int = 0) -> None:
    """A tile; of a larger one is filled, by `lit`, a row, a column, the one number that they make,
    or that column's row in the transposed tile."""
    for row in range(count):
        for column in range(count):
            on = count == 1 or (row == 1, column == 2, row == 1 and column == 2, row == 2)[lit]
            look = {"fill": fill, "opacity": 0.6} if on else {"fill": PAPER}
            place = x + column * CELL, y + row * CELL
            sheet.box(*place, CELL - 1, CELL - 1, edge=fill if on else LINE, round_=1, **look)


def _lines(sheet: Canvas, x: float, y: float, said: tuple[str, ...]) -> None:
    for at, line in enumerate(said):
        sheet.words(x, y + 17 * at, line, size=11.5)


def _sum_and_norm(sheet: Canvas) -> None:
    desk = sheet.width > DESK
    across = sheet.width - 150 if desk else sheet.width
    each = (across - LEFT) / len(EAGER)
    top = 16.0
    for title, kernels, colour in (("Eager", EAGER, BAD), ("Compiled", FUSED, GOOD)):
        wide = each if kernels is EAGER else 1.6 * each
        hbm = panel(sheet, top, across, title, kernels, [wide] * len(kernels), colour)
        said = f"{sum(k.trips for k in kernels)} trips, {moved(kernels)} bytes"
        where = (across + 12, hbm - 26) if desk else (LEFT, hbm + 36)
        sheet.words(*where, said, bold=True, colour=colour)
        top = hbm + (46 if desk else 62)


def _two_layouts(sheet: Canvas) -> None:
    desk, side = sheet.width > DESK, TILE * CELL
    panels = (
        ("x, forward", "neighbours", GOOD, False, False),
        ("x, backward", "no neighbours", BAD, True, False),
        ("transposed copy, backward", "neighbours", GOOD, False, True),
    )
    for at, (title, said, colour, column, turned) in enumerate(panels):
        x, top = (at * sheet.width / 3, 0.0) if desk else (0.0, at * (side + 64))
        sheet.words(x + 1, top + 12, title, bold=True)
        _cells(sheet, x + 1, top + 20, TILE, colour, 1 if column else 3 * turned)
        down, across = ("inputs", "tokens") if turned else ("tokens", "inputs")
        beside = x + side + 9
        sheet.words(beside, top + 34, f"across: {across}", size=11, colour=MUTED)
        sheet.words(beside, top + 50, f"down: {down}", size=11, colour=MUTED)
        sheet.words(beside, top + 74, said, size=11.5, bold=True, colour=colour)
        each, y = 11.0, top + side + 30
        for cell in range(TILE**2):
            on = cell % TILE == 2 if column else cell // TILE == 1 + turned
            look = {"fill": colour, "opacity": 0.6} if on else {"fill": PAPER}
            sheet.box(x + 1 + cell * each, y, each - 1, 10, edge=colour if on else LINE, **look)
    sheet.space(4)
