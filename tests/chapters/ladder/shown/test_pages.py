"""The ladder's pages: whom a rung is held against, and how that is shown."""

import ast
import itertools
import json
import re

import pytest

from anatomy import page
from anatomy.chapters.ladder.claims.rungs import TRAINING
from anatomy.chapters.ladder.shown import changes, ladders, rungs, scripts
from anatomy.figures.charts import grammar, stacks, svg
from anatomy.figures.text import inline
from anatomy.record import recording, signatures
from anatomy.record.showing import Showing, using
from anatomy.table.errors import UnknownName
from tests.chapters.ladder import ladder_rows
from tests.fakes import synthetic
from tests.fakes.sites import CHECKOUT
from tests.site.test_page import stale, text

NAME = "ladder.training"
DOCS = CHECKOUT / "docs" / "ladder"
SCRIPTS = (*("0_baseline", "1_cublas", "2_sdpa", "3_compile", "4_transformer_engine", "5_fastest"),)
CLIMBED = {"width": 1024, "layers": 2}
# Width -> how it was recorded.
RECORDED = {need.params.get("width", 1024): need.params for need in TRAINING}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    for params in RECORDED.values():
        ladder_rows.training(folder, **params)
    synthetic.MAKERS["limits.ceilings"](folder)
    return folder


def table(root, width: int = 1024) -> list[dict]:
    return read(root, width)["rows"]


def read(root, width: int) -> dict:
    return recording.find(root, synthetic.MACHINE, NAME, **bound(RECORDED[width])).data


def bound(params: dict) -> dict:
    return signatures.signature(NAME).bind(**params)


def changed(root, into, change, width: int = 1024):
    """The recording with a change made to each of its rows."""
    data = json.loads(json.dumps(read(root, width)))
    for row in data["rows"]:
        change(row)
    data["rows"] = synthetic.as_said(data["rows"])
    recording.save(data, into)
    return into


def shown(root, part: str = "speed", **options) -> str:
    with using(synthetic.showing(root=root)):
        return ladders.ladder(part, **CLIMBED | options)


# --- whom a rung is held against


def test_the_read_half_allows_what_the_experiment_allows():
    ladder_rungs = pytest.importorskip("anatomy.chapters.ladder.rungs")
    for way in ladder_rungs.TRAINING:
        for column, allowed in (("loss_error", way.loss), ("gradient_error", way.gradients)):
            assert rungs.ALLOWED[column][way.products] == allowed, way.label


def test_outputs_are_allowed_what_the_experiment_allows():
    reason = "the forward pass is measured elsewhere"
    measured = pytest.importorskip("anatomy.chapters.ladder.inference", reason=reason)
    assert rungs.ALLOWED["output_error"] == measured.ALLOWED


def test_the_way_that_counts_is_the_first_of_its_script(root):
    assert scripts.ways("1_cublas")[0] == "amp bf16" and scripts.ways("5_fastest")[0] == "bf16"
    written = ast.parse("WAYS = (*('a', 'b'), 'c', *('d',))").body[0].value
    assert list(scripts._texts(written)) == ["a", "b", "c", "d"]
    backwards = list(reversed(table(root)))
    names = [row["variant"] for row in rungs.one_way_of_each(rungs.of(backwards))]
    assert names == [
        *("0 fp32", "1 amp bf16", "2 amp bf16", "3 default", "4 current", "5 bf16"),
    ]


def test_the_kinds_of_kernels_are_those_of_the_profile():
    ladder_kernels = pytest.importorskip("anatomy.chapters.ladder.kernels")
    assert [f"{kind}_s" for kind in ladder_kernels.KINDS] == list(rungs.KINDS)[:-1]


def test_a_rung_is_held_against_the_first_way_of_the_one_it_changes(root):
    there = rungs.of(table(root))
    by_name = {row["variant"]: row for row in there}
    assert rungs.rung_before(by_name["0 fp32"], there) is None
    held = {"1 tf32": "0 fp32", "2 amp bf16": "1 amp bf16", "3 reduce-overhead": "2 amp bf16"}
    held |= dict.fromkeys(("4 current", "5 fp8 without a graph"), "3 default")
    for name, below in held.items():
        assert rungs.rung_before(by_name[name], there)["variant"] == below
    over = rungs.over_rung_before(by_name["2 amp bf16"], there)
    assert over["ratio"] == pytest.approx(0.20 / 0.30, rel=0.01) and over["verdict"] == "faster"
    assert rungs.over_rung_before(by_name["4 bf16"], there)["verdict"] == "slower"


