"""Time against a count: who beats whom, the line of those that nothing beats, and the picture."""

import json
import random
import re
from itertools import combinations

import pytest

from anatomy import page
from anatomy.figures.charts import labels, svg, tradeoffs
from anatomy.figures.tradeoffs import dominance
from anatomy.figures.tradeoffs.breakeven import Wanted
from anatomy.figures.tradeoffs.dominance import NO, OPEN, YES
from anatomy.record import recording
from anatomy.record.showing import Showing, using
from anatomy.table.errors import AnatomyError, BadParameter, UnknownName
from tests.fakes import synthetic
from tests.site.test_page import Balance, stale, text

NAME = "checkpointing.frontier"
DEEP = "train C=2048 L=8 T=8x1024"
ONE = {"op": DEEP}
BY_DEPTH = {"series": "depth", "where": {"width": 2048, "tokens": 8192}}
CALLS = [
    ONE,
    ONE | {"x": "total_peak_bytes", "caption": "See `x`.", "quantity": "step_wall"},
    ONE | {"variants": ["selective", "segments"]},
    BY_DEPTH,
    BY_DEPTH | {"variants": ["every layer", "selective"]},
    {"series": "width", "where": {"depth": 4, "tokens": 8192}, "x": "reserved_bytes"},
]
IDS = [" ".join(map(str, options.values())) for options in CALLS]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    synthetic.MAKERS[NAME](folder)
    return folder


def rows_of(root) -> list[dict]:
    (file,) = (root / synthetic.MACHINE / NAME).glob("*.json")
    return json.loads(file.read_text())["rows"]


def changed(root, into, change):
    """The recording with a change made to each row of the deepest cell."""
    (file,) = (root / synthetic.MACHINE / NAME).glob("*.json")
    data = json.loads(file.read_text())
    for row in data["rows"]:
        if row["op"] == DEEP:
            change(row)
    recording.save(data, into)
    return into


def of(root) -> Showing:
    return synthetic.showing(root=root)


def call(showing: Showing, **options) -> str:
    with using(showing):
        return page.frontier(NAME, **options)


def wanted(**changes) -> Wanted:
    usual = dict.fromkeys(("where", "series", "variants", "quantity", "op"))
    return Wanted(**usual | {"x": "peak_bytes"} | changes)


def drawn(root, monkeypatch, **options) -> tuple:
    """What is given to the chart."""
    found = []

    def keep(panels, label):
        found.extend(drawing.arguments for _, drawing in panels)
        return json.dumps([[list(d.arguments) for _, d in panels], label])

    monkeypatch.setattr("anatomy.figures.tradeoffs.frontiers.svg.chart", keep)
    call(of(root), **options)
    (arguments,) = found
    return arguments


@pytest.mark.parametrize("options", CALLS, ids=IDS)
def test_a_figure_is_balanced_named_and_has_its_provenance_and_a_table(root, options):
    html = call(of(root), **options)
    Balance(html)
    told = text(html)
    assert "Toy GPU" in told and 'href="#from-' in html
    assert "None" not in told and "nan" not in told.lower()
    assert re.search(r'<div class="chart" role="img" aria-label="[^"]{40,}"', html)
    assert 'data-wide=""' in html and 'data-narrow=""' in html
    assert '<details class="twin">' in html and "on the frontier" in told
    assert "down: faster" in told and "from left to right" in told
    colours = set(re.findall(r'(?:fill|stroke)="([^"]+)"', html))
    assert {c for c in colours if not c.startswith("var(--chart-")} <= {"none", "transparent"}


@pytest.mark.parametrize("options", CALLS, ids=IDS)
def test_while_collecting_the_recording_is_noted_and_nothing_shown(options):
    collecting = Showing(root=None, machine="", page="a.md", line=7, collecting=True)
    assert call(collecting, **options) == ""
    assert [(asked.name, asked.place) for asked in collecting.asked] == [(NAME, "a.md:7")]


def test_without_a_recording_there_is_a_gap_and_of_one_not_current_a_badge(root, tmp_path):
    assert f"pytorch-gpu-anatomy record {NAME}" in call(of(tmp_path), **ONE)
    html = call(stale(of(root), NAME), **ONE)
    assert 'class="notice badge"' in html and "selective" in html
    lacks = call(stale(of(root), NAME), **ONE | {"x": "came_later"})
    assert 'class="notice badge"' in lacks and "<table" not in lacks


