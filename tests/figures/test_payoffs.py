"""Pay-off maps and growth curves: the cells, the line around what pays, and what a page shows."""

import json
import re
from types import SimpleNamespace

import pytest

from anatomy import page
from anatomy.figures.text.inline import render
from anatomy.figures.tradeoffs import breakeven, payoffs
from anatomy.figures.tradeoffs.breakeven import Wanted
from anatomy.judge import rows
from anatomy.record.showing import PageError, Showing, using
from anatomy.table.errors import AnatomyError, BadParameter, UnknownName
from tests.fakes import payoff_rows as made
from tests.fakes import synthetic
from tests.site.test_page import Balance, stale, text

NAME = made.EXPERIMENT
MAP = {"x": "width", "y": "tokens", "variant": "compiled"}
LINE = {"x": "width", "variant": ["compiled", "graphed"], "where": {"tokens": 1024}}
CURVE = {"x": "tokens", "y": "median_s", "where": {"width": 1024, "op": "train *"}, "fit": "power"}
CALLS = [
    ("payoff", MAP),
    ("payoff", MAP | {"value": "speedup", "caption": "See `x`.", "quantity": "step_wall"}),
    ("payoff", MAP | {"value": "peak_bytes"}),
    ("payoff", MAP | {"variant": ["compiled", "graphed"]}),
    ("payoff", MAP | {"chart": False}),
    ("payoff", LINE),
    ("payoff", LINE | {"value": "peak_bytes"}),
    ("payoff", LINE | {"x": "op"}),
    ("curve", CURVE),
    ("curve", CURVE | {"y": "peak_bytes", "beyond": 1000}),
    ("curve", CURVE | {"series": "width", "where": {"variant": "eager"}, "fit": None}),
]
IDS = [f"{name} {' '.join(map(str, options.values()))}" for name, options in CALLS]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return made.recorded(tmp_path_factory.mktemp("recordings"))


def call(name: str, showing: Showing, **options) -> str:
    with using(showing):
        return getattr(page, name)(NAME, **options)


def of(root) -> Showing:
    return synthetic.showing(root=root)


def wanted(**changes) -> Wanted:
    usual = {"x": "width", "y": "tokens", "variants": ["compiled"], "value": "ratio"}
    return Wanted(**usual | {"op": None, "quantity": None, "where": None} | changes)


def measured(**changes) -> dict:
    return {(c.x, c.y): c for c in breakeven.cells(made.table(), wanted(**changes))}


@pytest.mark.parametrize(("name", "options"), CALLS, ids=IDS)
def test_a_figure_is_balanced_named_and_has_its_provenance_and_a_table(root, name, options):
    html = call(name, of(root), **options)
    Balance(html)
    told = text(html)
    assert "Toy GPU" in told and 'href="#from-' in html
    assert "None" not in told and "nan" not in told.lower() and "<table" in html
    if options.get("chart", True):
        assert re.search(r'<div class="chart" role="img" aria-label="[^"]{40,}"', html)
        assert "The table under it has the figures." in html
        assert 'data-wide=""' in html and 'data-narrow=""' in html
        assert '<details class="twin">' in html
        colours = set(re.findall(r'(?:fill|stroke)="([^"]+)"', html))
        assert {c for c in colours if not c.startswith("var(--chart-")} <= {"none", "transparent"}


@pytest.mark.parametrize(("name", "options"), CALLS, ids=IDS)
def test_while_collecting_the_recording_is_noted_and_nothing_shown(name, options):
    collecting = Showing(root=None, machine="", page="a.md", line=7, collecting=True)
    assert call(name, collecting, **options) == ""
    assert [(asked.name, asked.place) for asked in collecting.asked] == [(NAME, "a.md:7")]


@pytest.mark.parametrize(("name", "options"), CALLS, ids=IDS)
def test_without_a_recording_there_is_a_gap_with_the_command(name, options, tmp_path):
    html = call(name, of(tmp_path), **options)
    Balance(html)
    assert f"pytorch-gpu-anatomy record {NAME}" in html