def test_what_is_captured_in_a_graph_is_held_against_the_compiled_graph(root):
    there = rungs.of(table(root))
    by_name = {row["variant"]: row for row in there}
    for name in ("4 current in a graph", "5 bf16", "5 fp8 delayed"):
        assert rungs.rung_before(by_name[name], there)["variant"] == "3 reduce-overhead"
    by_name["3 reduce-overhead"]["median_s"] = None
    assert rungs.rung_before(by_name["5 bf16"], there)["variant"] == "3 default"


def test_a_forward_pass_alone_is_timed_as_a_call(root):
    assert {rungs.timed(row) for row in rungs.of(table(root))} == {"step"}
    assert rungs.timed({"op": "forward"}) == "call"


def test_a_rung_that_could_not_be_measured_is_passed_over(root):
    there = rungs.of(table(root))
    for row in there:
        if row["rung"] == "2_sdpa" or row["variant"] == "1 amp bf16":
            row["median_s"] = None
    compiled = next(row for row in there if row["variant"] == "3 default")
    assert rungs.rung_before(compiled, there)["variant"] == "1 amp fp16"
    assert "2 amp bf16" not in [row["variant"] for row in rungs.one_way_of_each(there)]


def test_rows_come_rung_by_rung_and_without_the_duplicate(root):
    there = rungs.of(table(root))
    digits = [row["rung"][0] for row in there]
    assert digits == sorted(digits) and not any("again" in row["variant"] for row in there)
    assert {row["op"] for row in there} == {"forward and backward"}
    assert {row["op"] for row in rungs.of(table(root), "with AdamW")} == {"with AdamW"}


def test_what_a_step_is_made_of_adds_up_to_it(root):
    for row in rungs.of(table(root)):
        pieces = rungs.pieces(row)
        if row["variant"] == "4 block":
            assert pieces == [] and rungs.standing(row) == "void"
        else:
            assert sum(seconds for _, seconds in pieces) == pytest.approx(row["median_s"])
            assert rungs.standing(row) == "passes"
    refused = {"note": "Rung 4 needs Transformer Engine", "loss_error": None}
    assert rungs.standing(refused) == "" and rungs.pieces(refused | {"median_s": None}) == []


# --- how it is shown


@pytest.mark.parametrize("part", ladders.PARTS)
def test_each_part_says_why_a_way_has_no_figures(root, part):
    html = shown(root, part, variants=["3 default", "4 block"])
    assert "3 default" in text(html)
    assert "void: its gradients stray" in text(html), "a way may not be left out without a word"


def test_the_table_has_both_speedups_the_rate_and_the_shares(root):
    html = shown(root)
    (line,) = (cells for cells in lines(html) if cells[0] == "2 amp bf16")
    assert line[2].startswith("1.5") and "faster" in line[3] and "vs 1 amp bf16" in line[3]
    assert line[4].startswith("5.0")
    row = next(row for row in rungs.of(table(root)) if row["variant"] == "2 amp bf16")
    assert float(line[5]) == pytest.approx(row["flops"] / row["median_s"] / 1e12, rel=0.01)
    assert float(line[6]) == pytest.approx(float(line[7]), rel=0.02), "both are of bf16"
    (eight,) = (cells for cells in lines(html) if cells[0] == "5 fp8")
    assert float(eight[7]) > float(eight[6]), "FP8's own limit is higher than bf16's"


def test_the_gates_stand_beside_what_is_allowed(root):
    (line,) = (cells for cells in lines(shown(root, "gates")) if cells[0] == "4 current")
    assert line[1:3] == ["fp8", "flash"]
    assert line[3:8] == ["1.0e-04", "1.6e-02", "4.0e-03", "2.5e-01", "✓passes"]
    assert line[8] == "25 174 016" and line[9] == "100%"


def test_a_step_of_decoding_is_held_against_the_memory(root, tmp_path):
    def decodes(row):
        row |= {"limit": "read", "bytes": int(1e9), "output_error": 0.01, "products": "bf16"}
        row |= {"loss_error": None, "gradient_error": None, "parameters": None}

    folder = changed(root, tmp_path, decodes)
    html = shown(folder)
    (line,) = (cells for cells in lines(html) if cells[0] == "3 default")
    row = next(row for row in rungs.of(table(folder)) if row["variant"] == "3 default")
    assert "TB/s" in text(html) and "TFLOP/s" not in text(html)
    assert float(line[5]) == pytest.approx(1e9 / row["median_s"] / 1e12, rel=0.01)
    (gate,) = (cells for cells in lines(shown(folder, "gates")) if cells[0] == "3 default")
    assert gate[:6] == ["3 default", "bf16", "flash", "1.0e-02", "3.1e-02", "✓passes"]
    assert "parameters" not in text(shown(folder, "gates")), "a column without a value"