def test_the_frontier_is_that_of_the_cost_model(root):
    (found,) = dominance.points(rows_of(root), wanted(op=DEEP)).values()
    by_name = {point.variant: point for point in found}
    assert found[0].variant == "none", "the control is first"
    assert (found[0].count.value, found[0].time.value) == (1.0, 1.0)
    assert [point.variant for point in dominance.line(found)][::2] == ["every layer", "selective"]
    standing = {name: point.standing for name, point in by_name.items()}
    assert standing["none"] == YES and by_name["none"] in dominance.line(found)
    # They need the same and are drawn from one time, so that noise alone tells them apart.
    assert {standing["first half"], standing["every second layer"]} == {YES, OPEN}
    beaten = [name for name, each in standing.items() if each == NO]
    assert beaten == ["halves of a layer", "segments", "whole model"]
    assert by_name["halves of a layer"].beaten_by == ("every layer",)
    assert "none" in by_name["whole model"].beaten_by


def test_each_series_has_its_own_control_and_frontier(root):
    found = dominance.points(rows_of(root), wanted(**BY_DEPTH))
    assert list(found) == [2, 4, 8]
    for depth, points in found.items():
        assert {p.row["depth"] for p in points} == {depth} and len(points) == 8
        assert points[0].row["role"] == "control"


def place(name: str, count: float, factor: float, noise: float = 0.001):
    """A point whose time varies by so much from block to block, each variant by itself."""
    draw = random.Random(name)
    drift = random.Random("drift")
    blocks = [(1 + 0.1 * drift.random()) * factor * (1 + noise * draw.gauss(0, 1))
              for _ in range(24)]  # fmt: skip
    row = {"variant": name, "blocks_s": blocks, "noise_floor": 0.002, "run_blocks": [8, 8, 8]}
    shown = [dominance.Cell(name, "op", None, row, None, *figures, "")
             for figures in ((factor, 0.99 * factor, 1.01 * factor, "slower"),
                             (count, count, count, "less"))]  # fmt: skip
    return dominance.Point(*shown)


def standings(*several) -> dict[str, str]:
    return {point.variant: point.standing for point in dominance._standing(several)}


def test_who_needs_no_more_and_is_shown_to_be_faster_beats():
    assert standings(place("a", 0.5, 1.2), place("b", 0.6, 1.3)) == {"a": YES, "b": NO}
    assert standings(place("a", 0.5, 1.2), place("b", 0.5, 1.3)) == {"a": YES, "b": NO}
    assert standings(place("a", 0.5, 1.3), place("b", 0.6, 1.2)) == {"a": YES, "b": YES}


def test_who_needs_less_in_the_same_time_beats_and_of_equals_none():
    a, b = place("a", 0.5, 1.2), place("b", 0.6, 1.2)
    assert dominance._faster(a, b) == "same"
    assert standings(a, b) == {"a": YES, "b": NO}
    assert NO not in standings(place("a", 0.5, 1.2), place("b", 0.5, 1.2)).values()


def test_what_is_within_the_noise_beats_nobody_and_is_not_called_beaten():
    loud = place("a", 0.5, 1.20, noise=0.2), place("b", 0.6, 1.21, noise=0.2)
    assert dominance._faster(*loud) == "undecided"
    assert standings(*loud) == {"a": YES, "b": OPEN}
    assert [p.variant for p in dominance.line(dominance._standing(loud))] == ["a"]


def test_without_blocks_only_intervals_that_lie_apart_decide():
    a, b, c = place("a", 0.5, 1.2), place("b", 0.6, 1.21), place("c", 0.6, 1.4)
    for point in (a, b, c):
        del point.row["blocks_s"]
    assert standings(a, b, c) == {"a": YES, "b": OPEN, "c": NO}


def test_the_control_can_be_beaten(root, tmp_path):
    def twice_as_fast(row):
        if row["variant"] == "selective":
            row["blocks_s"] = [each / 2 for each in row["blocks_s"]]
            row |= {name: row[name] / 2 for name in ("ratio", "ratio_low", "ratio_high")}
            row["verdict"] = "faster"

    table = rows_of(changed(root, tmp_path, twice_as_fast))
    (found,) = dominance.points(table, wanted(op=DEEP)).values()
    control = found[0]
    assert control.standing == NO and control.beaten_by == ("selective",)
    assert [p.variant for p in dominance.line(found)][-1] == "selective"


def test_what_has_no_time_or_no_count_is_said_in_the_table_and_not_drawn(
    root, tmp_path, monkeypatch
):
    def lost(row):
        if row["variant"] == "segments":
            row |= dict.fromkeys(("median_s", "ratio", "verdict", "blocks_s"))
            row["note"] = "it does not fit"
        if row["variant"] == "selective":
            row["peak_bytes"] = None

    changed(root, tmp_path, lost)
    told = text(call(of(tmp_path), **ONE))
    assert "it does not fit" in told and "not counted" in told
    points = drawn(tmp_path, monkeypatch, **ONE)[0]
    assert {"segments", "selective"}.isdisjoint(point["name"] for point in points)


