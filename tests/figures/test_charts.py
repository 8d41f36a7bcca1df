"""Charts: their figures, intervals and bands, and SVG that a page can hold many of."""

import json
import re
from xml.etree import ElementTree

import pytest

from anatomy import page
from anatomy.figures.charts import figures, grammar, loglog, plain, svg
from anatomy.judge import rows
from anatomy.record import showing
from anatomy.table import units
from anatomy.table.errors import UnknownName
from tests.fakes import synthetic


def table(experiment: str = "contiguity.bench", **wanted) -> list[dict]:
    shown = synthetic.showing()
    found = shown.find(experiment).recording.data["rows"]
    return [rows.derived(row, shown.ceilings) for row in rows.select(found, **wanted)]


MATMUL = {"op": "matmul", "quantity": "gpu_warm"}


def data(spec: dict) -> list[dict]:
    """Every value of every layer."""
    found = list(spec.get("data", {}).get("values", []))
    for part in (*spec.get("layer", []), *([spec["spec"]] if "spec" in spec else [])):
        found += data(part)
    return found


def marks(spec: dict) -> list[str]:
    parts = [spec, *spec.get("layer", []), *spec.get("spec", {}).get("layer", [])]
    found = [part["mark"] for part in parts if "mark" in part]
    return [mark["type"] if isinstance(mark, dict) else mark for mark in found]


def drawn(function: str, *arguments) -> svg.Drawing:
    return svg.Drawing(function, arguments)


@pytest.mark.parametrize("width", svg.WIDTHS.values())
def test_ratios_have_intervals_a_noise_band_and_a_line_at_one(width):
    found = table(**MATMUL)
    spec = plain.ratios(found, width=width)
    floor = max(row["noise_floor"] for row in found)
    assert {"from": 1 - floor, "to": 1 + floor} in data(spec)
    band = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "rect")["encoding"]
    assert (band["x"]["field"], band["x2"]["field"]) == ("from", "to")
    assert {"value": 1.0} in data(spec)
    point = next(p for p in data(spec) if p.get("label") == "sliced_offset_view")
    row = next(row for row in found if row["variant"] == "sliced_offset_view")
    assert (point["low"], point["high"]) == (row["ratio_low"], row["ratio_high"])
    assert point["shape"] == "triangle-right"
    assert {"rule", "point", "rect", "text"} <= set(marks(spec))


def test_equal_and_slower_differ_in_shape_not_in_colour_alone():
    shapes = {shape for _, shape in plain.MARKS.values()}
    assert len(shapes) == len(plain.MARKS)


def test_rates_stand_under_the_ceiling_of_the_machine():
    found = table(**MATMUL)
    spec = plain.bars(found, "rate", width=680)
    rule = next(each for each in data(spec) if "matmul fp16" in str(each.get("text")))
    assert rule["text"].endswith("(measured)")
    bars = [p["value"] for p in data(spec) if p.get("label") == "contiguous"]
    assert bars[0] == pytest.approx(rule["value"], rel=0.02)


def test_a_sweep_tells_factors_by_colour_and_shape_and_shows_the_aligned_time():
    spec = plain.sweep(table("alignment.thresholds"), width=680)
    text = json.dumps(spec)
    assert '"shape"' in text and '"color"' in text
    assert {p["factor"] for p in data(spec)} == {"aligned", "base", "ld", "k"}
    assert any(str(p.get("name", "")).startswith("aligned: ") for p in data(spec))
    found = table("alignment.thresholds")
    floor = found[0]["noise_floor"]
    band = next(
        p for p in data(plain.sweep(found, "ratio", width=330)) if p.get("name") == "aligned"
    )
    assert (band["low"], band["high"]) == (1 - floor, 1 + floor)
    rates = [str(p.get("name")) for p in data(plain.sweep(found, "rate", width=680))]
    assert any(name.startswith("matmul fp16") and name.endswith("(measured)") for name in rates)
    with pytest.raises(UnknownName, match="column with an interval 'samples'"):
        plain.sweep(table("alignment.thresholds"), "samples", width=680)


def test_a_column_without_values_can_not_be_drawn():
    bare = [row | {"ratio": None} for row in table(**MATMUL)]
    with pytest.raises(UnknownName, match="no column with values to draw 'ratio'"):
        plain.ratios(bare, width=680)


def test_ratios_far_apart_get_a_logarithmic_axis():
    found = rows.findings(table(**MATMUL))
    near = json.dumps(plain.ratios(found, width=680))
    found[2] |= {"ratio": 9.0, "ratio_low": 8.9, "ratio_high": 9.1}
    assert '"type": "log"' not in near
    assert '"type": "log"' in json.dumps(plain.ratios(found, width=680))