def test_variants_are_called_by_their_labels_in_chart_and_table(root):
    name = MAP["variant"] if isinstance(MAP["variant"], str) else MAP["variant"][0]
    html = call("payoff", of(root), **MAP, labels={name: "The label"})
    assert "The label" in html and f"{name}, " not in html


def test_what_is_not_current_has_a_badge_and_a_missing_column_is_no_error_there(root):
    html = call("payoff", stale(of(root), NAME), **MAP)
    assert 'class="notice badge"' in html and "The reason." in html and "faster" in html
    lacks = call("payoff", stale(of(root), NAME), **MAP | {"x": "came_later"})
    assert 'class="notice badge"' in lacks and "<table" not in lacks


def test_every_cell_has_its_verdict_and_the_first_calls_are_none_of_them():
    cells = measured()
    assert len(cells) == len(made.WIDTHS) * len(made.TOKENS)
    for (width, tokens), cell in cells.items():
        if (width, tokens) == made.FAILED:
            assert cell.value is None and cell.why == made.WHY and cell.word == ""
            continue
        rule = made.slowdown(width, tokens)
        assert cell.value == pytest.approx(rule, rel=0.01)
        assert cell.word == ("faster" if rule < 0.99 else "slower" if rule > 1.01 else "same")
        assert cell.control["variant"] == "eager" and cell.control["op"] == cell.row["op"]


def test_the_line_runs_between_the_cells_that_pay_and_those_that_do_not():
    #  j=1  . x x        Cells that pay are x; (2, 0) has no value and so no edge.
    #  j=0  . .
    paying = {(0, 0): False, (1, 0): False, (0, 1): False, (1, 1): True, (2, 1): True}
    assert set(breakeven.contour(paying)) == {(1, 1, 1, 2), (1, 1, 2, 1)}
    assert breakeven.contour(dict.fromkeys(paying, True)) == []


def drawn(root, monkeypatch, **options) -> list:
    """What is given to the charts: the arguments of each drawing."""
    found = []

    def keep(panels, label, abreast=1):
        found.extend(drawing.arguments for _, drawing in panels)
        return json.dumps([[list(d.arguments) for _, d in panels], label])

    monkeypatch.setattr("anatomy.figures.tradeoffs.payoffs.svg.chart", keep)
    call("payoff", of(root), **options)
    return found


def test_the_map_draws_the_line_where_the_rule_breaks_even(root, monkeypatch):
    ((squares, across, up, edges),) = drawn(root, monkeypatch, **MAP)
    assert across == ("width", ["256", "512", "1024", "2048", "4096"])
    assert up == ("tokens", ["256", "1024", "4096", "16384"])
    assert len(squares) == 20
    # Of the five widths, this many rows pay, from below: 3, 2, 2, 1, 1.
    level = {(0, 3, 1, 3), (1, 2, 2, 2), (2, 2, 3, 2), (3, 1, 4, 1), (4, 1, 5, 1)}
    assert set(edges) == level | {(1, 2, 1, 3), (3, 1, 3, 2)} and len(edges) == 7
    failed = next(square for square in squares if (square["i"], square["j"]) == (4, 3))
    assert failed["text"] == "–" and made.WHY in failed["hover"] and failed["tone"] == "none"


def test_tone_mark_and_word_say_the_same_and_the_undecided_has_no_tone(tmp_path, monkeypatch):
    table = made.table()
    undecided = next(row for row in table if row["variant"] == "compiled" and row.get("ratio"))
    undecided["verdict"] = "undecided"  # although it takes half the time
    made.recorded(tmp_path, synthetic.as_said(table))
    ((squares, *_, edges),) = drawn(tmp_path, monkeypatch, **MAP)
    tones = {(s["word"], s["mark"], s["tone"]) for s in squares}
    assert tones == {
        ("faster", "▼", "better"),
        ("slower", "▲", "worse"),
        ("same", "=", "even"),
        ("undecided", "?", "open"),
        ("", "", "none"),
    }
    assert squares[0]["word"] == "undecided"
    assert {(1, 0, 1, 1), (0, 1, 1, 1)} <= set(edges), "it counts as not paying"