def test_where_nothing_was_counted_there_is_a_table_alone(root, tmp_path):
    changed(root, tmp_path, lambda row: row.update(peak_bytes=None))
    html = call(of(tmp_path), **ONE)
    Balance(html)
    assert "<table" in html and "<svg" not in html and "not counted" in text(html)


def test_the_table_has_both_ratios_the_verdict_and_who_beats(root):
    html = call(of(root), **ONE)
    assert html.count("<tr>") == 1 + 8
    row = next(r for r in rows_of(root) if r["op"] == DEEP and r["variant"] == "segments")
    line = next(line for line in html.split("<tr>") if ">segments<" in line and "<td" in line)
    told = text(line)
    assert f"{row['memory_ratio']:.3f}" in told and "▲ slower" in told
    assert f"[{row['ratio_low']:.3f}" in line or f"[{row['ratio_low']:.4f}" in line
    assert "no: beaten by every layer" in told


def test_the_line_falls_and_what_is_beaten_is_hollow(root, monkeypatch):
    points, steps, floor, titles, series, names = drawn(root, monkeypatch, **ONE)
    assert [s["x"] for s in steps] == sorted(s["x"] for s in steps)
    assert [s["value"] for s in steps] == sorted((s["value"] for s in steps), reverse=True)
    hollow = {p["name"] for p in points if p["beaten"]}
    assert hollow == {"halves of a layer", "segments", "whole model"}
    assert 0 < floor < 0.01 and series == [""] and names
    assert titles[0].startswith("peak memory / control") and "95% interval" in titles[1]


def test_what_a_count_expects_is_drawn_for_all_but_the_control(root, monkeypatch):
    counted = {row["variant"]: row["product_ratio"] for row in rows_of(root) if row["op"] == DEEP}
    marks, *_ = drawn(root, monkeypatch, **ONE, expected="product_ratio")
    for mark in marks:
        wanted = None if mark["control"] else pytest.approx(counted[mark["name"]])
        assert mark.get("expected") == wanted
    assert not any("expected" in mark for mark in drawn(root, monkeypatch, **ONE)[0])


def test_the_control_is_drawn_once_for_all_series(root, monkeypatch):
    points, _, _, _, series, names = drawn(root, monkeypatch, **BY_DEPTH)
    assert [p["name"] for p in points if p["control"]] == ["none, the control"]
    assert series == ["depth 2", "depth 4", "depth 8"] and len(points) == 3 * 7 + 1
    assert not names, "more marks than have room for their names"


def test_marks_without_room_for_names_have_numbers_that_a_list_explains(root):
    many, few = call(of(root), **BY_DEPTH), call(of(root), **ONE)
    assert 'class="key numbered"' in many and 'class="key numbered narrow"' in few
    assert "1 every layer" in text(many) and "7 selective" in text(many)
    wide = re.search(r"<svg[^>]*data-wide.*?</svg>", few, re.DOTALL)[0]
    narrow = re.search(r"<svg[^>]*data-narrow.*?</svg>", few, re.DOTALL)[0]
    assert "halves of a layer</text>" in wide and "halves of a layer</text>" not in narrow
    assert ">7</text>" in narrow


def test_series_with_one_frontier_are_told_together(root):
    told = text(call(of(root), **BY_DEPTH | {"variants": ["every layer", "selective"]}))
    assert "Depth 2, 4, 8: on the frontier, from left to right: every layer" in told


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({}, BadParameter, "one comparison unless series="),
        ({"series": "width"}, BadParameter, "there must be one"),
        (ONE | {"x": "median_s"}, BadParameter, "has an interval"),
        (ONE | {"x": "ratio"}, BadParameter, "has an interval"),
        (ONE | {"x": "peak_byte"}, UnknownName, "Did you mean 'peak_bytes'"),
        (ONE | {"series": "dept"}, UnknownName, "Did you mean 'depth'"),
        (ONE | {"variants": ["selectiv"]}, UnknownName, "Did you mean 'selective'"),
        (ONE | {"variants": ["none"]}, BadParameter, "is compared with a control"),
        ({"op": "train"}, UnknownName, "no op 'train'"),
        (ONE | {"quantity": "gpu_warm"}, UnknownName, "no quantity 'gpu_warm'"),
        (ONE | {"where": {"depth": 5}}, UnknownName, "no depth '5'"),
        (ONE | {"size": 3}, UnknownName, "called 'size'"),
    ],
)
def test_a_wrong_name_is_an_error_that_says_what_there_is(root, options, error, says):
    with pytest.raises(error) as raised:
        call(of(root), **options)
    assert isinstance(raised.value, AnatomyError) and says in str(raised.value)


