"""The comparison of harnesses as pages show it."""

from html import unescape

import pytest

from anatomy.chapters.harnesses import figures, mistakes, references
from anatomy.chapters.harnesses.contest import scoreboard, shortfalls, standings, targets
from anatomy.chapters.harnesses.contest.scoreboard import sheet
from anatomy.chapters.harnesses.contest.standings import OURS, RIVALS, Contest, where
from anatomy.chapters.harnesses.timed_call import timed_call
from anatomy.figures.charts import clouds, svg
from anatomy.figures.text import inline
from anatomy.judge import merging
from anatomy.record import recording
from anatomy.record.showing import Showing, using
from anatomy.site.collecting import on_page
from anatomy.table import units
from anatomy.table.errors import AnatomyError, BadParameter, UnknownName
from tests.chapters.harnesses import contests
from tests.fakes import synthetic
from tests.site.test_page import Balance


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("contest")
    contests.record(folder)
    return folder


@pytest.fixture
def showing(root):
    return Showing(root=root, machine=synthetic.MACHINE, page="how.md", url="how/")


@pytest.fixture(scope="module")
def contest(root):
    return Contest.of(recording.all_recordings(root))


def lines(sheet):
    return {line[0]: dict(zip(sheet.heads, line, strict=True)) for line in sheet.lines}


def test_the_spreads_stand_beside_what_the_stopwatch_moves_by_itself(contest):
    spread = lines(sheet(contest, "spread", "gpu_cold"))["W5 softmax"]
    names = ("#compare, six in a row", "#compare", "#inductor", "#do_bench median")
    shares = [float(spread[name][:-1]) for name in names]
    assert shares == sorted(shares) and shares[0] < 0.2
    assert spread["#takes"].endswith("µs")
    closest = where(contest.spreads, op="W5 softmax", quantity="gpu_cold").ratio.max()
    shown = float(spread["#ours / best of theirs"].partition("×")[0])
    assert shown == pytest.approx(closest, rel=0.1)
    wall = sheet(contest, "spread", "step_wall")
    assert "#compare, six in a row" not in wall.heads, "no long run has wall times"
    assert {len(line) for line in wall.lines} == {len(wall.heads)}


def test_a_contest_without_long_runs_or_reference_has_its_other_figures(contest):
    short = contest.estimates[contest.estimates.part != "long"]
    for reference in (contest.reference, contest.reference.iloc[:0]):
        bare = Contest(short, reference)
        for part in scoreboard.PARTS:
            found = sheet(bare, part, "gpu_cold")
            assert {len(line) for line in found.lines} <= {len(found.heads)}
        assert lines(sheet(bare, "spread", "gpu_cold"))["W5 softmax"]["#compare"]
        assert targets.target(bare, "coverage-blocks").verdict == "open"


def test_a_bias_is_a_share_of_long_kernels_and_microseconds_of_short_ones(contest):
    bias = lines(sheet(contest, "bias", "gpu_cold"))
    long, short = bias["W8 matmul 8192"], bias["W1 add 1 element"]
    assert (long["#do_bench mean"], short["#inductor"]) == ("+5.00%", "-0.06 µs")
    assert long["#reference"] == "1.600 ms [1.597, 1.603]"


def test_a_bias_of_ours_beyond_the_rule_is_marked(contest):
    table = contest.estimates.copy()
    table.loc[(table.variant == "compare") & (table.op == "W5 softmax"), "median_s"] *= 1.05
    off = Contest(table, contest.reference)
    warm, wall = (lines(sheet(off, "bias", quantity)) for quantity in ("gpu_warm", "step_wall"))
    assert warm["W5 softmax"]["#compare"].endswith(scoreboard.BREAKS)
    assert not warm["W8 matmul 8192"]["#compare"].endswith(scoreboard.BREAKS)
    assert not wall["W5 softmax"]["#compare"].endswith(scoreboard.BREAKS), "without a target"