def test_an_undecided_cell_is_drawn_without_a_fill():
    from anatomy.figures.charts.heatmaps import heat

    square = {"i": 0, "j": 0, "text": "0.50×", "word": "undecided", "mark": "?", "depth": 1.0}
    spec = heat([square | {"tone": "open", "hover": ""}], ("a", ["1"]), ("b", ["2"]), [], width=680)
    (value,) = spec["layer"][0]["data"]["values"]
    assert (value["fill"], value["opacity"]) == ("transparent", 0.0)


@pytest.mark.parametrize("width", [680, 330])
def test_a_wide_cell_has_mark_and_word_and_a_narrow_one_the_mark(width):
    from anatomy.figures.charts.heatmaps import heat

    one = {"j": 0, "text": "0.5012×", "word": "undecided", "mark": "?", "tone": "open"}
    squares = [one | {"i": i, "depth": 0.0, "hover": ""} for i in range(7)]
    names = [str(2**i) for i in range(7)]
    spec = heat(squares, ("a", names), ("b", ["2"]), [(1, 0, 1, 1)], width=width)
    told = {value["word"] for value in spec["layer"][0]["data"]["values"]}
    assert told == ({"? undecided"} if width == 680 else {"?"})
    assert spec["layer"][0]["encoding"]["x"]["axis"]["tickCount"] == 7, "or Vega drops names"


@pytest.mark.parametrize(
    ("most", "shown"), [(7, "0.5678×"), (6.5, "0.5678"), (4.2, "0.57"), (3, "0.6"), (1, "1")]
)
def test_a_number_keeps_the_digits_that_its_cell_has_room_for(most, shown):
    from anatomy.figures.charts.heatmaps import _fitting

    assert _fitting("0.5678×", most) == shown and _fitting("–", 0.5) == "–"


def test_no_text_is_smaller_than_a_phone_may_shrink_it():
    from anatomy.figures.charts.heatmaps import heat

    one = {"j": 0, "text": "0.5012×", "word": "faster", "mark": "▼", "tone": "better", "hover": ""}
    squares = [one | {"i": i, "depth": 1.0} for i in range(12)]
    spec = heat(squares, ("a", [str(i) for i in range(12)]), ("b", ["2"]), [], width=330)
    sizes = [part["mark"]["fontSize"] for part in spec["layer"] if "fontSize" in part["mark"]]
    assert len(sizes) == 2 and min(sizes) * 328 / 330 > 10


def test_break_even_is_interpolated_where_the_rule_puts_it():
    line = breakeven.cells(made.table(), wanted(y=None, where={"tokens": 1024}))
    (found,) = breakeven.crossings(line)
    assert found.at == pytest.approx(made.EVEN / 1024, rel=0.05)
    assert (found.before.x, found.after.x) == (1024, 4096), "2048 costs the same: not decided"
    speed = breakeven.cells(made.table(), wanted(y=None, where={"tokens": 1024}, value="speedup"))
    assert breakeven.crossings(speed)[0].at == pytest.approx(found.at)


def test_without_a_change_of_sides_or_along_text_there_is_no_break_even():
    flat = breakeven.cells(
        made.table(), wanted(y=None, variants=["graphed"], where={"tokens": 1024})
    )
    assert breakeven.crossings(flat) == []
    named = breakeven.cells(made.table(), wanted(x="op", y=None, where={"tokens": 1024}))
    assert any(c.pays for c in named) and breakeven.crossings(named) == []


def test_break_even_is_told_in_words(root):
    told = text(call("payoff", of(root), **LINE))
    assert "compiled breaks even between width 1024 (faster) and 4096 (slower)." in told
    assert "graphed is shown to pay at no width measured (256 to 4096)" in told
    failing = text(call("payoff", of(root), **LINE | {"where": {"tokens": 16384}}))
    assert "Not measured at 4096; the table says why." in failing and made.WHY in failing
    assert "compiled is slower at every width measured (256 to 2048)" in failing
    assert "graphed is shown to pay at no width" in failing, "one of its verdicts is another"