def test_variants_of_several_controls_are_refused(root, tmp_path):
    def other(row):
        if row["variant"] == "selective":
            row["control"] = "every layer"

    changed(root, tmp_path, other)
    with pytest.raises(BadParameter, match="variants of one control, and these have"):
        call(of(tmp_path), **ONE)


@pytest.mark.parametrize("low", [0.0, 0.1, 0.3, 1.0])
def test_an_axis_is_logarithmic_where_its_ends_are_far_apart(low):
    scale = tradeoffs.scale([low, 1.0], 600)
    assert scale.logarithmic == (low == 0.1)
    for value in (low, 0.7, 1.0):
        assert 0 <= scale.at(value) <= 600 or value < low
        assert scale.value(scale.at(value)) == pytest.approx(value)


@pytest.mark.parametrize("width", [680, 330])
@pytest.mark.parametrize("options", [ONE, BY_DEPTH], ids=["one", "by depth"])
def test_a_picture_is_no_wider_than_asked(root, monkeypatch, tmp_path, options, width):
    arguments = drawn(root, monkeypatch, **options)
    picture = svg.picture(svg.Drawing("tradeoffs.frontier", arguments), width, tmp_path)
    assert width - 30 < float(re.search(r'width="([\d.]+)"', picture)[1]) <= width


def test_marks_on_top_of_each_other_share_a_line_of_names():
    plane = tradeoffs.Plane(*(tradeoffs.scale([1.0, 2.0], pixels) for pixels in (600, 300)))
    point = {"low": 1.4, "high": 1.6, "control": False, "number": ""}
    places = {"a": (1.5, 1.5), "b": (1.5, 1.51), "c": (1.8, 1.5)}
    points = [point | {"name": name, "x": x, "value": y} for name, (x, y) in places.items()]
    named = tradeoffs._named(points, [], plane, names=True)
    assert [label.text for label in named] == ["a, b", "c"]


def test_a_point_on_its_own_is_drawn():
    point = {"series": "", "x": 1.0, "value": 1.0, "low": 1.0, "high": 1.0, "name": "a"}
    point |= {"number": "", "control": True, "beaten": False, "hover": ""}
    step = [{"series": "", "x": 1.0, "value": 1.0}]
    assert tradeoffs.frontier([point], step, 0.0, ("x", "y"), [""], True, width=680)["layer"]


@pytest.mark.parametrize("seed", range(12))
def test_no_name_covers_another_or_a_mark_or_leaves_the_plot(seed):
    draw = random.Random(seed)
    size = (600.0, 330.0)
    names = ["every layer", "first half", "halves of a layer", "segments", "every second layer",
             "whole model", "selective", "none, the control"]  # fmt: skip
    # Some far apart and some in a heap.
    marks = [(draw.uniform(20, 580) if at % 2 else draw.gauss(300, 25),
              draw.uniform(20, 310) if at % 2 else draw.gauss(150, 20), name)
             for at, name in enumerate(names)]  # fmt: skip
    found = labels.placed(marks, [], [], size)
    assert [label.text for label in found] == names
    for one, other in combinations(found, 2):
        assert one.box.covers(other.box) == 0
        left, right = sorted((one.box, other.box), key=lambda box: box.left)
        beside = min(left.bottom, right.bottom) > max(left.top, right.top)
        assert not beside or right.left - left.right >= labels.APART, "two names read as one"
    for label in found:
        assert label.box.left >= 0 and label.box.right <= size[0]
        assert label.box.top >= 0 and label.box.bottom <= size[1]
        assert not any(label.box.covers(labels.around(x, y)) for x, y, _ in marks)


def test_a_name_far_from_its_mark_has_a_leader_line_and_a_near_one_none():
    walls = [labels.Box(100 - 60, 100 - 30, 100 + 60, 100 + 30)]
    (far,) = labels.placed([(100.0, 100.0, "a")], walls, [], (300, 300))
    (near,) = labels.placed([(100.0, 100.0, "a")], [], [], (300, 300))
    assert far.leader and near.leader is None and near.align == "left"
    assert walls[0].covers(far.box) == 0


def test_a_box_is_crossed_by_what_passes_through_it_alone():
    box = labels.Box(10, 10, 20, 20)
    assert box.crossed((0, 15, 30, 15)) and box.crossed((12, 0, 12, 30))
    assert box.crossed((0, 0, 30, 30)) and not box.crossed((0, 25, 30, 25))
    assert not box.crossed((0, 15, 5, 15)) and not box.crossed((0, 22, 22, 44))
