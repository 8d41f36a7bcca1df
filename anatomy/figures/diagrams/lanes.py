"""What host and GPU do when: lanes of boxes over one axis of time, for diagrams to share."""

from collections.abc import Mapping
from itertools import count
from typing import Any

from anatomy.figures import tables
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, FOURTH, GOOD, INK, LINE, MUTED, THIRD, Canvas

# The same colour for the same thing in all of them.
LAUNCH, KERNEL, WAIT, COPY = GOOD, THIRD, BAD, FOURTH
# Pixels: a lane with the space under it, and what is left of the lanes for their names.
BOX, LANE, SMALL = 18.0, 23.0, 10.0
LEAST = 1.5  # pixels: a box of what is too short to be seen
# Widest a tick may be apart of the next, by what is shown: a desk has room for more.
MOST_TICKS = {True: 6, False: 4}
MOST_DRAWN, APART = 48, 5.0  # kernels of a step, and pixels of one with its gap


class Lanes:
    """Where times lie on a sheet: from `left` on to its right edge lies what happens in `until_s`
    seconds."""

    def __init__(self, sheet: Canvas, until_s: float, left: float = 36.0) -> None:
        self.sheet, self.until_s, self.left = sheet, until_s, left
        self.pixels_per_s = (sheet.width - left - 2) / until_s

    def at(self, seconds: float) -> float:
        """Where a time is drawn."""
        return self.left + min(seconds, self.until_s) * self.pixels_per_s

    def lane(self, y: float, name: str) -> None:
        """A lane whose boxes begin at `y`, empty."""
        self.sheet.words(self.left - 8, y + 13, name, colour=MUTED, size=11, anchor="end")
        end = self.at(self.until_s)
        self.sheet.line((self.left, y + BOX + 1), (end, y + BOX + 1), colour=LINE, thick=1)

    def pair(self, y: float) -> None:
        """The host's lane, and the GPU's under it."""
        self.lane(y, "CPU")
        self.lane(y + LANE, "GPU")

    def box(
        self,
        y: float,
        start_s: float,
        end_s: float,
        fill: str,
        text: str = "",
        *,
        frame: bool = False,
        tall: float = 1.0,
        told: str = "",
        spare: float = 4.0,
    ) -> None:
        """What lasts from a start to an end, with its name where that fits; a `frame` where one
        only waits. `tall` is its share of the lane; who points at it is `told` something; the name
        needs pixels to `spare`. What begins beyond the axis is left out."""
        if start_s >= self.until_s:
            return
        x, end = self.at(start_s), self.at(end_s)
        gap = 0.7 if end - x > 4 else 0
        how = {"edge": fill, "dashed": True, "opacity": 0.12} if frame else {"opacity": 0.85}
        high = tall * BOX
        wide = max(end - x - 2 * gap, LEAST)
        self.sheet.box(x + gap, y + BOX - high, wide, high, fill=fill, told=told, **how)
        if text and self.fits(text, start_s, end_s, spare):
            colour = INK if frame else canvas.PAPER
            middle = (x + end) / 2
            self.sheet.words(middle, y + 13, text, size=SMALL, anchor="middle", colour=colour)

    def fits(self, text: str, start_s: float, end_s: float, spare: float = 4.0) -> bool:
        """Whether a text has room in a box from a start to an end, with pixels to `spare`."""
        return canvas.wide(text, SMALL) + spare <= self.at(end_s) - self.at(start_s)

    def pause(self, y: float, start_s: float, end_s: float, text: str, colour: str) -> None:
        """A bracket under a lane, from a start to an end, with what it is."""
        x, end = self.at(start_s), self.at(end_s)
        self.sheet.bracket(x + 1, end - 1, y + 5, colour)
        half = canvas.wide(text, 11) / 2
        middle = min(max((x + end) / 2, half), self.sheet.width - half)
        self.sheet.words(middle, y + 18, text, size=11, anchor="middle", colour=colour, bold=True)

    def part(self, y: float, start_s: float, end_s: float, text: str, deep: float) -> None:
        """The name of what lasts from a start to an end, above the lanes, and of the last one above
        the others where it has no room; a line where it begins, as deep as they are."""
        x = self.at(start_s)
        self.sheet.line((x, y - 10), (x, y + 4 + deep), colour=MUTED, thick=1, dashed=True)
        if self.fits(text, start_s, end_s):
            self.sheet.words(x + 4, y, text, size=SMALL, colour=MUTED)
        elif end_s > 0.95 * self.until_s:
            edge = self.sheet.width
            self.sheet.words(edge, y - 14, text, size=SMALL, colour=MUTED, anchor="end")

    def step(self, y: float, row: Mapping[str, Any]) -> None:
        """One recorded step: for how long the host is busy, and the kernels' time, evenly spread in
        as many strokes as can be told apart."""
        whole = row["median_s"]
        self.pair(y)
        self.box(y, 0, min(row["enqueue_s"], whole), LAUNCH, "CPU busy")
        room = int(whole * self.pixels_per_s / APART)
        strokes = max(1, min(int(row["kernels_per_call"]), MOST_DRAWN, room))
        each = whole / strokes
        busy = each * min(row["busy_s"] / whole, 1.0)
        for number in range(strokes):
            self.box(y + LANE, number * each, number * each + busy, KERNEL)
        self.mark(y, whole)

    def mark(self, y: float, seconds: float) -> None:
        """A line across a pair of lanes where all of it is done."""
        x = self.at(seconds)
        self.sheet.line((x, y - 2), (x, y + 2 * LANE - 1), colour=MUTED, thick=1.5)

    def axis(self, y: float) -> float:
        """Ticks under the lanes, at round times; returns the line under them."""
        step = round_step(self.until_s, MOST_TICKS[self.sheet.width > 500])
        size, unit = tables.time_unit([self.until_s])
        for number in count():
            if (seconds := number * step) > self.until_s:
                return y + 16
            x = self.at(seconds)
            self.sheet.line((x, y), (x, y + 4), colour=MUTED, thick=1)
            text = f"{seconds / size:.3g} {unit}" if number else "0"
            here = "end" if x + 20 > self.sheet.width else "middle" if number else "start"
            self.sheet.words(x, y + 15, text, size=SMALL, anchor=here, colour=MUTED)


def round_step(until: float, most: int) -> float:
    """The least of 1, 2 and 5 times a power of ten that goes into `until` at most so often."""
    for power in count(-12):
        for digit in (1, 2, 5):
            if until / (step := digit * 10.0**power) <= most:
                return step