def test_a_coordinate_that_is_zero_somewhere_has_no_logarithm_and_no_interpolation(tmp_path):
    table = [row | {"error": (row["width"] - 256) / 4096} for row in made.table()]
    made.recorded(tmp_path, table)
    told = text(call("payoff", of(tmp_path), **LINE | {"x": "error"}))
    assert "compiled is shown to pay at error 0 to 0.188; not shown at" in told


@pytest.mark.parametrize(
    ("pays", "last"),
    [
        ("yyyyn", 3),
        ("yyyynn", 3),
        ("yyyyy", None),
        ("yyynn", None),
        ("yyyyny", None),
        ("nyyyy", None),
    ],
)
def test_a_row_of_coordinates_that_pay_is_told_by_its_end(pays, last):
    line = [SimpleNamespace(x=2.0**at, pays=each == "y") for at, each in enumerate(pays)]
    assert payoffs._last_paying(line) == last
    for cell in line:
        cell.x = str(cell.x)
    assert payoffs._last_paying(line) is None, "texts have no order"


def test_where_nothing_was_measured_the_figure_says_why_in_each_cell(tmp_path):
    gone = ("median_s", "ratio", "verdict", "peak_bytes")
    table = [
        row | dict.fromkeys(gone) | {"note": "needs a GPU"}
        for row in made.table()
        if not row["op"].startswith("first")
    ]
    made.recorded(tmp_path, synthetic.as_said(table))
    for options in (MAP, LINE, MAP | {"value": "ratio", "variant": ["graphed"]}):
        told = text(call("payoff", of(tmp_path), **options))
        assert "needs a GPU" in told and "break-even" not in told and "faster" not in told


def test_counts_are_exact_and_over_the_controls(root):
    cells = measured(value="peak_bytes")
    assert {c.value for c in cells.values() if c.value is not None} == {0.5}
    assert {c.word for c in cells.values()} == {"less", ""}
    told = text(call("payoff", of(root), **MAP | {"value": "peak_bytes"}))
    assert "counts without an interval" in told and "▼ less" in told
    assert "1.00 MiB" in told or "1.0 MiB" in told


def test_a_control_without_a_count_is_said_and_never_divided_by():
    table = [row | {"peak_bytes": 0} if row["role"] == "control" else row for row in made.table()]
    cells = breakeven.cells(table, wanted(value="peak_bytes"))
    assert {cell.why for cell in cells} == {"the control needs none", made.WHY}


def test_the_table_has_a_row_for_each_cell_with_times_ratio_verdict_and_reason(root):
    html = call("payoff", of(root), **MAP | {"chart": False})
    assert html.count("<tr>") == 1 + 20
    told = text(html)
    row = measured()[256, 256].row
    low, high = row["ratio_low"], row["ratio_high"]
    assert f"[{low:.4f}, {high:.4f}]" in told or f"[{low:.3f}, {high:.3f}]" in told
    assert "▼ faster" in told and "▲ slower" in told and "? undecided" in told
    assert told.count(made.WHY) == 1 and "peak memory" in told


def test_a_comparison_that_never_began_gives_the_reason_of_its_control():
    table = [
        row for row in made.table()
        if not (row.get("note") == made.WHY and row["variant"] != "eager")
    ]  # fmt: skip
    cell = {(c.x, c.y): c for c in breakeven.cells(table, wanted())}[made.FAILED]
    assert cell.value is None and cell.why == made.WHY


def test_an_impossible_time_is_no_value():
    table = made.table()
    row = next(row for row in table if row["variant"] == "compiled" and row.get("ratio"))
    row |= {"verdict": "impossible", "note": "faster than the memory"}
    cell = breakeven.cells(table, wanted())[0]
    assert cell.value is None and cell.why == "faster than the memory" and not cell.pays


def test_several_rows_in_a_cell_are_refused_with_what_would_tell_them_apart(tmp_path):
    table = [row | {"dtype": d} for d in ("bf16", "fp32") for row in made.table()]
    for row in table:
        row["op"] += f" {row['dtype']}"
    with pytest.raises(BadParameter, match=r"2 rows of 'compiled' are in the cell width=256, "
                       r"tokens=256, .*where=\{\.\.\.\} of op: .*dtype: bf16, fp32"):  # fmt: skip
        breakeven.cells(table, wanted())
    assert breakeven.cells(table, wanted(where={"dtype": "bf16"}))
    made.recorded(tmp_path, table)
    code = (
        f"from anatomy.page import payoff\nprint(payoff({NAME!r}, x='width', variant='compiled'))"
    )
    with pytest.raises(PageError, match=r"page\.md:9: .*there must be one"):
        of(tmp_path).run(code, 7)


