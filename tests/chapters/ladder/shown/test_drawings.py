"""What the ladder's pages draw: the climb, one layer's kernels, the lanes, and recipes of FP8."""

import html
import re

import pytest

from anatomy.chapters.ladder.shown import casts, climbs, lanes, layers, rungs
from anatomy.chapters.ladder.shown.ladders import SHOWN, ladder
from anatomy.figures.charts.svg import WIDTHS
from anatomy.figures.diagrams import canvas
from anatomy.record.showing import using
from anatomy.table import units
from tests.chapters.ladder import ladder_rows
from tests.fakes import synthetic

CLIMBED = {"width": 1024, "layers": 2}
OTHERS = ("5 fp8", "4 delayed in a graph", "1 tf32")
DRAWINGS = {
    "climb": (lambda *ways, **how: ladder("climb", variants=ways, **how), SHOWN),
    "layer": (layers.layer, ("0 fp32", "1 amp bf16", "2 amp bf16", "3 default", "5 fp8")),
    "lanes": (lanes.lanes, ("3 default", "4 current")),
    "casts": (casts.casts, ("4 current", "4 delayed")),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    ladder_rows.training(folder)
    synthetic.MAKERS["limits.ceilings"](folder)
    return folder


def rows_of(root) -> dict:
    with using(synthetic.showing(root=root)) as showing:
        found = showing.find("ladder.training", **CLIMBED)
    return {row["variant"]: row for row in rungs.of(found.recording.rows)}


def drawn(root, name: str, *ways: str) -> str:
    draw, default = DRAWINGS[name]
    there = rows_of(root)
    asked = [way for way in (ways or default) if way in there]
    with using(synthetic.showing(root=root)):
        return draw(*asked, **CLIMBED)


def sheets(figure: str) -> dict[float, str]:
    """The two pictures by their widths."""
    found = re.findall(r"<svg [^>]*?width=\"(\d+)\".*?</svg>", figure, re.S)
    pictures = re.findall(r"<svg .*?</svg>", figure, re.S)
    return dict(zip(map(float, found), pictures, strict=True))


@pytest.mark.parametrize("name", DRAWINGS)
def test_each_is_drawn_for_a_desk_and_a_phone_inside_its_sheet(root, name):
    pictures = sheets(drawn(root, name))
    assert sorted(pictures) == sorted(map(float, WIDTHS.values()))
    for width, picture in pictures.items():
        height = float(re.search(r'height="(\d+)"', picture)[1])
        assert "nan" not in picture.lower()
        for attributes, words in re.findall(r"<text ([^>]*)>([^<]*)</text>", picture):
            at = dict(re.findall(r'([\w-]+)="([^"]*)"', attributes))
            x, y, size = (float(at[name]) for name in ("x", "y", "font-size"))
            wide = canvas.wide(html.unescape(words), size)
            left = x - wide * {"end": 1, "middle": 0.5}.get(at.get("text-anchor"), 0)
            assert left >= -1 and left + wide <= width + 6 and 0 < y <= height + 1, words
            assert size >= 10, "letters that a phone can show"
        for x, wide in re.findall(r'<rect x="([-\d.]+)" y="[-\d.]+" width="([\d.]+)"', picture):
            assert float(x) >= -12 and float(x) + float(wide) <= width + 1


@pytest.mark.parametrize("name", DRAWINGS)
def test_colours_are_the_stylesheets_and_a_reader_is_told_the_figures(root, name):
    picture = drawn(root, name)
    colours = set(re.findall(r'fill="([^"]+)"', picture))
    assert all(colour == "none" or colour.startswith("var(") for colour in colours)
    assert re.search(r'role="img" aria-label="[^"]*\d', picture)


def test_the_climb_says_each_time_and_how_it_compares_with_the_rung_it_changes(root):
    picture = drawn(root, "climb", "0 fp32", "1 amp bf16", "3 default", "4 bf16")
    there = rows_of(root)
    label = re.search(r'aria-label="([^"]+)"', picture)[1]
    for way in ("0 fp32", "1 amp bf16", "3 default"):
        assert rungs.in_words(there[way]) in label
        assert units.significant(there[way]["median_s"] * 1e3, 2) in picture
    assert "slower" in label and "faster" in label
    assert "bf16 autocast" in label and "over 0;" in label and "bound, over 2;" in label
    graph = drawn(root, "climb", "3 reduce-overhead", "5 bf16")
    assert "over 3 in a graph" in graph and re.search(r">\d+% bf16</text>", graph)
    assert "% of" in picture and "log scale" in picture


def test_the_climbs_limit_is_that_of_the_best_matmul_of_the_run(root):
    with using(synthetic.showing(root=root)) as showing:
        found = showing.find("ladder.training", **CLIMBED).recording.rows
    row = next(row for row in found if row.get("variant") == "5 bf16")
    best = max(
        each["flops"] / each["median_s"]
        for each in found
        if each["op"] == "ceiling bf16" and rungs.measured(each)
    )
    least = rungs.fastest_possible(row, found, None)
    assert least == pytest.approx(row["flops"] / best) and least < row["median_s"]
    assert rungs.fastest_possible(row, [], None) is None


def test_from_the_limit_to_the_step_nothing_is_left_out(root):
    with using(synthetic.showing(root=root)) as showing:
        found = showing.find("ladder.training", **CLIMBED).recording.rows
        shown = ladder("limit", variants=["5 bf16"], **CLIMBED)
    row = rows_of(root)["5 bf16"]
    parts = dict(rungs.over_the_limit(row, found, None))
    assert sum(parts.values()) == pytest.approx(row["median_s"])
    assert parts["the limit"] == rungs.fastest_possible(row, found, None)
    assert all(kind in shown for kind in parts)
    assert not rungs.over_the_limit(row | {"product_s": None}, found, None)


def test_the_climb_draws_the_interval_of_a_time_only_where_it_is_wider_than_its_mark():
    def draw(low: float, high: float) -> str:
        step = climbs.Step("3", "way", 4.7, low, high, "4.7", None, "", "", "", "")
        first = step._replace(time=34.0, low=33.9, high=34.1, text="34")
        return canvas.both(
            lambda sheet: climbs._draw(sheet, [first, step], {}, "ms", "one step"), "label"
        )

    assert climbs.INTERVAL in html.unescape(draw(2.7, 7.7))
    assert "ms of one step" in draw(2.7, 7.7)
    assert climbs.INTERVAL not in html.unescape(draw(4.69, 4.71))
    # One in the key and one in the plot, each a line with two ends, on a desk and on a phone.
    assert draw(2.7, 7.7).count("<polyline") - draw(4.69, 4.71).count("<polyline") >= 12


def test_an_axis_is_logarithmic():
    axis = climbs.Axis(left=0, right=100, low=1, high=100)
    assert [axis.at(time) for time in (1, 10, 100)] == pytest.approx([0, 50, 100])


def test_a_rung_changes_in_its_drawing_what_it_says_to_change():
    def words(way: str) -> list[str]:
        halves = layers.halves({"variant": way})
        return [kernel.words for half in halves for kernel in half]

    assert "softmax" in words("1 amp bf16") and "softmax" not in words("2 amp bf16")
    assert "SDPA" in words("2 amp bf16") and "+ norm" in words("3 default")
    formats = {
        way: {k.bits for half in layers.halves({"variant": way}) for k in half if k.bits}
        for way in ("0 fp32", "1 tf32", "3 default", "4 current", "5 bf16", "5 fp8 delayed")
    }
    eight = {"FP8", "bf16"}  # attention stays in 16 bits
    assert [*formats.values()] == [{"fp32"}, {"TF32"}, {"bf16"}, eight, {"bf16"}, eight]
    graphs = ("3 reduce-overhead", "4 current in a graph", "5 bf16")
    assert all(rungs.as_graph({"variant": way}) for way in graphs)
    others = ("3 default", "4 current", "5 bf16 without a graph")
    assert not any(rungs.as_graph({"variant": way}) for way in others)


def test_a_layers_boxes_are_equally_wide_and_hold_their_words(root):
    for picture in sheets(drawn(root, "layer", "1 amp bf16", "5 bf16")).values():
        high = f'height="{layers.HEIGHT:g}"'
        boxes = [tag for tag in re.findall(r"<rect [^>]*>", picture) if high in tag]
        wide = [float(re.search(r' width="([\d.]+)"', tag)[1]) for tag in boxes]
        cell, beside = max(wide), layers.SLIVER + layers.GAP
        assert wide.count(layers.SLIVER) == 4, "the casts of one way's four matmuls"
        assert {*wide} == {cell, round(cell - beside, 2), layers.SLIVER}
        for kernel in (k for way in ("1", "5") for half in layers.LAYERS[way] for k in half):
            assert canvas.wide(kernel.words) < cell - beside * kernel.cast


def test_the_bars_under_a_layers_boxes_are_the_times_on_one_scale(root):
    ways = ("0 fp32", "1 amp bf16")
    there = rows_of(root)
    for picture in sheets(drawn(root, "layer", *ways)).values():
        high = f'height="{layers.BAR:g}"'
        bars = [tag for tag in re.findall(r"<rect [^>]*>", picture) if high in tag]
        wide = [float(re.search(r' width="([\d.]+)"', tag)[1]) for tag in bars]
        seconds = [each for way in ways for _, each in rungs.pieces(there[way])]
        assert len(wide) == len(seconds)
        scale = sum(wide) / sum(seconds)
        assert wide == pytest.approx([scale * each for each in seconds], abs=0.2)
        kinds = [kind for way in ways for kind, _ in rungs.pieces(there[way])]
        longest = kinds[wide.index(max(wide))]
        assert re.search(rf"<text [^>]*>{longest} [\d.]+ ", picture), "the piece is named"


def test_every_way_of_the_ladder_has_words_and_a_layer(root):
    for way, row in rows_of(root).items():
        assert rungs.in_words(row) != way and layers.halves(row), way
    assert rungs.in_words({"variant": "6 new"}) == "6 new"


def test_lanes_are_as_long_as_host_and_gpu_work(root):
    picture = drawn(root, "lanes")
    for way in ("3 default", "4 current"):
        row = rows_of(root)[way]
        assert f"kernels run for {units.seconds(row['busy_s'], most=3)}" in picture


def test_only_current_scaling_reads_a_tensor_twice():
    reads = {
        recipe: sum(stage.reads for stage in casts.stages({"variant": f"4 {recipe}"}))
        for recipe in ("current", "delayed", "block")
    }
    assert reads == {"current": 2, "delayed": 1, "block": 1}


def test_every_piece_of_a_step_is_named_beside_its_colour_however_short(root):
    way = "3 reduce-overhead"
    row = rows_of(root)[way]
    pieces = [(k, s) for k, s in rungs.pieces(row) if s > 0.01 * row["median_s"]]
    for picture in sheets(drawn(root, "layer", way)).values():
        words = html.unescape(picture)
        for kind, seconds in pieces:
            assert f">{kind} {units.seconds(seconds, most=3)}</text>" in words


def test_a_key_takes_as_many_lines_as_its_sheet_needs():
    marks = {f"what colour {n} is": canvas.GOOD for n in range(5)}
    for width, lines in ((680, 1), (330, 3)):
        sheet = canvas.Canvas(width)
        _, last = sheet.key(12, marks)
        assert last == 12 + 18 * (lines - 1)


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0.99e-3, 1.44e-3, "1.05"), (0.5e-3, 2.4e-3, "1.0"), (1.046e-3, 1.05e-3, "1.05")],
)
def test_a_time_is_not_rounded_past_its_neighbour_unless_it_is_hardly_known(low, high, said):
    row = {"median_s": 1.047e-3, "low_s": low, "high_s": high}
    assert climbs.digits(row, 1e-3) == said