@pytest.fixture
def html(tmp_path) -> str:
    page = synthetic.showing()
    found = table(**MATMUL)
    panels = [("one", drawn("ratios", found)), ("two", drawn("bars", found, "median_s"))]
    with showing.using(page):
        return svg.chart(panels * 2, "a < b", folder=tmp_path)


def test_a_chart_is_svg_for_two_widths_named_and_without_script(html):
    assert html.startswith('<div class="chart" role="img" aria-label="a &lt; b">')
    pictures = re.findall(r"<svg .*?</svg>", html, re.DOTALL)
    assert len(pictures) == 8
    for picture in pictures:
        ElementTree.fromstring(picture)
        assert 'aria-hidden="true"' in picture and "data-" in picture
    assert "<script" not in html and "http" not in html.replace("http://www.w3.org", "")


def test_ids_are_unique_on_a_page_and_references_follow_them(html):
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert ids and len(ids) == len(set(ids))
    for used in re.findall(r"url\(#([^)]+)\)", html):
        assert used in ids


def test_colours_are_properties_of_the_page(html):
    colours = set(re.findall(r'(?:fill|stroke)="([^"]+)"', html))
    fixed = {c for c in colours if not c.startswith("var(--chart-") and not c.startswith("url(")}
    assert fixed <= {"none", "transparent", grammar.PAPER}, fixed


def test_digits_of_figures_are_not_touched_by_the_rounding_of_coordinates(html):
    row = next(row for row in table(**MATMUL) if row["variant"] == "sliced_offset_view")
    assert f">{units.significant(row['ratio'])}×</text>" in html
    assert f"<title>sliced_offset_view: {rows.printed(row, 'ratio')}, 95% interval" in html
    assert not re.search(r' transform="[^"]*\d\.\d{3}', html)


@pytest.mark.parametrize(
    ("long", "short"),
    [
        ("15.0000000000002 -7.999999999", "15 -8"),
        ("0.7049999 133.9000001", "0.7 133.9"),
        ("1.5e-15 2e-7 -0.0001", "0 0 0"),
        ("1234.5678 100 0.25", "1234.57 100 0.25"),
    ],
)
def test_coordinates_that_differ_in_their_last_bits_are_printed_alike(long, short):
    assert svg._shorter(f'<path d="M{long}"/>') == f'<path d="M{short}"/>'


def test_a_picture_does_not_depend_on_how_many_were_drawn_before_it():
    drawn = (
        f'<clipPath id="clip{at}"/><g clip-path="url(#clip{at})">clip{at}</g>'
        f'<linearGradient id="gradient_{at}"/><path fill="url(#gradient_{at})"/>'
        for at in (0, 7)
    )
    first, second = map(svg._shorter, drawn)
    assert second == first.replace(">clip0<", ">clip7<")
    assert set(re.findall(r"url\(#(.*?)\)", first)) == {"clip0", "gradient_1"}


def test_a_picture_is_drawn_once_and_again_when_its_data_changes(tmp_path, monkeypatch):
    found = table(**MATMUL)
    first = svg.picture(drawn("ratios", found), 680, tmp_path)
    monkeypatch.setattr(plain, "ratios", lambda *_, **__: pytest.fail("drawn although it was kept"))
    assert svg.picture(drawn("ratios", found), 680, tmp_path) == first
    found[1]["ratio"] += 0.5
    with pytest.raises(pytest.fail.Exception):
        svg.picture(drawn("ratios", found), 680, tmp_path)


def test_what_the_schema_does_not_know_is_refused_in_tests_alone(tmp_path, monkeypatch):
    drawing = drawn("ratios", table(**MATMUL))

    def misspelt(data, width):
        return grammar.layered([grammar.on([{"x": 1}]).mark_point(sise=1)], width, 100)

    monkeypatch.setattr(plain, "ratios", misspelt)
    with pytest.raises(grammar.schemapi.SchemaValidationError, match="sise"):
        svg.picture(drawing, 680, tmp_path)
    monkeypatch.setattr(svg, "VALIDATED", False)
    assert svg.picture(drawing, 680, tmp_path).endswith("</svg>")


def test_layers_are_written_as_altair_writes_them():
    alt, point = grammar.alt, {"x": 1, "low": 0.5, "high": 2.0, "hover": None, "series": "a"}
    x = alt.X(
        "x:Q", sort=["b", "a"], axis=None, title=["two", "lines"], scale=alt.Scale(zero=False)
    )
    base = grammar.on([point, point | {"x": 2.5}], x=x, y="low:Q")
    colour = alt.condition("datum.x > 1", alt.value("red"), alt.value("blue"))
    layers = [
        grammar.intervals(base),
        grammar.dots(base, y=alt.value(3), shape=alt.Shape("series:N", legend=None)),
        base.mark_text(x=alt.expr("width - 4")).encode(text="hover:N", color=colour),
        grammar.one("y"),
    ]
    for layer in layers:
        told = layer.to_dict(validate=False, context={"top_level": False, "datasets": {}})
        assert grammar.written(layer) == told