@pytest.mark.parametrize(
    ("name", "options", "error", "says"),
    [
        ("payoff", MAP | {"x": "widht"}, UnknownName, "column 'widht'. Did you mean 'width'"),
        ("payoff", MAP | {"variant": "complied"}, UnknownName, "Did you mean 'compiled'"),
        ("payoff", MAP | {"variant": []}, BadParameter, "needs a variant"),
        ("payoff", MAP | {"quantity": "gpu_warm"}, UnknownName, "no quantity 'gpu_warm'"),
        ("payoff", MAP | {"where": {"tokens": 7}}, UnknownName, "no tokens '7'"),
        ("payoff", MAP | {"where": {"layers": 7}}, UnknownName, "no column 'layers'"),
        ("payoff", MAP | {"value": "peak_byte"}, UnknownName, "Did you mean 'peak_bytes'"),
        ("payoff", MAP | {"value": "median_s"}, BadParameter, "has an interval"),
        ("payoff", MAP | {"op": "train"}, UnknownName, "no op 'train'"),
        ("payoff", MAP | {"variant": "eager"}, BadParameter, "is compared with a control"),
        ("payoff", MAP | {"size": 3}, UnknownName, "called 'size'"),
        ("curve", CURVE | {"y": "median"}, UnknownName, "Did you mean 'median_s'"),
        ("curve", CURVE | {"fit": "line"}, UnknownName, "no fit 'line'"),
        ("curve", CURVE | {"where": {"width": 1024}}, BadParameter, "2 rows of variant 'compiled'"),
        ("curve", CURVE | {"y": "flat"}, UnknownName, "no column 'flat'"),
    ],
)
def test_a_wrong_name_is_an_error_that_says_what_there_is(root, name, options, error, says):
    with pytest.raises(error) as raised:
        call(name, of(root), **options)
    assert isinstance(raised.value, AnatomyError) and says in str(raised.value)


def test_rows_are_chosen_by_values_lists_patterns_and_flags():
    table = [{"a": 1, "b": "train x", "c": True}, {"a": 2, "b": "eval x", "c": False}]
    assert rows.meeting(table, {"a": 1}) == table[:1]
    assert rows.meeting(table, {"a": [1, 2], "b": "eval *"}) == table[1:]
    assert rows.meeting(table, {"c": False}) == table[1:]
    with pytest.raises(UnknownName):
        rows.meeting(table, {"a": True})  # a flag is no number


def test_references_select_rows_by_numbers_and_flags(root):
    def told(selectors: str) -> str:
        showing = of(root)
        with using(showing):
            return text(render(showing, f"{NAME}.{selectors}.ratio | .2f"))

    place = "step_wall.compiled.width=1024.tokens=256.role=variant"
    found = told(f'{place}.op="train C=1024 T=256".waits=yes')
    assert float(found) == pytest.approx(made.slowdown(1024, 256), abs=0.02)
    assert found == told(f'{place}.op="train C=1024 T=256".waits=true')
    with pytest.raises(UnknownName, match="no waits 'no'"):
        told(f"{place}.waits=no")
    with pytest.raises(UnknownName, match=r"column 'widht'\. Did you mean 'width'"):
        told("compiled.widht=1024")
    with pytest.raises(BadParameter, match=r"Add one of .*width: 256, 512, 1024, 2048, 4096"):
        told("compiled.tokens=256.quantity=step_wall.samples=240")


def test_a_control_with_a_name_has_it_on_the_axis_of_a_line(root):
    named = call("payoff", of(root), **LINE, labels={"eager": "as it was"})
    assert "time / as it was" in named
    assert "time / as it was" not in call("payoff", of(root), **LINE)
