"""A sheet to draw a diagram on: boxes, lines, brackets and words as SVG.

All lengths are CSS pixels, x to the right and y down. Colours are custom properties of the page's
stylesheet, which differ in light and dark. A diagram is one image with a label; what it says in
figures stands in its text too, so that nothing is told by colour alone.
"""

from collections.abc import Callable, Iterable, Mapping
from html import escape
from math import ceil

from anatomy.figures.charts.svg import WIDTHS, telling

INK, MUTED, LINE = "var(--chart-text)", "var(--chart-muted)", "var(--chart-grid)"
QUIET, GOOD, BAD = "var(--chart-tone)", "var(--chart-1)", "var(--chart-2)"
THIRD, FOURTH = "var(--chart-3)", "var(--chart-4)"
PAPER = "var(--md-default-bg-color)"
FONT, CODE_FONT = "system-ui, sans-serif", "ui-monospace, SFMono-Regular, Menlo, monospace"
# Size of the words, and how wide a letter of them is.
WORDS, LETTER, CODE_LETTER = 12.0, 0.53, 0.602
BOLD, CAPITAL = 0.08, 0.2  # what a bold letter takes beyond that, and a bold capital beyond both


# Smaller letters are not read on a phone, where a sheet is drawn a little smaller than it is.
LEAST = 11.0
KEY = 11.5  # of what the colours stand for


