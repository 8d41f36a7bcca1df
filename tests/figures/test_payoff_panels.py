"""Pay-off maps of counts and of several variants: what they say, and how their panels stand."""

import json
import re
from html import unescape

import pytest

from anatomy.figures.charts import svg
from anatomy.figures.tradeoffs import breakeven, payoffs
from anatomy.table import units
from tests.fakes import payoff_rows as made
from tests.fakes import synthetic
from tests.figures.test_payoffs import LINE, MAP, call, of
from tests.site.test_page import Balance, text


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return made.recorded(tmp_path_factory.mktemp("recordings"))


def counted(tmp_path, shares, **options) -> str:
    """What a page says of `compiled`, whose memory is this share of the control's by width."""
    table = made.table()
    for row in table:
        if row.get("peak_bytes") and row["variant"] == "compiled":
            row["peak_bytes"] = int(row["peak_bytes"] * 2 * shares[row["width"]])
    made.recorded(tmp_path, synthetic.as_said(table))
    return text(call("payoff", of(tmp_path), **{"value": "peak_bytes"} | options))


ALONE = {"x": "width", "variant": "compiled", "where": {"tokens": 1024}}
EVERY = "256, 512, 1024, 2048, 4096"


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ((0.5,) * 5, f"compiled needs less at every width counted ({EVERY})."),
        ((2.0,) * 5, f"compiled needs more at every width counted ({EVERY})."),
        ((1.0,) * 5, f"compiled needs the same at every width counted ({EVERY})."),
        (
            (0.5, 0.5, 1.0, 1.0, 1.0),
            "compiled needs less at width 256, 512; the same at width 1024, 2048, 4096.",
        ),
        (
            (0.5, 0.5, 0.5, 2.0, 2.0),
            "needs as much as the control at width ≈ 1400, between 1024 (less) and 2048 (more).",
        ),
    ],
)
def test_a_count_needs_less_or_more_and_is_never_shown_to_pay(tmp_path, shares, said):
    told = counted(tmp_path, dict(zip(made.WIDTHS, shares, strict=True)), **ALONE)
    assert said in told
    for wrong in ("shown to", "pay", "breaks even", "break-even", "lose", "difference"):
        assert wrong not in told.partition("Table")[0], wrong


def test_the_key_of_a_map_of_counts_speaks_of_counts(tmp_path):
    mixed = dict(zip(made.WIDTHS, (0.5, 0.5, 1.0, 2.0, 2.0), strict=True))
    told = counted(tmp_path, mixed, **MAP).partition("Table")[0]
    for part in ("▼ less than the control", "= same as the control", "▲ more than the control"):
        assert part in told
    assert "needs less on one side only" in told and "– not counted; the table says why" in told
    for wrong in ("shown to", "pays", "break-even", "loses", "costs"):
        assert wrong not in told, wrong
    told = counted(tmp_path, dict.fromkeys(made.WIDTHS, 0.5), **MAP)
    assert "needs less in every cell counted" in told
    told = counted(tmp_path, dict.fromkeys(made.WIDTHS, 2.0), **MAP)
    assert "needs less in no cell counted" in told


def test_the_key_of_speed_ups_says_which_side_of_one_pays(root):
    speed = text(call("payoff", of(root), **MAP | {"value": "speedup"}))
    assert "▼ faster (above 1) pays" in speed and "▲ slower (below 1) loses" in speed
    assert "break-even: shown to be faster on one side only" in speed
    ratio = text(call("payoff", of(root), **MAP))
    assert "▼ faster pays" in ratio and "above 1" not in ratio
    line = text(call("payoff", of(root), **LINE | {"value": "speedup"}))
    assert "compiled breaks even between width 1024" in line and "shown to pay at no width" in line


def test_a_line_of_counts_that_are_the_same_is_hollow_and_says_so(root):
    told = text(call("payoff", of(root), **LINE | {"value": "peak_bytes"}))
    assert "Hollow: the same as the control." in told
    assert "Hollow: no difference was shown." in text(call("payoff", of(root), **LINE))


