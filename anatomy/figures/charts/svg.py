"""Charts to static SVG without a script, drawn once, coloured by the page's own stylesheet.

Colours are CSS custom properties, so that light and dark need no second picture. Each chart is
drawn for two widths and the stylesheet shows one of them: what is legible on a desk is not when it
is squeezed into a phone. Pictures are kept under a key of all that they follow from, so that a
build whose charts were drawn before loads neither Altair nor the converter.
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from html import escape
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from anatomy.figures.charts.simpler import simpler
from anatomy.record import recording, signatures
from anatomy.record.showing import Showing, current

VEGA_LITE = "6.4"
# Width of the picture in CSS pixels: the text column of a page, and a phone's less its margins.
WIDTHS = {"wide": 680, "narrow": 330}
# Whether Altair holds each of its objects against the schema, which takes a third of the time of
# drawing: the tests do, and a build repeats nothing that they have seen.
VALIDATED = False
NEARLY = 8  # pixels: pictures whose widths differ by less are one
BETWEEN = 24  # pixels between panels side by side, as the stylesheet has them
FONTS = signatures.PACKAGE / "figures" / "fonts.conf"
CACHE = Path(".cache") / "anatomy" / "svg"  # of the checkout, where no other folder is named
_LABELLED = re.compile(
    r'<(?P<tag>path|rect|line|circle)(?P<attributes>(?=[^>]*aria-label="(?P<label>[^"]*)")'
    r"[^>]*?)(?:/>|></(?P=tag)>)"
)
# What is a whole number but for its last bits, which follow Python and its C library, is one.
_LONG = re.compile(r"-?\d+(?:\.\d{3,}(?:e-\d+)?|(?:\.\d+)?e-\d+)")
_MARK = re.compile(r' aria-label="([^"]*)"')


class Drawing(NamedTuple):
    """A picture to be drawn: a function of `charts.plain`, or of the module that its name begins
    with, and its arguments, all plain data."""

    function: str
    arguments: tuple[Any, ...]


Panel = tuple[str, Drawing]  # under its title


def chart(
    panels: Sequence[Panel], label: str, *, abreast: int = 1, folder: Path | None = None
) -> str:
    """The pictures of a chart: one or several panels. A reader who can't see it is told the label;
    the table beside it has the figures. So many panels `abreast` share the width of a desk; on a
    phone each has all of it."""
    showing, parts = current(), []
    for title, drawing in panels:
        part = f'<p class="panel">{escape(title)}</p>' if title else ""
        wide, narrow = share(abreast), WIDTHS["narrow"]
        first = picture(drawing, wide, folder)
        if narrow - wide in range(NEARLY):  # of several abreast a phone shows the same
            part += _picture(showing, telling(first, "")[0], "both")
        else:
            both = telling(first, picture(drawing, narrow, folder))
            part += "".join(_picture(showing, *each) for each in zip(both, WIDTHS, strict=True))
        parts.append(f"<div>{part}</div>" if abreast > 1 else part)
    side_by_side = f' abreast" style="--abreast: {abreast}' if abreast > 1 else ""
    start = f'<div class="chart{side_by_side}" role="img" aria-label="{escape(label)}">'
    return f"{start}{''.join(parts)}</div>"


def share(abreast: int) -> int:
    """Pixels of each of several panels that stand side by side on a desk."""
    return (WIDTHS["wide"] - (abreast - 1) * BETWEEN) // abreast


def picture(drawing: Drawing, width: int, folder: Path | None = None) -> str:
    """The SVG of a drawing, `width` pixels wide; one kept in the folder is taken from there."""
    what = json.dumps([drawing, width], sort_keys=True, separators=(",", ":"))
    name = sha256(f"{_tools()} {what}".encode()).hexdigest()[:24]
    kept = (folder or signatures.PACKAGE.parent / CACHE) / f"{name}.svg"
    if kept.is_file() and (svg := kept.read_text(encoding="utf-8")).endswith("</svg>"):
        return svg
    os.environ["FONTCONFIG_FILE"] = str(FONTS)
    import vl_convert  # half a second, as Altair is a whole one
    from altair.utils.schemapi import debug_mode

    module, _, name = drawing.function.rpartition(".")
    draw = getattr(import_module(f"anatomy.figures.charts.{module or 'plain'}"), name)
    with debug_mode(VALIDATED):
        spec = draw(*drawing.arguments, width=width)
    text = json.dumps(spec, sort_keys=True)
    svg = _shorter(vl_convert.vegalite_to_svg(text, vl_version=VEGA_LITE).strip())
    svg = simpler(svg, set(_told(spec)))
    with suppress(OSError):  # a cache that can't be written costs time and nothing else
        # Two builds may draw the same chart at once.
        recording.write_whole(kept, svg, lasting=False)
    return svg


@cache
def _tools() -> str:
    """All that decides how data is drawn, beside the data."""
    beside = ("judge/rows.py", "figures/tables.py", "table/units.py", "figures/fonts.conf")
    drawn_by = sorted(Path(__file__).parent.glob("*.py")), map(signatures.PACKAGE.joinpath, beside)
    sources = [file.read_bytes() for files in drawn_by for file in files]
    versions = [version("altair"), version("vl-convert-python"), VEGA_LITE]
    return f"{versions} {sha256(b''.join(sources)).hexdigest()}"


def _told(part: Any) -> Iterator[str]:
    """What a specification has its marks tell a reader who points at them."""
    if isinstance(part, dict):
        yield from filter(None, [part.get("hover")])
        part = list(part.values())
    if isinstance(part, list | tuple):
        for each in part:
            yield from _told(each)


def telling(wide: str, narrow: str) -> tuple[str, str]:
    """Both pictures, whose marks say what they tell: on a desk in a title, which a browser shows on
    hover; on a phone by the number of the same text there, so that it stands on the page once."""
    texts = dict.fromkeys(_MARK.findall(wide))
    numbers = {text: f' data-m="{at}"' for at, text in enumerate(texts)}
    narrow = _MARK.sub(lambda found: numbers.get(found[1], found[0]), narrow)
    titled = r"<\g<tag>\g<attributes>><title>\g<label></title></\g<tag>>"
    wide, narrow = (_MARK.sub("", _LABELLED.sub(titled, each)) for each in (wide, narrow))
    return wide, narrow


def _picture(showing: Showing, svg: str, kind: str) -> str:
    """One picture with ids of its own on this page."""
    mine = showing.unique("c" + sha256(svg.encode()).hexdigest()[:8])
    for name in set(re.findall(r'\bid="([^"]+)"', svg)):
        used = rf'(\bid="|url\(#|href="#){re.escape(name)}(?=[")])'
        svg = re.sub(used, rf"\g<1>{mine}-{name}", svg)
    return svg.replace("<svg ", f'<svg aria-hidden="true" focusable="false" data-{kind}="" ', 1)


def _shorter(svg: str) -> str:
    """The same picture with coordinates to a hundredth of a pixel, without unused classes, and with
    ids counted from 0: vl-convert counts through all that a process draws, which would make a
    picture depend on those before it. Of text and labels nothing is touched: figures in them have
    their own digits."""
    found = dict.fromkeys(re.findall(r'\bid="([^"]+)"', svg))
    ids = {name: f"{name.rstrip('0123456789')}{at}" for at, name in enumerate(found)}

    def rounded(attribute: re.Match) -> str:
        return _LONG.sub(lambda n: f"{float(n[0]):z.2f}".rstrip("0").rstrip("."), attribute[0])

    svg = re.sub(r' (?:d|transform|x|y|x1|x2|y1|y2|width|height)="[^"]*"', rounded, svg)
    svg = re.sub(r'(\bid="|url\(#|href="#)([^")]+)', lambda at: at[1] + ids.get(at[2], at[2]), svg)
    return re.sub(r' (?:class|pointer-events)="[^"]*"', "", svg)