def test_a_cut_off_picture_in_the_cache_is_drawn_again(tmp_path):
    found = drawn("ratios", table(**MATMUL))
    first = svg.picture(found, 680, tmp_path)
    (kept,) = tmp_path.glob("*.svg")
    kept.write_text(first[:-20])
    assert svg.picture(found, 680, tmp_path) == first
    assert kept.read_text() == first


def test_a_cache_that_can_not_be_written_costs_time_only(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert svg.picture(drawn("bars", table(**MATMUL), "median_s"), 330, blocked).endswith("</svg>")


@pytest.mark.parametrize(("width", "columns"), [(680, 0), (330, 2)])
def test_a_legend_that_a_phone_has_no_room_for_is_in_columns(width, columns):
    names = ["5 fp8 without a graph", "4 current", "5 bf16", "5 fp8", "5 fp8 delayed"]
    mark = {"x": 1, "value": 1.0, "low": 1.0, "high": 1.0, "hover": ""}
    points = [mark | {"series": name} for name in names]
    spec = loglog.growth(points, [], [(1, "1")], ("x", "y"), width=width)
    legends = [each["encoding"]["color"]["legend"] for each in spec["layer"]]
    assert all(legend["columns"] == columns for legend in legends)


def test_bars_have_time_and_rate_beside_them_and_the_colour_of_their_verdict():
    points = {p["label"]: p for p in data(plain.bars(table(**MATMUL), "median_s", width=680))}
    slow = points["sliced_offset_view"]
    assert re.fullmatch(r"\d{3} µs · [\d.]+ TFLOP/s", slow["text"]), slow["text"]
    assert slow["colour"] == grammar.WORSE != points["contiguous"]["colour"]


@pytest.mark.parametrize("count", [1, 2])
def test_a_range_of_break_even_is_shaded_where_no_other_lies_on_it(count):
    mark = {"low": 0.9, "high": 1.1, "value": 1.0, "hover": "", "shown": True}
    points = [mark | {"series": name, "x": x} for name in "ab" for x in (1, 8)]
    ranges = [{"series": name, "at": 2, "low": 1, "high": 8} for name in "ab"[:count]]
    ticks = [(1, "1"), (8, "8")]
    spec = loglog.payoff(points, ranges, ticks, 0.0, ("x", "y"), width=680)
    kinds = [layer["mark"]["type"] for layer in spec["layer"] if "x2" in layer["encoding"]]
    assert kinds.count("rect") == (count == 1)


@pytest.mark.parametrize(
    ("columns", "rated"), [(None, True), (["variant", "share"], True), (["median_s"], False)]
)
def test_rates_stand_beside_times_unless_the_columns_have_none(monkeypatch, columns, rated):
    seen = []
    monkeypatch.setattr(figures, "_chart", lambda rows, chart: seen.extend(rows) or "")
    figures.shown(table(**MATMUL), columns, "times", unfold=False)
    assert any(row.get("rate") for row in seen) == rated


@pytest.mark.parametrize("function", ["bars", "ratios"])
def test_names_are_whole_beside_bars_and_on_a_phone_above_them(function):
    name = "torch.nn.functional.pad(A[:, 1:], (0, 1)) @ B0"
    rows_ = [row | {"variant": name} for row in table(**MATMUL)[1:2]]
    arguments = ["median_s"] if function == "bars" else []
    spec = getattr(plain, function)(rows_, *arguments, width=680)
    axes = [each["encoding"]["y"]["axis"] for each in spec["layer"] if "y" in each["encoding"]]
    assert min(axis["minExtent"] for axis in axes) > 6 * len(name)
    assert spec["config"]["axis"]["labelLimit"] == 0 and "labelLimit" not in axes[0]
    picture = svg.picture(drawn(function, rows_, *arguments), 330)
    assert name in re.sub(r"&[a-z]+;", "", picture).replace("\u200b", "")


def test_a_noise_band_too_thin_to_see_is_said():
    thin = [row | {"noise_floor": 0.0005} for row in table(**MATMUL)]
    assert "noise ±0.05%: thinner than the line" in json.dumps(
        plain.ratios(thin, width=680), ensure_ascii=False
    )
    wide = [row | {"noise_floor": 0.2} for row in thin]
    assert "band: noise ±20%" in json.dumps(plain.ratios(wide, width=680), ensure_ascii=False)


def test_a_logarithmic_axis_says_so():
    spec = plain.ratios(
        [
            row | {"ratio": r, "ratio_low": r, "ratio_high": r}
            for row, r in zip(table(**MATMUL), (1, 2, 30), strict=False)
        ],
        width=680,
    )
    titles = [
        layer["encoding"]["x"]["title"]
        for layer in spec["layer"]
        if (layer["encoding"].get("x") or {}).get("scale")
    ]
    assert titles and all("log scale" in title[0] for title in titles)


def test_a_matrix_with_one_coordinate_is_one_chart():
    cell = {"series": "fp16", "by": 4096, "value": 2.0, "low": 1.9, "high": 2.1, "hover": ""}
    cells = [cell | {"variant": name} for name in "abc"]
    assert "facet" not in plain.matrix(cells, "m", "dtype", 0.01, width=680)
    assert "facet" in plain.matrix([*cells, cells[0] | {"by": 1}], "m", "dtype", 0.01, width=680)


def test_a_table_of_one_variant_has_no_heading_that_names_it_and_no_interval_that_it_lacks():
    which = {"by": ("m", "n", "k"), "op": "matmul", "quantity": "gpu_warm", "dtype": ["fp16"]}
    with showing.using(synthetic.showing()):
        one = page.matrix("contiguity.bench", "rate", variants=["contiguous"], m=[4096], **which)
        some = page.matrix("contiguity.bench", "ratio", chart=False, m=[4096], **which)
    assert "TFLOP/s" in one and ">contiguous<" not in one and "95% interval" not in one
    assert ">sliced_offset_view<" in some and "95% interval" in some


def test_between_alignments_a_sweep_has_steps():
    spec = plain.sweep(table("alignment.thresholds", op="matmul"), width=680)
    lines = [e["mark"] for e in spec["layer"] if e["mark"]["type"] == "line"]
    assert lines and all(line["interpolate"] == "step" for line in lines)


def pictures(html: str) -> list[str]:
    """Those of a chart of one panel: for a desk and for a phone."""
    return re.findall(r"<svg .*?</svg>", html, re.DOTALL)


def test_what_marks_tell_stands_on_a_page_once_and_both_pictures_have_it(tmp_path):
    found = table(**MATMUL)
    with showing.using(synthetic.showing()):
        wide, narrow = pictures(svg.chart([("", drawn("ratios", found))], "a", folder=tmp_path))
    told = list(dict.fromkeys(re.findall(r"<title>([^<]*)</title>", wide)))
    assert len(told) > 4 and "<title>" not in narrow
    numbers = {int(number) for number in re.findall(r' data-m="(\d+)"', narrow)}
    assert numbers == set(range(len(told))) and "data-m" not in wide


def test_marks_tell_what_we_have_them_tell_and_nothing_of_the_converters(html):
    hovers = {point["hover"] for point in data(plain.ratios(table(**MATMUL), width=680))
              if point.get("hover")}  # fmt: skip
    titles = set(re.findall(r"<title>([^<]*)</title>", html.partition('class="panel">two')[0]))
    assert titles == hovers and "aria-roledescription" not in html


def test_a_line_through_points_tells_nothing_of_the_first_of_them():
    ends = {"low": 1.0, "high": 1.2, "shown": True, "series": "a"}
    points = [ends | {"x": x, "value": 1.1, "hover": f"at {x}: 1.1×"} for x in (1, 2)]
    ticks = [(1, "1"), (2, "2")]
    specs = [
        loglog.payoff(points, [], ticks, 0.0, ("x", "y"), width=680),
        loglog.growth(points, [], ticks, ("x", "y"), width=680),
        plain.sweep(table("alignment.thresholds"), width=680),
    ]
    for spec in specs:
        layers = [layer for layer in spec["layer"] if layer["mark"]["type"] == "line"]
        assert layers and not any("description" in layer["encoding"] for layer in layers)


def test_panels_as_wide_as_a_phone_are_drawn_once_for_both(tmp_path):
    panels = [(name, drawn("ratios", table(**MATMUL))) for name in ("one", "two")]
    with showing.using(synthetic.showing()):
        html = svg.chart(panels, "a", abreast=2, folder=tmp_path)
        single = svg.chart(panels, "a", folder=tmp_path)
    assert len(pictures(html)) == 2 and html.count('data-both=""') == 2
    assert "<title>" in html and len(pictures(single)) == 4


def test_variants_cases_and_remedies_are_called_what_the_page_calls_them():
    row = {"variant": "slice padded use", "case": "slice", "remedy": "padded"}
    assert figures.called([row], {"slice": "A[:, 1:]", "padded": "aligned rows"}) == [
        {"variant": "slice padded use", "case": "A[:, 1:]", "remedy": "aligned rows"}
    ]