def test_a_target_has_its_figure_its_verdict_and_where_it_stands(contest):
    found = lines(sheet(contest, "targets"))
    power = next(line for says, line in found.items() if "true 2 %" in says)
    assert power["verdict"] == "met" and power["#found"].startswith("100% [")
    assert power["where it stands"] == "6 of 6"
    spread = next(line for says, line in found.items() if "half of Timer" in says)
    assert spread["verdict"] == "not met", "three workloads are not seven"


def test_each_missed_target_is_explained_where_it_is_missed(contest):
    found = sheet(contest, "misses").lines
    missed = {each.says for each in targets.judged(contest).values() if each.met is False}
    assert missed and {line[1] for line in found} <= missed
    assert all(line[3].endswith(".") for line in found)


def test_a_record_of_another_card_is_told_beside_what_is_held_against_it(showing, monkeypatch):
    calls = figures.recordings(showing)
    told = "of another card of this model"
    assert told not in figures._apart(calls, "bias")
    for each in calls:
        if each.name == standings.REFERENCE:
            other = each.recording.data["machine"] | {"card": "another"}
            monkeypatch.setitem(each.recording.data, "machine", other)
    assert told in figures._apart(calls, "bias") and told in figures._apart(calls, "coverage")
    assert told not in figures._apart(calls, "spread"), "which asks no record"
    assert figures._apart(calls[:1], "bias") == "", "nothing to hold it against"


def test_where_nothing_is_missed_the_page_says_so(showing, monkeypatch):
    monkeypatch.setattr(shortfalls, "explained", lambda _: [])
    with using(showing):
        html = figures.harnesses("misses")
    assert "No target that can be decided is missed." in html and "<table" not in html


@pytest.mark.parametrize("part", scoreboard.PARTS)
def test_every_part_is_a_figure_that_leads_to_its_sources(part, showing):
    with using(showing):
        html = figures.harnesses(part, caption="See `compare`.")
    Balance(html)
    assert "Toy GPU" in html and "See <code>compare</code>." in html
    assert html.count("<figure") == 1 and ", 9 recordings" in html
    assert ("<svg" in html) is (part in {*figures.CHARTS, "errors", "coverage"})


def test_the_chart_has_a_mark_for_each_harness_and_workload(contest, monkeypatch):
    drawn = []
    monkeypatch.setattr(figures.svg, "chart", lambda panels, label: drawn.extend(panels) or "")
    figures._chart(contest, "spread", "gpu_cold")
    ((_, (_, (points, _, logarithmic, near))),) = drawn
    assert len(points) == len(contests.WORKLOADS) * 4 and logarithmic and not near
    ours = (p for p in points if p["series"] == "compare")
    one = next(p for p in ours if p["label"].startswith("W5 softmax: "))
    assert 0.1 < one["value"] < 1.1 and one["hover"].startswith("W5 softmax, compare: ")


def test_what_is_missing_is_a_gap_with_its_commands_and_the_rest_is_shown(tmp_path):
    with using(Showing(root=tmp_path, machine=synthetic.MACHINE)):
        html = figures.harnesses("targets")
    assert "9 recordings are missing" in html and "<table" not in html
    assert "pytorch-gpu-anatomy record harnesses.estimates --process 5" in unescape(html)
    contests.record(tmp_path, estimates=2, reference=0)
    with using(Showing(root=tmp_path, machine=synthetic.MACHINE)):
        html = figures.harnesses("targets")
    assert "7 recordings are missing" in html and "open" in html and "<table" in html


def test_a_wrong_part_or_quantity_is_an_error_even_while_collecting():
    door = "from anatomy.chapters.harnesses.figures import harnesses"
    blocks = f'```python exec="on" html="1"\n{door}\n{{}}\n```\n'
    asked, wrong = on_page("a.md", blocks.format('print(harnesses("spread"))'))
    assert len(asked) == 9 and not wrong
    _, wrong = on_page("a.md", blocks.format('print(harnesses("spred"))'))
    assert "There is no part of the comparison 'spred'. Did you mean 'spread'" in wrong[0]
    _, wrong = on_page("a.md", blocks.format('print(harnesses("spread", "cold"))'))
    assert "There is no quantity 'cold'" in wrong[0]


