"""An image in memory, channel after channel or pixel after pixel, and what a convolution needs
together."""

from typing import NamedTuple

from anatomy.figures import framing
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, INK, LINE, MUTED, QUIET, Canvas

# What is drawn: an image of so many channels and pixels. Eight 16-bit numbers are 16 bytes.
CHANNELS, PIXELS = 8, 4
CELL, LANE = 17.0, 68.0  # pixels: the height of a cell, and of a layout with its words


class Layout(NamedTuple):
    """One layout: its variant of the recording, its code, its strides, and how a cell is found."""

    variant: str
    code: str
    strides: str
    of_channel: int  # elements from one channel of a pixel to the next
    of_pixel: int
    loads: str
    colour: str


LAYOUTS = (
    Layout(
        "NCHW",
        "NCHW",
        "strides (CHW, HW, W, 1)",
        PIXELS,
        1,
        f"{CHANNELS} channels of a pixel: {CHANNELS} places, H × W elements apart",
        BAD,
    ),
    Layout(
        "channels_last",
        "x.to(memory_format=torch.channels_last)",
        "strides (CHW, 1, WC, C)",
        1,
        CHANNELS,
        f"{CHANNELS} channels of a pixel: one 16-byte load",
        GOOD,
    ),
)


def pixels(*, caption: str | None = None) -> str:
    """Both layouts of a small image in memory, one pixel marked. Nothing in it is measured."""
    parts = ". ".join(f"{each.variant}: {each.loads}" for each in LAYOUTS)
    label = f"An image of {CHANNELS} channels in memory. {parts}."
    return framing.exhibit([], caption, lambda: canvas.both(_lanes, label))


def _lanes(sheet: Canvas) -> None:
    desk = sheet.width > 500
    cell = (sheet.width - 2) / (CHANNELS * PIXELS)
    for number, each in enumerate(LAYOUTS):
        top = number * (LANE if desk else LANE + 14) + 18
        code = each.code if desk else each.variant
        used = sheet.words(1, top - 4, code, bold=True, code=True, colour=each.colour)
        if desk:
            sheet.words(used + 12, top - 4, each.strides, size=11, colour=MUTED)
        for pixel in range(PIXELS):
            for channel in range(CHANNELS):
                _cell(sheet, each, pixel, channel, top, cell)
        _needs(sheet, each, top, cell)


def _cell(sheet: Canvas, each: Layout, pixel: int, channel: int, top: float, cell: float) -> None:
    """One element: of the first pixel in colour and with its channel, of the others grey."""
    x = 1 + (channel * each.of_channel + pixel * each.of_pixel) * cell
    mine = pixel == 0
    fill, shade = (each.colour, 0.32) if mine else (QUIET if pixel % 2 else LINE, 0.6)
    sheet.box(x + 0.6, top, cell - 1.2, CELL, fill=fill, opacity=shade)
    if mine and cell > 12:
        sheet.words(x + cell / 2, top + 12.5, str(channel), size=10, anchor="middle", colour=INK)


def _needs(sheet: Canvas, each: Layout, top: float, cell: float) -> None:
    """What one step of a convolution at the first pixel reads."""
    under = top + CELL + 8
    if each.of_channel == 1:
        sheet.bracket(2, CHANNELS * cell, under, each.colour)
    else:
        for channel in range(CHANNELS):
            x = 1 + channel * each.of_channel * cell
            sheet.bracket(x + 1, x + cell - 1, under, each.colour)
    sheet.paragraph(1, under + 15, sheet.width - 2, each.loads, size=11, colour=MUTED)