def test_costs_show_the_first_step_and_when_it_is_paid_back(root):
    (line,) = (cells for cells in lines(shown(root, "costs")) if cells[0] == "3 default")
    assert line[4] == "96" and line[6] == "4.00 s" and line[7].startswith("1800 [")
    (graph,) = (cells for cells in lines(shown(root, "costs")) if cells[0] == "5 bf16")
    assert graph[1] == graph[2] == "—", "a graph's pool is not in the allocator's account"


def lines(html: str) -> list[list[str]]:
    found = []
    for row in re.findall(r"<tr[^>]*>(.*?)</tr>", html, re.S):
        row = re.sub(r'<span class="[^"]*\bwords">.*?</span>', "", row)
        cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S)
        found.append([" ".join(re.sub("<[^>]+>", "", cell).split()) for cell in cells])
    return found


def drawn(root, monkeypatch, part: str, **options) -> list[tuple]:
    """What is given to the pictures."""
    kept = []

    def keep(panels, label):
        kept.extend(drawing.arguments for _, drawing in panels)
        return json.dumps([[list(drawing.arguments) for _, drawing in panels], label])

    monkeypatch.setattr("anatomy.chapters.ladder.shown.ladders.svg.chart", keep)
    shown(root, part, **options)
    return kept


def test_bars_are_stacked_without_a_hole_up_to_the_step(root, monkeypatch):
    ((bars, ends, kinds, *_),) = drawn(root, monkeypatch, "time")
    for end in ends:
        mine = [bar for bar in bars if bar["label"] == end["label"]]
        assert [bar["kind"] for bar in mine] == kinds and mine[0]["start"] == 0
        for one, other in itertools.pairwise(mine):
            assert one["end"] == other["start"]
        assert mine[-1]["end"] == pytest.approx(end["value"])


@pytest.mark.parametrize("width", svg.WIDTHS.values())
def test_charts_are_drawn_with_every_name_and_figure(root, monkeypatch, tmp_path, width):
    for arguments in drawn(root, monkeypatch, "time"):
        picture = svg.picture(svg.Drawing("stacks.parts", arguments), width, tmp_path)
        assert "torch.compile" in picture and "NaN" not in picture
        assert "<image" not in picture and "http" not in re.sub(r'xmlns\S+"', "", picture)


@pytest.mark.parametrize("width", svg.WIDTHS.values())
def test_a_part_without_room_for_its_share_is_named_under_its_bar(width):
    kinds = ["matmuls", "attention", "other", "no kernel"]
    shares = {"long": (60, 39, 1, 0), "short": (9, 0, 0, 1)}
    bars, ends = [], []
    for label, sizes in shares.items():
        for at, (kind, size) in enumerate(zip(kinds, sizes, strict=True)):
            place = {"start": sum(sizes[:at]), "end": sum(sizes[: at + 1])}
            share = f"{size / sum(sizes):.0%}" if size else ""
            bars.append({"label": label, "kind": kind, "share": share, "hover": ""} | place)
        ends.append({"label": label, "value": sum(sizes), "reach": sum(sizes), "text": ""})

    def under(bars: list[dict], kinds: list[str]) -> dict[str, list[str]]:
        layers = stacks.parts(bars, ends, kinds, "ms", width=width)["layer"]
        kept = (layer["data"]["values"] for layer in layers)
        found = next(data for data in kept if set(data[0]) == {"label", "text"})
        return {each["label"]: each["text"] for each in found}

    said = under(bars, kinds)
    assert said["long"] == ["other 1%"], "parts of nothing are not named"
    assert said["short"][-1].endswith("no kernel 10%")
    wordy = under(
        [bar | {"kind": 30 * f"{bar['kind']} "} for bar in bars], [30 * f"{k} " for k in kinds]
    )
    assert max(len(line) for line in wordy["short"]) * grammar.CHARACTER <= width
    assert len(wordy["short"]) > 1, "what is long goes on in another line"


def test_a_chart_of_one_rung_alone_is_drawn(root, monkeypatch):
    assert shown(root, "climb", variants=["0 fp32"]).count("<svg") == 2
    ((*arguments,),) = drawn(root, monkeypatch, "time", variants=["0 fp32"])
    assert stacks.parts(*arguments, width=330)["layer"]


