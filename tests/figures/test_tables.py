"""Tables: units in the header, digits that the interval pays for, verdicts in words."""

import re
from html import unescape

import pytest

from anatomy.figures import tables
from anatomy.figures.charts import figures
from anatomy.judge import rows
from anatomy.record import signatures
from anatomy.table.errors import UnknownName
from tests.fakes import synthetic


@pytest.fixture
def bench() -> list[dict]:
    page = synthetic.showing()
    found = page.find("contiguity.bench").recording.data["rows"]
    chosen = rows.select(found, op="matmul", quantity="gpu_warm")
    return [rows.derived(row, page.ceilings) for row in chosen]


def text(html: str) -> str:
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))).strip()


def line(html: str, variant: str) -> str:
    """The row of a variant as text."""
    (found,) = re.findall(rf"<tr[^>]*><th scope=\"row\"><code>{variant}</code>.*?</tr>", html)
    return text(found)


def test_a_number_has_three_digits_and_on_hover_all_that_is_known_of_it(bench):
    row = bench[0] | {"variant": "a", "median_s": 1.23456e-4, "low_s": 1.2344e-4}
    row |= {"high_s": 1.2347e-4, "noise_floor": 0.0034}
    html = tables.times([row, row | {"variant": "b", "low_s": 1.21e-4, "high_s": 1.26e-4}])
    assert "time, µs 95% interval" in text(html)
    title = "123.46 [123.44, 123.47], 95% interval, noise floor 0.34%"
    assert f'<span title="{title}">123</span>' in html, "its interval is within the last digit"
    assert '>123 <span class="ci">[121, 126]</span></span>' in html


@pytest.mark.parametrize(
    ("value", "low", "high", "shown"),
    [
        (204.2, 203.1, 245.4, "200 [200, 250]"),  # its half-width pays for tens, at either end, too
        (298.0, 265.0, 297.9 + 0.2, "300 [260, 300]"),
        (1234.5, 1200.3, 1290.2, "1230 [1200, 1290]"),
        (1.23456, 1.2344, 1.2347, "1.23"),
        (5.6, None, None, "5.60"),
    ],
)
def test_the_ends_in_a_cell_are_rounded_at_the_digit_of_its_number(value, low, high, shown):
    assert text(tables.figure(value, low, high)) == shown


@pytest.mark.parametrize("word", tables.CHIPS)
def test_each_verdict_tells_its_rule(word):
    assert word in tables.RULES and tables.RULES[word] in unescape(tables.chip(word))


def test_each_table_names_its_columns_once_for_the_cards_of_a_phone(bench):
    report = synthetic.showing().find("tensor_layout.report").recording.data["rows"]
    listed = tables.listed(["a", '#b & "c"'], [["1", "2"]], "L")
    assert unescape(re.search(r'style="([^"]*)"', listed)[1]) == '--c2:"b & \\"c\\""'
    css = (signatures.PACKAGE.parent / "docs" / "assets" / "tables.css").read_text()
    for html in (tables.times(bench), tables.plain(report), listed):
        named = re.findall(
            r'--c(\d+):"', unescape(re.search(r'<table[^>]*style="([^"]*)"', html)[1])
        )
        widest = max(len(re.findall("<t[dh]", row)) for row in re.findall("<tr.*?</tr>", html))
        assert list(map(int, named)) == list(range(2, widest + 1))
        for number in named:
            assert f"td:nth-child({number}) {{\n    --is: var(--c{number});" in css


def test_a_row_has_its_ratio_verdict_share_and_kernels(bench):
    assert "▲ slower 50" in line(tables.times(bench), "sliced_offset_view")
    assert "of matmul fp16, 801 TFLOP/s, measured" in tables.times(bench)
    assert "● control" in line(tables.times(bench), "contiguous")


def test_what_all_rows_share_stands_once_at_their_head(bench):
    html = tables.times(bench)
    assert html.count("power-limited") == 1
    bench[0]["throttle"] = "none"
    assert tables.times(bench).count("power-limited") == len(bench) - 1
    asked = [row | {"quantity": "host_enqueue"} for row in bench]
    assert "power-limited" not in tables.times(asked)  # the clock of the GPU paces no host


def test_what_the_rows_of_all_groups_share_stands_once_over_the_table(bench):
    html = tables.times([*bench, *(row | {"op": "other"} for row in bench)])
    assert text(html).startswith("All rows: power-limited")
    assert html.count("power-limited") == 1
    one = tables.times(bench[:1])
    assert "All rows" not in text(one) and one.count("power-limited") == 1