def test_a_target_in_prose_is_a_chip_or_its_figure(showing):
    chip = inline.render(showing, "target:power")
    assert ">met</span>" in chip and "6 of 6" in chip
    assert unescape(inline.render(showing, "target:power | found")).startswith("100% [")
    assert inline.render(showing, "target:power | detail") == "6 of 6"
    assert inline.render(showing, "target:power | count").endswith(" 6 of 6")
    with pytest.raises(UnknownName, match=r"no target 'pwer'\. Did you mean 'power'"):
        inline.render(showing, "target:pwer")
    with pytest.raises(AnatomyError, match="a target has found, detail and count"):
        inline.render(showing, "target:power | says")


def test_raw_samples_are_drawn_with_the_medians_of_their_blocks(tmp_path):
    contests.example(tmp_path)
    with using(Showing(root=tmp_path, machine=synthetic.MACHINE)):
        html = figures.samples("worked_example.kernel", quantity="gpu_cold", caption="All of them.")
    Balance(html)
    assert "<svg" in html and "All of them." in html
    assert "softmax (again)" in html and "2% more rows" not in html


def test_of_several_processes_the_samples_of_the_first_are_drawn(tmp_path, monkeypatch):
    file = contests.example(tmp_path)
    rows = recording.load(file).data["rows"]
    merged = merging.merged([rows, rows, rows])
    drawn = []
    monkeypatch.setattr(figures.svg, "Drawing", lambda *told: drawn.append(told) or told)
    monkeypatch.setattr(figures.svg, "chart", lambda *_: "")
    for table in (rows, merged):
        figures._samples(None, table[:3])
    (_, (one, _, _)), (_, (three, _, _)) = drawn
    assert one == three and max(point["block"] for point in one) == synthetic.BLOCKS


def test_an_experiment_without_samples_can_not_be_drawn(monkeypatch):
    with using(synthetic.showing()), pytest.raises(AnatomyError, match="keeps no raw samples"):
        figures.samples("contiguity.bench", quantity="gpu_warm")


def test_a_worked_example_that_was_not_recorded_is_a_gap(tmp_path):
    with using(Showing(root=tmp_path, machine=synthetic.MACHINE)):
        html = figures.samples("worked_example.kernel")
    assert "pytorch-gpu-anatomy record worked_example.kernel" in html and "<svg" not in html


@pytest.mark.parametrize("width", svg.WIDTHS.values())
def test_each_sample_stands_in_its_block(width, tmp_path):
    points = [
        {"block": block, "series": name, "value": block + 0.1 * i, "median": block + 0.1}
        for block in (1, 2, 3)
        for name in ("a", "a (again)")
        for i in range(3)
    ]
    bands = [{"series": "a", "low": 1.1, "high": 3.1, "hover": "median 2.1"}]
    spec = clouds.samples(points, bands, "time, µs", width=width)
    kept = [layer["data"]["values"] for layer in spec["layer"]]
    assert bands in kept and points in kept
    heights = {layer["encoding"]["y"]["field"] for layer in spec["layer"]}
    assert heights == {"low", "value", "median"}
    drawn = svg.Drawing("clouds.samples", (points, bands, "time, µs"))
    assert svg.picture(drawn, width, tmp_path).endswith("</svg>")


def test_harnesses_differ_in_shape_and_place_not_in_colour_alone():
    points = [
        {"label": "W1", "series": name, "value": 1.0, "hover": name} for name in contests.SPREADS
    ]
    spec = clouds.harnesses(points[:4], "spread, %", True, width=680)
    marks = spec["layer"][-1]["encoding"]
    assert len(set(marks["shape"]["scale"]["range"])) == 4
    assert marks["yOffset"]["field"] == "series"
    assert marks["x"]["scale"]["type"] == "log"
    phone = clouds.harnesses(points[:4], "spread, %", True, width=330)
    (slots,) = (
        layer["encoding"]["yOffset"]["scale"]["domain"]
        for layer in phone["layer"]
        if "yOffset" in layer["encoding"]
    )
    names = list(contests.SPREADS)[:4]
    assert slots[3:] == names and not any(map(str.strip, slots[:3])), "under the workload's name"