class Canvas:
    """What is drawn, `width` pixels wide and as high as what is on it."""

    def __init__(self, width: float) -> None:
        self.width = width
        self.height = 0.0
        self._parts: list[str] = []

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = "none",
        opacity: float = 1.0,
        edge: str = "none",
        dashed: bool = False,
        round_: float = 2.0,
        told: str = "",
    ) -> None:
        """A rectangle with rounded corners; `opacity` is its filling's. Who points at it is
        `told` something."""
        size = {"width": max(width, 0.0), "height": max(height, 0.0)}
        look = {"rx": round_, "fill": fill, "stroke": edge}
        look |= {"fill_opacity": opacity} if opacity < 1 else {}
        look |= {"stroke_dasharray": "4 3"} if dashed else {}
        look |= {"aria_label": told} if told else {}
        self._add(_tag("rect", x=x, y=y, **size, **look), y + height)

    def line(
        self,
        *points: tuple[float, float],
        colour: str = MUTED,
        thick: float = 1.2,
        dashed: bool = False,
        arrow: bool = False,
    ) -> None:
        """A line through points, with a head at its end if it is an `arrow`."""
        look = {"fill": "none", "stroke": colour, "stroke_width": thick}
        look |= {"stroke_dasharray": "2 3"} if dashed else {}
        self._add(_tag("polyline", points=_path(points), **look), max(y for _, y in points))
        if arrow:
            self._head(points[-2], points[-1], colour)

    def shape(self, *corners: tuple[float, float], fill: str = "none", edge: str = "none") -> None:
        """A polygon, such as an arrow's head or a mark that is no circle."""
        drawn = _tag("polygon", points=_path(corners), fill=fill, stroke=edge)
        self._add(drawn, max(y for _, y in corners))

    def bracket(self, start: float, end: float, y: float, colour: str = MUTED) -> None:
        """A bracket under what lies from `start` to `end`."""
        self.line((start, y - 5), (start, y), (end, y), (end, y - 5), colour=colour, thick=1.5)

    def words(
        self,
        x: float,
        y: float,
        text: str,
        *,
        colour: str = INK,
        size: float = WORDS,
        anchor: str = "start",
        bold: bool = False,
        code: bool = False,
    ) -> float:
        """Text on the line `y`; returns about how wide it is. `anchor` is `start`, `middle` or
        `end`."""
        size = max(size, LEAST)
        look = {"font_size": size, "fill": colour}
        look |= {"font_weight": 600} if bold else {}
        look |= {"font_family": CODE_FONT} if code else {}
        look |= {"text_anchor": anchor} if anchor != "start" else {}
        self._add(_tag("text", text, x=x, y=y, **look), y + 4)
        return wide(text, size, code=code, bold=bold)

    def paragraph(
        self, x: float, y: float, width: float, text: str, *, size: float = WORDS, **how
    ) -> float:
        """Text in as many lines as it needs in so many pixels; returns the line after the last."""
        lines, current = [], ""
        for word in text.split():
            longer = f"{current} {word}".strip()
            if current and wide(longer, size, bold=how.get("bold", False)) > width:
                lines.append(current)
                longer = word
            current = longer
        for line in [*lines, current]:
            self.words(x, y, line, size=size, **how)
            y += 1.35 * size
        return y

    def key(
        self, y: float, marks: Mapping[str, str], *, opacity: float = 1.0
    ) -> tuple[float, float]:
        """Squares in the colours of `marks`, each with what it stands for, in as many lines as they
        need from the line `y` on; returns where the next one would stand."""
        x = 1.0
        for text, fill in marks.items():
            if x > 1 and x + 16 + wide(text, KEY) > self.width:
                x, y = 1.0, y + 18
            self.box(x, y - 9, 11, 11, fill=fill, opacity=opacity, edge=LINE, round_=1)
            x += 16 + self.words(x + 16, y, text, size=KEY, colour=MUTED) + 18
        return x, y

    def place(self, other: "Canvas", x: float, y: float) -> None:
        """What is drawn on another sheet, its corner at this place."""
        inside = "".join(other._parts)
        self._add(f'<g transform="translate({x:g} {y:g})">{inside}</g>', y + other.height)

    def space(self, pixels: float) -> None:
        """Leave so much free under all that is drawn."""
        self.height += pixels

    def svg(self, kind: str) -> str:
        """The picture; the stylesheet shows the one whose `kind`, `wide` or `narrow`, suits."""
        size = {"width": self.width, "height": ceil(self.height)}
        box = {"viewBox": f"0 0 {self.width:g} {ceil(self.height)}", "font_family": FONT}
        hidden = {"aria_hidden": "true", "focusable": "false", f"data_{kind}": ""}
        inside = "".join(self._parts)
        return _tag("svg", **hidden, **size, **box).removesuffix("/>") + f">{inside}</svg>"

    def _head(self, before: tuple[float, float], end: tuple[float, float], colour: str) -> None:
        (x0, y0), (x, y) = before, end
        length = ((x - x0) ** 2 + (y - y0) ** 2) ** 0.5 or 1.0
        dx, dy = (x - x0) / length, (y - y0) / length
        base = x - 7 * dx, y - 7 * dy
        sides = [(base[0] - 3.5 * dy, base[1] + 3.5 * dx), (base[0] + 3.5 * dy, base[1] - 3.5 * dx)]
        self.shape((x, y), *sides, fill=colour)

    def _add(self, part: str, bottom: float) -> None:
        self._parts.append(part)
        self.height = max(self.height, bottom)


def _tag(name: str, text: str | None = None, **attributes: str | float) -> str:
    """An element with its attributes, numbers to a hundredth."""
    said = "".join(
        f' {key.replace("_", "-")}="{escape(_short(value))}"' for key, value in attributes.items()
    )
    return f"<{name}{said}/>" if text is None else f"<{name}{said}>{escape(text)}</{name}>"


def _short(value: str | float) -> str:
    return value if isinstance(value, str) else f"{round(value, 2):g}"


def _path(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def wide(text: str, size: float = WORDS, *, code: bool = False, bold: bool = False) -> float:
    """About how many pixels a text takes."""
    if code:  # letters of one width, bold or not
        return len(text) * size * CODE_LETTER
    beyond = BOLD * len(text) + CAPITAL * sum(map(str.isupper, text)) if bold else 0.0
    return (len(text) * LETTER + beyond) * size


def both(draw: Callable[[Canvas], None], label: str) -> str:
    """A diagram for a desk and for a phone; who can't see it is told the label."""
    drawn = []
    for kind, width in WIDTHS.items():
        canvas = Canvas(width)
        draw(canvas)
        drawn.append(canvas.svg(kind))
    both = "".join(telling(*drawn))
    return f'<div class="chart diagram" role="img" aria-label="{escape(label)}">{both}</div>'