def test_a_row_that_could_not_be_measured_says_why_and_shows_no_number(bench):
    empty = dict.fromkeys(("median_s", "low_s", "high_s", "ratio", "verdict", "rate", "share"))
    bench[1] |= empty | {"note": "FP8 needs sm_89; this is <sm_80>"}
    found = line(tables.times(bench), bench[1]["variant"])
    assert "FP8 needs sm_89; this is <sm_80>" in found and "—" in found
    assert "not measured" not in found and "nan" not in found.lower()


def test_several_groups_have_a_body_each_and_one_unit(bench):
    page = synthetic.showing()
    every = page.find("contiguity.bench").recording.data["rows"]
    html = tables.times([rows.derived(row, None) for row in every])
    assert html.count("<tbody>") == 6
    assert "layer_norm, GPU time, cold L2" in text(html)
    assert html.count("time, µs <span") == 1


def test_columns_can_be_chosen_and_a_wrong_one_is_an_error(bench):
    html = tables.times(bench, ["variant", "rate", "sm_clock_mhz"])
    assert "variant rate SM clock" in text(html)
    assert "MHz" in html and "TFLOP/s" in html
    with pytest.raises(UnknownName, match="no column 'ratioo'"):
        tables.times(bench, ["variant", "ratioo"])


def test_a_report_without_times_begins_with_its_variants():
    table = synthetic.showing().find("tensor_layout.report").recording.data["rows"]
    html = tables.plain(table)
    assert text(html).startswith("variant shape strides storage offset")
    assert "transposed_view (4096, 4096) (1, 4096) 0 0 B 0 8192 B no yes T" in text(html)
    with pytest.raises(UnknownName, match="no column 'stride'"):
        tables.plain(table, ["variant", "stride"])


def test_text_from_a_recording_can_not_become_markup(bench):
    bench[0]["variant"] = "<script>alert(1)</script>"
    assert "<script>" not in tables.times(bench)
    assert "<script>" not in tables.plain([{"variant": "<script>"}])


@pytest.mark.parametrize("word", tables.CHIPS)
def test_a_verdict_is_said_by_word_and_mark_not_by_colour_alone(word):
    html = tables.chip(word)
    assert word in text(html) and 'class="mark"' in html


def test_derived_columns_follow_from_the_row(bench):
    row = next(row for row in bench if row["variant"] == "sliced_offset_view")
    assert row["rate"] == pytest.approx(row["flops"] / row["median_s"])
    assert row["rate_low"] < row["rate"] < row["rate_high"]
    assert row["speedup"] == pytest.approx(1 / row["ratio"])
    assert row["share"] == pytest.approx(0.5, rel=0.02)
    assert rows.derived({"median_s": None}, None)["rate"] is None
    impossible = rows.derived(row | {"verdict": "impossible", "rate": None, "share": None}, None)
    assert impossible["rate"] is None


def test_an_op_with_a_star_is_a_pattern_of_several(bench):
    assert {row["op"] for row in rows.select(bench, op="m*")} == {"matmul"}
    assert rows.select(bench, op="*") == bench
    with pytest.raises(UnknownName):
        rows.select(bench, op="conv*")


def test_selection_keeps_the_order_asked_for_and_knows_its_names(bench):
    chosen = rows.select(bench, variants=["sliced_offset_view", "contiguous"])
    assert [row["variant"] for row in chosen] == ["sliced_offset_view", "contiguous"]
    for wrong in ({"op": "matmull"}, {"quantity": "warm"}, {"variants": ["sliced"]}):
        with pytest.raises(UnknownName, match=r"Known: "):
            rows.select(bench, **wrong)


def test_the_control_of_another_variant_is_no_finding(bench):
    kept = [row["variant"] for row in rows.findings(bench)]
    assert "contiguous_half" not in kept and "as_strided_view" in kept


def test_a_column_of_numbers_is_flush_right_where_one_is_missing_too():
    html = tables.plain([{"variant": "a", "uses": 3.5}, {"variant": "b", "uses": None}])
    assert html.count('<td class="n"') == 2


def test_variants_that_launch_the_same_kernels_share_a_line():
    launched = {"A": ["fast"], "B": ["slow"], "C": ["Memset", "fast"], "D": ["slow"]}
    html = figures.kernels([{"variant": name, "kernels": k} for name, k in launched.items()])
    assert html.count("<tr") == 4, "a head, and three ways to do it"
    assert "<code>B</code>, <code>D</code>" in html
