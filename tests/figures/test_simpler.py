"""Pictures in fewer bytes: the same to a reader, and to who points at them."""

import re
from xml.etree import ElementTree

import pytest

from anatomy.figures.charts.simpler import HANDED_DOWN, simpler

LINE = '<line transform="translate({},0)" x2="0" y2="5" stroke="var(--a)" stroke-width="1"/>'
DOT = "M4.18,0A4.18,4.18,0,1,1,-4.18,0A4.18,4.18,0,1,1,4.18,0"


def drawn(inside: str, told=()) -> str:
    root = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://x/xlink" version="1.1">'
    found = simpler(f'{root}<g fill="none">{inside}</g></svg>', told)
    ElementTree.fromstring(found)
    return found.removeprefix("<svg>").removesuffix("</svg>")


@pytest.mark.parametrize(
    "nothing",
    [
        '<path d="M0,0h0v0h0Z" stroke="red"/>',
        '<path d="M0,0h620v320h-620Z"/>',
        '<path d="" display="none"/>',
        '<text fill="red"></text>',
        '<text fill="red" opacity="0">overlaps</text>',
        "<g><g transform='translate(3,4)'></g></g>",
    ],
)
def test_what_draws_nothing_goes(nothing):
    kept = '<circle r="2" fill="red"/>'
    assert drawn(nothing + kept) == drawn(kept) != ""


@pytest.mark.parametrize(
    "seen",
    [
        '<rect width="5" height="5" fill="transparent" aria-label="told"/>',
        '<g stroke="red"><path d="M0,1h5"/></g>',
        '<text fill="red">a</text>',
        '<clipPath id="c"><path d="M0,0h0"/></clipPath>',
    ],
)
def test_what_is_seen_or_pointed_at_stays(seen):
    assert re.search(r"<(rect|path|text|clipPath)", drawn(seen, {"told"}))


def test_only_what_marks_are_to_tell_is_kept_of_the_converters_words():
    words = '<g role="graphics-object" aria-label="X-axis"><rect {} aria-label="value: 1"/></g>'
    kept = drawn(
        words.format('fill="red" width="1"') + '<line x2="3" stroke="r" aria-label="a"/>', {"a"}
    )
    assert re.findall(r'(?:aria|role)[\w-]*="[^"]*"', kept) == ['aria-label="a"']


def test_lines_of_one_look_are_one_path_and_others_are_not():
    assert drawn(LINE.format(1) + LINE.format(2)).count("M") == 2
    assert "<line" not in drawn(LINE.format(1) + LINE.format(2))
    for apart in (' opacity="0.5"', ' aria-label="told"', ' stroke-dasharray="2"'):
        two = "".join(LINE.format(x).replace("/>", f"{apart}/>") for x in (1, 2))
        assert drawn(two, {"told"}).count("<line") == 2, apart


def test_groups_within_groups_keep_their_place():
    lines = '<path d="M0,0h1" stroke="r"/><path d="M0,9h1" stroke="s"/>'
    inner = f'<g><g transform="translate(3,4.5)">{lines}</g></g>'
    assert 'transform="translate(4,6.5)"' in drawn(f'<g transform="translate(1,2)">{inner}</g>')
    turned = drawn(f'<g transform="rotate(9)">{inner}</g>')
    assert "rotate(9)" in turned and "translate(3,4.5)" in turned


def test_a_text_has_its_place_and_its_lines_have_theirs_within_it():
    place = 'transform="translate(7,8.5)" fill="r"'
    assert 'x="7" y="8.5"' in drawn(f"<text {place}>a</text>")
    lines = f'<text {place}><tspan x="0">a</tspan><tspan x="0" dy="12">b</tspan></text>'
    assert 'transform="translate(7,8.5)"' in drawn(lines) and drawn(lines).count('x="0"') == 2


def test_a_circle_is_one_and_an_ellipse_or_a_part_of_one_is_not():
    found = drawn(f'<path transform="translate(7,8.5)" d="{DOT}" fill="red"/>')
    assert found == '<g fill="none"><circle fill="red" cx="7" cy="8.5" r="4.18"/></g>'
    assert "<circle" not in drawn(
        f'<path d="{DOT.replace("A4.18,4.18", "A4.18,2", 1)}" fill="red"/>'
    )
    assert "<circle" not in drawn(
        f'<path d="{DOT.replace("0,1,1,4.18,0", "0,1,1,3,0")}" fill="red"/>'
    )


def looks(svg: str) -> list[dict[str, str]]:
    """Of each mark what it is drawn with, its groups' attributes included."""
    found = []

    def read(part, above):
        own = above | {name: part.get(name) for name in HANDED_DOWN if part.get(name)}
        found.extend([own] if part.tag not in ("svg", "g") else [])
        for each in part:
            read(each, own)

    read(ElementTree.fromstring(svg), {})
    return found


def test_marks_look_as_before_whoever_says_it():
    texts = "".join(
        f'<text x="{x}" fill="a" font-size="{11 + (x > 5)}">{x}</text>' for x in range(9)
    )
    inside = f'{texts}<g>{texts.replace("fill=", "stroke=")}</g><path d="M1,1h1" stroke="b"/>'
    plain = f'<svg><g fill="none">{inside}</g></svg>'
    small = simpler(plain, ())
    assert looks(small) == looks(plain)
    assert len(small) < 0.8 * len(plain)