def test_a_profile_longer_than_its_step_is_told_and_not_taken_for_no_gap(root, tmp_path):
    def longer(row):
        if row.get("busy_s") and row["variant"] == "3 default":
            row["gap_s"] = -0.05 * row["median_s"]

    html = text(shown(changed(root, tmp_path, longer), "time"))
    assert "(5.0%) longer than the step" in html and "-5.0%" in html
    assert "longer than the step" not in text(shown(root, "time"))


def test_without_a_profile_there_is_a_table_and_no_chart(root, tmp_path):
    def unprofiled(row):
        row.pop("product_s", None)

    html = shown(changed(root, tmp_path, unprofiled), "time")
    assert "<svg" not in html and "3 default" in text(html)


def test_a_table_shows_the_rows_that_are_wanted(root):
    with using(synthetic.showing(root=root)):
        html = page.show(
            NAME, op="forward and backward", where={"rung": "3_*"}, columns=["variant"], **CLIMBED
        )
        assert "3 default" in text(html) and "2 amp bf16" not in text(html)
        with pytest.raises(UnknownName, match="rung"):
            page.show(NAME, where={"rung": "6_*"}, **CLIMBED)


def test_a_wrong_name_is_an_error_and_a_missing_recording_a_gap(root, tmp_path):
    with pytest.raises(UnknownName, match="part of the ladder"):
        shown(root, "sped")
    with pytest.raises(UnknownName, match="3 defualt"):
        shown(root, variants=["3 defualt"])
    with pytest.raises(UnknownName, match="op"):
        shown(root, op="backward")
    assert "not recorded" in text(shown(tmp_path)).lower()
    with using(Showing(root=root, machine=synthetic.MACHINE, collecting=True)) as showing:
        assert ladders.ladder("time", **CLIMBED) == changes.changes("2_sdpa") == ""
        del showing


def test_an_old_recording_shows_its_badge(root, tmp_path):
    def renamed(row):
        row["variant"] = row["variant"].replace("3 default", "3 old")

    showing = stale(synthetic.showing(root=changed(root, tmp_path, renamed)), NAME, **CLIMBED)
    with using(showing):
        html = ladders.ladder(**CLIMBED, variants=["3 default"])
    assert 'class="notice badge"' in html and "3 default" not in text(html)


def test_ways_that_could_not_run_are_told_once_and_have_no_empty_lines(root, tmp_path):
    def refused(row):
        if row.get("rung") == "4_transformer_engine":
            told = ("op", "variant", "role", "quantity", "rung", "way", "products")
            for name in set(row) - {*told}:
                row[name] = None
            row["note"] = "NotImplementedError: Its FP8 products need 8 tokens."

    folder = changed(root, tmp_path, refused)
    for part in ("speed", "costs", "gates", "climb", "time"):
        html = shown(folder, part, variants=["3 default", "4 current", "4 delayed"])
        assert html.count("Its FP8 products need 8 tokens.") == 1, part
        assert "<code>4 current</code>, <code>4 delayed</code>: Its FP8" in html, part
        assert "3 default" in [cells[0] for cells in lines(html)]
        assert "4 current" not in [cells[0] for cells in lines(html)], part


@pytest.mark.parametrize("name", ["index", "inference", "decoding", *SCRIPTS])
def test_each_reference_to_the_steps_meets_one_row(root, name):
    written = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    wrong = inline.replace(synthetic.showing(root=root), written)[1]
    assert [each for each in wrong if NAME in each] == [], "as soon as there is a recording"


def test_a_page_says_once_how_a_gap_is_filled(tmp_path):
    with using(synthetic.showing(root=tmp_path)):
        first, again = (ladders.ladder("speed", **CLIMBED) for _ in range(2))
        other = ladders.ladder("speed", width=4096, layers=2)
    assert "pytorch-gpu-anatomy record ladder.training" in text(first)
    assert "Not recorded yet." in text(again) and "Record it on" not in text(again)
    assert "--width 4096" in text(other), "another command has to be named"


def test_a_recording_that_is_older_than_a_way_still_shows_the_others(root):
    asked = ["0 fp32", "3 default", "6 new"]
    showing = stale(synthetic.showing(root=root), NAME, **CLIMBED)
    with using(showing):
        shown = ladders.ladder("climb", variants=asked, **CLIMBED)
        assert "Out of date" in text(shown) and "3 default" in text(shown)
        nothing = ladders.ladder("climb", variants=["6 new"], **CLIMBED)
        assert "Out of date" in text(nothing) and "3 default" not in text(nothing)
    with using(synthetic.showing(root=root)), pytest.raises(UnknownName):
        ladders.ladder("climb", variants=asked, **CLIMBED)