TWO = {"variant": ["compiled", "graphed"]}


@pytest.mark.parametrize(
    ("widths", "variants", "abreast"),
    [(2, 2, 2), (3, 2, 2), (4, 2, 1), (5, 2, 1), (1, 2, 2), (2, 1, 1), (2, 3, 3), (2, 4, 2),
     (1, 5, 3), (3, 3, 2)],
)  # fmt: skip
def test_narrow_panels_stand_side_by_side_in_rows_of_equal_length(widths, variants, abreast):
    up = ("tokens", ["256", "16384"])
    panel = svg.Drawing("heatmaps.heat", ([], ("width", ["1024"] * widths), up, []))
    assert payoffs._abreast([("a", panel)] * variants) == abreast


@pytest.mark.parametrize("abreast", [2, 3])
def test_a_panel_beside_others_still_has_its_verdicts_in_words(abreast):
    from anatomy.figures.charts.heatmaps import heat

    one = {"i": 0, "j": 0, "text": "0.5012×", "word": "undecided", "mark": "?", "tone": "open"}
    across, up = ("a", ["1024"] * (3 if abreast == 2 else 2)), ("b", ["16384"])
    panel = svg.Drawing("heatmaps.heat", ([], across, up, []))
    assert payoffs._abreast([("", panel)] * abreast) == abreast
    spec = heat([one | {"depth": 0.0, "hover": ""}], across, up, [], width=svg.share(abreast))
    assert spec["layer"][0]["data"]["values"][0]["word"] == "? undecided"


def test_panels_side_by_side_keep_their_order_and_one_key(root):
    narrow = MAP | TWO | {"where": {"width": [256, 1024]}}
    html = call("payoff", of(root), **narrow)
    Balance(html)
    assert 'class="chart abreast" style="--abreast: 2"' in html
    titles = re.findall(r'<div><p class="panel">(\w+)</p><svg[^>]*data-both', html)
    assert titles == ["compiled", "graphed"] and html.count('<p class="key">') == 1
    widths = re.findall(r'<svg[^>]*data-both[^>]*? width="(\d+)', html)
    assert "data-narrow" not in html, "a phone shows the same pictures"
    assert len(widths) == 2 and all(int(width) <= svg.share(2) for width in widths)
    assert "abreast" not in call("payoff", of(root), **MAP | TWO)
    assert "abreast" not in call("payoff", of(root), **narrow | {"variant": "compiled"})


def test_a_line_along_the_edge_makes_no_panel_taller_than_its_neighbour(tmp_path):
    one = {"text": "0.5×", "word": "less", "mark": "▼", "tone": "better", "depth": 1.0, "hover": ""}
    squares = [one | {"i": i, "j": j} for i in range(2) for j in range(2)]
    axes = ("a", ["1", "2"]), ("b", ["1", "2"])
    heights = set()
    for edges in ([], [(1, 0, 1, 1), (1, 1, 1, 2)]):
        drawing = svg.Drawing("heatmaps.heat", (squares, *axes, edges))
        picture = svg.picture(drawing, svg.share(2), tmp_path)
        heights.add(re.search(r' height="([\d.]+)"', picture)[1])
    assert len(heights) == 1


def test_counts_that_print_alike_are_called_the_same():
    def word(here):
        found = breakeven._counted({"peak_bytes": here}, {"peak_bytes": 100000}, "peak_bytes")
        return found["word"]

    assert [word(n) for n in (100000, 100400, 99600)] == ["same"] * 3
    assert [word(n) for n in (100600, 99400)] == ["more", "less"]


def test_a_place_that_no_row_is_about_was_not_tried_and_no_table_says_why(tmp_path):
    left = [row for row in made.table() if not (row["width"] == 256 and row["tokens"] == 256)]
    left = [row for row in left if not row.get("note")]
    made.recorded(tmp_path, left)
    told = text(call("payoff", of(tmp_path), **MAP))
    assert "– not tried" in told and "the table says why" not in told


