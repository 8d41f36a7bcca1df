"""An image in memory, channel after channel or pixel after pixel, and what a convolution needs
together."""

from typing import NamedTuple

from anatomy.figures import framing
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, INK, LINE, MUTED, QUIET, Canvas

# What is drawn: an image of so many channels, and pixels, of which a phone has room for fewer.
# Eight 16-bit numbers are 16 bytes.
CHANNELS, PIXELS = 8, {True: 4, False: 2}
CELL, LANE = 17.0, 68.0  # pixels: the height of a cell, and of a layout with its words


class Layout(NamedTuple):
    """One layout: its variant of the recording, its code, its strides, and how a cell is found."""

    variant: str
    code: str
    strides: str
    pixelwise: bool  # whether the channels of a pixel lie side by side, or the pixels of a channel
    loads: str
    colour: str


LAYOUTS = (
    Layout(
        "NCHW",
        "NCHW",
        "strides (CHW, HW, W, 1)",
        False,
        f"{CHANNELS} channels of a pixel: {CHANNELS} places, H × W elements apart",
        BAD,
    ),
    Layout(
        "channels_last",
        "x.to(memory_format=torch.channels_last)",
        "strides (CHW, 1, WC, C)",
        True,
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
    pixels_drawn = PIXELS[desk]
    cell = (sheet.width - 2) / (CHANNELS * pixels_drawn)
    for number, each in enumerate(LAYOUTS):
        top = number * (LANE if desk else LANE + 14) + 18
        code = each.code if desk else each.variant
        used = sheet.words(1, top - 4, code, bold=True, code=True, colour=each.colour)
        if desk:
            sheet.words(used + 12, top - 4, each.strides, size=11, colour=MUTED)
        apart = 1 if each.pixelwise else pixels_drawn  # from one channel of a pixel to the next
        for pixel in range(pixels_drawn):
            begin = pixel * (CHANNELS if each.pixelwise else 1)
            for channel in range(CHANNELS):
                _cell(sheet, each, pixel, channel, top, cell, begin + channel * apart)
        _needs(sheet, each, top, cell, apart)


def _cell(
    sheet: Canvas, each: Layout, pixel: int, channel: int, top: float, cell: float, place: int
) -> None:
    """One element: of the first pixel in colour and with its channel, of the others grey."""
    x = 1 + place * cell
    mine = pixel == 0
    fill, shade = (each.colour, 0.32) if mine else (QUIET if pixel % 2 else LINE, 0.6)
    sheet.box(x + 0.6, top, cell - 1.2, CELL, fill=fill, opacity=shade)
    if mine and cell > 12:
        sheet.words(x + cell / 2, top + 12.5, str(channel), size=10, anchor="middle", colour=INK)


def _needs(sheet: Canvas, each: Layout, top: float, cell: float, apart: int) -> None:
    """What one step of a convolution at the first pixel reads."""
    under = top + CELL + 8
    if each.pixelwise:
        sheet.bracket(2, CHANNELS * cell, under, each.colour)
    else:
        for channel in range(CHANNELS):
            x = 1 + channel * apart * cell
            sheet.bracket(x + 1, x + cell - 1, under, each.colour)
    sheet.paragraph(1, under + 15, sheet.width - 2, each.loads, size=11, colour=MUTED)
