"""The same picture in fewer bytes: a page holds many, and what the converter writes is wordy.

What draws nothing goes, groups that only nest go, and what all children of a group have in common
is said once, by the group. Nothing that a reader sees, or points at, is touched.
"""

import re
from collections.abc import Collection, Iterator
from itertools import groupby
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

# Attributes that are as if they were not there.
IDLE = {
    **{"opacity": "1", "fill-opacity": "1", "stroke-opacity": "1", "stroke-width": "1"},
    **{"font-weight": "normal", "font-style": "normal", "x2": "0", "y2": "0", "version": "1.1"},
    **{"transform": "translate(0,0)"},
}
# Attributes that children take from their group.
HANDED_DOWN = (
    *("fill", "stroke", "stroke-width", "fill-opacity", "stroke-opacity", "stroke-dasharray"),
    *("stroke-linecap", "text-anchor", "font-family", "font-size", "font-weight", "font-style"),
)
MARKS = ("path", "rect", "line", "circle")
FEW = 3  # neighbours of one look from which a group of their own pays
LABEL = "aria-label"  # of a mark: what a reader is told who points at it
NUMBER = r"(-?[\d.]+)"
_SHIFT = re.compile(rf"translate\({NUMBER},{NUMBER}\)")
# How the converter draws a circle around 0.
_CIRCLE = re.compile(rf"M{NUMBER},0A{NUMBER},{NUMBER},0,1,1,-{NUMBER},0A.*,0,1,1,{NUMBER},0Z?")


def simpler(svg: str, told: Collection[str]) -> str:
    """The same picture, without the namespaces that a page's markup does not need. Of the labels
    of marks only those that are to be `told` stay: the converter gives others words of its own."""
    root = ElementTree.fromstring(re.sub(r' xmlns(?::\w+)?="[^"]*"', "", svg))
    for part in root.iterfind(".//*"):
        for name in [name for name in part.attrib if name == "role" or name.startswith("aria-")]:
            if part.tag not in MARKS or name != LABEL or part.get(LABEL) not in told:
                del part.attrib[name]
    _bare(root)
    _settle(root, [each for part in root for each in _kept(part, painted=False)])
    return ElementTree.tostring(root, encoding="unicode").replace(" />", "/>")


def _kept(part: Element, *, painted: bool) -> Iterator[Element]:
    """What is left of an element: itself, its children, or nothing. `painted` is whether what is
    around it gives it a colour."""
    if part.tag in ("defs", "clipPath"):
        yield part
        return
    painted = painted or any(part.get(name, "none") != "none" for name in ("fill", "stroke"))
    _bare(part)
    if part.tag != "g":
        if _drawn(part, painted):
            yield _placed(part)
        return
    _settle(part, [each for child in part for each in _kept(child, painted=painted)])
    if not len(part):
        return
    alone = part[0] if len(part) == 1 and part[0].tag == "g" else None
    if not part.attrib:
        yield from part
    elif alone is not None and set(part.attrib) == {"transform"} and _join(part, alone):
        yield alone
    else:
        yield part


def _drawn(part: Element, painted: bool) -> bool:
    if part.get("display") == "none" or part.get("opacity") == "0":
        return False
    if part.tag == "text":
        return bool("".join(part.itertext()).strip())
    if part.tag == "path" and not re.search(r"[1-9]", part.get("d", "")):
        return False
    return painted or LABEL in part.attrib


def _bare(part: Element) -> None:
    for name, value in IDLE.items():
        if part.get(name) == value:
            del part.attrib[name]


def _placed(part: Element) -> Element:
    """A circle as one, and a text at its place."""
    place = _SHIFT.fullmatch(part.get("transform", ""))
    # Lines of a text have their places within it.
    if part.tag == "text" and place and not len(part) and not {"x", "y"} & part.attrib.keys():
        del part.attrib["transform"]
        part.attrib |= {n: at for n, at in zip("xy", place.groups(), strict=True) if at != "0"}
    round_ = _CIRCLE.fullmatch(part.get("d", "")) if part.tag == "path" else None
    if round_ and len(set(round_.groups())) == 1:
        part.tag = "circle"
        del part.attrib["d"]
        if place:
            del part.attrib["transform"]
            part.attrib |= {"cx": place[1], "cy": place[2]}
        part.set("r", round_[1])
    return part


def _merged(parts: list[Element]) -> list[Element]:
    """Neighbours that are lines of one look, such as those of a grid, as one path."""
    found: list[Element] = []
    for look, some in groupby(parts, _look):
        same = list(some)
        if look is None or len(same) == 1:
            found += same
            continue
        steps = "".join(f"M{_at(line)}l{line.get('x2', 0)},{line.get('y2', 0)}" for line in same)
        found.append(Element("path", dict(look) | {"d": steps}))
    return found


def _look(part: Element) -> tuple[tuple[str, str], ...] | None:
    """A line's attributes beside its place; None of what is not to be merged."""
    named = {LABEL, "opacity", "stroke-opacity", "x1", "y1", "stroke-dasharray"}
    place = part.get("transform", "")
    if part.tag != "line" or named & part.attrib.keys():
        return None
    if place and not _SHIFT.fullmatch(place):
        return None
    beside = sorted(part.attrib.items())
    return tuple((name, value) for name, value in beside if name not in ("transform", "x2", "y2"))


def _at(line: Element) -> str:
    place = _SHIFT.fullmatch(line.get("transform", ""))
    return f"{place[1]},{place[2]}" if place else "0,0"


def _join(outer: Element, inner: Element) -> bool:
    """Whether two shifts, one in the other, became one."""
    one, other = outer.get("transform"), inner.get("transform")
    if other is None:
        inner.set("transform", one)
        return True
    first, second = _SHIFT.fullmatch(one), _SHIFT.fullmatch(other)
    if not first or not second:
        return False
    x, y = (float(first[n]) + float(second[n]) for n in (1, 2))
    inner.set("transform", f"translate({x:.6g},{y:.6g})")
    return True


def _settle(group: Element, parts: list[Element]) -> None:
    """Give a group its children: what all have in common is the group's, and what several beside
    each other have in common that of a group of their own."""
    group[:] = _merged(parts)
    _hand_up(group)
    found: list[Element] = []
    for look, some in groupby(group, lambda part: [part.get(name) for name in HANDED_DOWN]):
        same = list(some)
        if len(same) < FEW or not any(look):
            found += same
            continue
        found.append(Element("g"))
        found[-1].extend(same)
        _hand_up(found[-1])
    group[:] = found


def _hand_up(group: Element) -> None:
    """What all children have in common becomes the group's."""
    if len(group) < 2:
        return
    for name in HANDED_DOWN:
        values = {child.get(name) for child in group if child.tag not in ("defs", "title")}
        if len(values) == 1 and None not in values:
            group.set(name, values.pop())
            for child in group:
                child.attrib.pop(name, None)