def with_few_blocks(tmp_path, tokens: int, **options) -> str:
    """A line on a page whose comparison of `compiled` at width 256 has three blocks."""
    table = made.table()
    for row in table:
        place = (row["width"], row["tokens"], row["variant"], row["op"][:5])
        if place == (256, tokens, "compiled", "train"):
            row |= {"verdict": "undecided", "blocks_s": row["blocks_s"][:3]}
    made.recorded(tmp_path, synthetic.as_said(table))
    return text(call("payoff", of(tmp_path), **LINE | {"where": {"tokens": tokens}} | options))


def test_what_has_too_few_blocks_for_a_verdict_is_not_called_too_close_to_tell(tmp_path):
    line = with_few_blocks(tmp_path, 1024)
    assert "(slower). Too few blocks for a verdict at 256." in line
    assert "Hollow: no difference was shown, or too few blocks." in line
    assert line.count("3 blocks are too few for a verdict") == 1
    told = text(call("payoff", of(tmp_path), **MAP))
    assert "too close to tell, or too few blocks" in told


def test_where_it_pays_wherever_that_could_be_judged_the_sentence_says_why_not_elsewhere(tmp_path):
    line = with_few_blocks(tmp_path, 256)
    assert "4096; not shown at 256, where blocks are too few for a verdict. " in line
    assert "Too few blocks" not in line


def test_the_band_around_one_is_the_noise_of_what_was_not_shown(root):
    drawn = [row for row in made.table() if row["tokens"] == 1024 and row["role"] == "variant"]
    unshown = [row for row in drawn if row.get("verdict") in ("same", "undecided")]
    largest = units.percent(max(row["noise_floor"] for row in unshown))
    assert f"Grey band: differences up to {largest} are noise." in text(
        call("payoff", of(root), **LINE)
    )
    assert "Band" not in text(call("payoff", of(root), **LINE | {"value": "peak_bytes"}))


def test_where_every_difference_was_shown_no_band_speaks_against_one(tmp_path):
    table = made.table()
    for row in table:
        if row.get("verdict") and row["role"] == "variant":
            row |= {"ratio": 0.5, "ratio_low": 0.49, "ratio_high": 0.51, "verdict": "faster"}
    made.recorded(tmp_path, synthetic.as_said(table))
    assert "Band" not in text(call("payoff", of(tmp_path), **LINE))


def test_a_shape_to_choose_counts_cells_as_the_picture_does(root):
    html = call("payoff", of(root), **MAP | TWO)
    given = json.loads(unescape(re.search(r'data-cells="([^"]*)"', html)[1]))
    (x, widths), (y, tokens) = given["axes"]
    assert (x, y) == ("width", "tokens") and len(widths) == 5
    assert f"--lines: {len(given['panels'])}" in html
    pictures = re.findall(r"<svg[^>]*data-wide.*?</svg>", html, re.DOTALL)
    for (variant, across, up), picture in zip(given["panels"], pictures, strict=True):
        assert across == widths and up == tokens
        told = re.findall(r"<title>([^<]*)</title>", picture)
        cells = [f"{variant}, width {a}, tokens {b}: " for b in up for a in across]
        assert [text[: len(cell)] for text, cell in zip(told, cells, strict=True)] == cells
    failed = next(text for text in told if "width 4096, tokens 16384" in text)
    assert "not shown: out of memory" in failed
    assert all(" against " in text for text in told if text != failed)


def test_a_cell_that_was_never_tried_says_so_in_its_place(root):
    table = [row for row in made.table() if (row.get("width"), row.get("tokens")) != (256, 1024)]
    wanted = breakeven.Wanted("width", "tokens", variants=["compiled"])
    html = payoffs._map(breakeven.cells(table, wanted), wanted)
    assert "compiled, width 256, tokens 1024: not shown: not in the recording<" in html


def test_without_a_map_there_is_no_shape_to_choose(root):
    for options in (LINE, MAP | {"chart": False}):
        assert "choose" not in call("payoff", of(root), **options)