def test_a_bias_in_prose_is_the_contests(showing, contest):
    ours = where(contest.biases, variant=OURS)
    wall = ours[ours.quantity == "step_wall"].bias.abs().max()
    ours = ours[ours.quantity != "step_wall"]
    capped, long = ours.op == "W8 matmul 8192", ours.reference_s >= 1e-5
    said = {name: inline.render(showing, f"bias: {name}") for name in references.BIASES}
    assert units.percent(ours[long & ~capped].bias.abs().max(), 2) in unescape(said["long"])
    assert units.format_value(ours[~long].off_s.abs().max(), "us.2") in unescape(said["short"])
    assert units.percent((-ours[capped].bias).max(), 2) in said["power-limited"]
    assert units.percent(wall, 2) in said["wall"]
    with pytest.raises(BadParameter, match="a bias is one of long, short, power-limited, wall"):
        inline.render(showing, "bias: most")


def test_what_intervals_hold_is_told_from_the_least_to_the_most(showing, contest):
    shares = where(contest.coverages, kind="minutes apart").share
    html = inline.render(showing, "held: minutes apart")
    assert units.percent(shares.min(), 2) in html and units.percent(shares.max(), 2) in html
    with pytest.raises(BadParameter, match="long run, minutes apart, processes"):
        inline.render(showing, "held: tomorrow")


def test_mistakes_are_drawn_with_every_way_and_its_counts(contest):
    there = mistakes.ways(contest.errors)
    ours = [way for way in there if way.ours]
    assert [way.name for way in ours] == ["one process", "3 processes", "compare"]
    assert [way.group for way in there[:3]] == [mistakes.OURS_ALONE] * 2 + [mistakes.ALL_ALIKE]
    assert {way.group for way in there[3:]} == {mistakes.ALL_ALIKE}, "beside ours, and alike"
    assert there[: len(ours)] == ours and len(there) > len(ours), "ours first, then the others"
    picture = unescape(mistakes.mistakes(contest.errors))
    for way in there:
        assert way.name in picture
        for hits, count in way.told.values():
            assert picture.count(f">{hits} of {count}<") >= 2, "on a desk and on a phone"
    for row in where(contest.errors, variant=OURS, by="verdict").itertuples():
        assert ours[0].told[row.kind] == (row.hits, row.count)
    assert mistakes.mistakes(contest.errors[:0]) == ""


def test_a_page_has_the_picture_of_mistakes_and_its_table_in_a_fold(showing):
    with using(showing):
        html = figures.harnesses("errors", caption="x")
    assert html.index("<svg") < html.index("<details") < html.index("equals told apart</td>")


def test_a_harness_has_one_mark_in_all_charts_of_a_quantity(contest, monkeypatch):
    drawn = []
    monkeypatch.setattr(svg, "chart", lambda panels, label: drawn.append(panels[0][1]) or "")
    for part in ("spread", "bias"):
        figures._chart(contest, part, "gpu_cold")
    orders = [list(dict.fromkeys(point["series"] for point in each.arguments[0])) for each in drawn]
    assert orders == [[OURS, *RIVALS["gpu_cold"]]] * 2


def test_a_timed_call_is_named_on_a_desk_and_on_a_phone():
    with using(synthetic.showing()):
        html = timed_call(caption="See it.")
    assert html.count("<svg") == 2 and "See it." in html
    for name in ("sleeps", "flush", "kernel", "timed, event to event"):
        assert html.count(f">{name}<") >= 2, f"{name} has no room on one of them"


@pytest.mark.parametrize(("asked", "why"), [("nope", "a kind of pair"), ("same | nope", "format")])
def test_a_wrong_count_of_one_process_is_refused_for_what_is_wrong_with_it(showing, asked, why):
    with using(showing), pytest.raises(BadParameter, match=f"{why}.*'nope'"):
        inline.render(showing, f"one-process: {asked}")
