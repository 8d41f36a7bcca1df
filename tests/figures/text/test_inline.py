"""References in prose: one row or an error that says how to get to one, and gaps for the rest."""

import json
import re
from html import escape, unescape
from statistics import median
from types import SimpleNamespace

import pytest

from anatomy import claims
from anatomy.figures.text import inline, spans, values
from anatomy.record.provenance.freshness import Freshness
from anatomy.record.showing import Asked
from anatomy.table import units
from anatomy.table.errors import AnatomyError, BadParameter, UnknownName
from tests.claims.test_claims import edited
from tests.fakes import synthetic

BENCH = "contiguity.bench.matmul.gpu_warm"


def shown(body: str, **given) -> str:
    """The text of a reference, without markup."""
    html = inline.render(synthetic.showing(**given), body)
    return re.sub(r"&#(\d+);", lambda code: chr(int(code[1])), re.sub(r"<[^>]*>", "", html))


def row(variant: str, op: str = "matmul", quantity: str = "gpu_warm") -> dict:
    """The synthetic row that a reference should meet, read from the file itself."""
    file = synthetic.shared() / synthetic.MACHINE / "contiguity.bench" / "default.json"
    rows = json.loads(file.read_text())["rows"]
    (found,) = (
        r for r in rows if (r["variant"], r["op"], r["quantity"]) == (variant, op, quantity)
    )
    return found


def test_a_number_is_the_one_in_the_file_in_the_format_asked_for():
    expected = row("sliced_offset_view")
    assert shown(f"{BENCH}.sliced_offset_view.ratio | .2f") == f"{expected['ratio']:.2f}"
    micro = f"{expected['median_s'] * 1e6:.1f} µs"
    assert shown(f"{BENCH}.sliced_offset_view.median_s | us.1") == micro


def test_without_a_format_the_interval_decides_the_digits_and_three_are_the_most():
    found = row("sliced_offset_view")
    ends = (found["median_s"], found["low_s"], found["high_s"])
    assert shown(f"{BENCH}.sliced_offset_view.median_s") == units.seconds(*ends, 3)
    digits = shown(f"{BENCH}.sliced_offset_view.median_s").partition(" ")[0]
    assert len(digits.replace(".", "")) <= 3
    assert shown(f"{BENCH}.sliced_offset_view.median_s | range") == units.seconds_range(*ends)


def test_a_ratio_may_be_over_another_row_than_the_control():
    names = ("sliced_offset_view", "transposed_view")
    blocks = [row(name)["blocks_s"] for name in names]
    over = median(ours / theirs for ours, theirs in zip(*blocks, strict=True))
    for column in ("ratio", "speedup"):
        said = shown(f"{BENCH}.sliced_offset_view.{column} | speed over transposed_view")
        assert said == f"{units.significant(over, 2)}× slower"
        factor = shown(f"{BENCH}.sliced_offset_view.{column} | factor over transposed_view")
        assert factor == f"{units.significant(over, 3 if over < 2 else 2)}× slower"
    assert shown(f"{BENCH}.sliced_offset_view.ratio | x over transposed_view") == units.ratio(over)
    with pytest.raises(BadParameter, match="no median_s"):
        shown(f"{BENCH}.sliced_offset_view.median_s | speed over transposed_view")
    with pytest.raises(UnknownName, match="transposed_view"):
        shown(f"{BENCH}.sliced_offset_view.ratio | speed over transposed")


def test_a_ratio_of_times_is_said_in_one_direction_and_the_exact_one_on_hover():
    found = row("sliced_offset_view")
    times = units.significant(found["ratio"], 2)
    assert shown(f"{BENCH}.sliced_offset_view.ratio | speed") == f"{times}× slower"
    assert shown(f"{BENCH}.sliced_offset_view.speedup | speed") == f"{times}× slower"
    html = inline.render(synthetic.showing(), f"{BENCH}.sliced_offset_view.ratio | speed")
    title = unescape(re.search(r'tabindex="0" title="([^"]*)"', html)[1])
    ends = (found[name] for name in ("ratio", "ratio_low", "ratio_high"))
    for part in (units.ratio_range(*ends), "verdict slower", "noise floor", "paced by the GPU"):
        assert part in title
    with pytest.raises(BadParameter, match="no ratio of times"):
        shown(f"{BENCH}.sliced_offset_view.median_s | speed")
    with pytest.raises(BadParameter, match="neither slower nor faster"):
        shown(f'{BENCH}."contiguous (again)".ratio | speed')


def test_selectors_may_be_columns_quoted_and_in_any_order():
    plain = shown(f"{BENCH}.contiguous.median_s")
    assert shown("contiguity.bench.gpu_warm.contiguous.matmul.median_s") == plain
    assert shown("contiguity.bench.op=matmul.role=control.quantity=gpu_warm.median_s") == plain
    again = shown('contiguity.bench.matmul.gpu_warm."contiguous (again)".median_s | us.3')
    assert again == f"{row('contiguous (again)')['median_s'] * 1e6:.3f} µs"
    assert shown('alignment.thresholds."k 2 B".verdict') == "slower"
    assert shown("alignment.thresholds.factor=k.alignment_bytes=16.verdict") == "undecided"


def test_what_follows_from_a_row_can_be_asked_for():
    found = row("sliced_offset_view")
    assert shown(f"{BENCH}.sliced_offset_view.speedup | .3f") == f"{1 / found['ratio']:.3f}"
    rate = found["flops"] / found["median_s"]
    assert shown(f"{BENCH}.sliced_offset_view.rate | TFLOP/s.1") == f"{rate / 1e12:.1f} TFLOP/s"
    assert shown(f"{BENCH}.sliced_offset_view.share | %.0") == "50%"
    assert shown(f"{BENCH}.sliced_offset_view.share_of") == "matmul fp16"


def test_a_number_selects_the_rows_that_have_just_this_one():
    assert inline._same(16, "16") and inline._same(16.0, "16") and not inline._same(16, "17")
    assert not inline._same(16, "sixteen")


@pytest.mark.parametrize(
    ("note", "told"), [("Out of memory.", "not measured: Out of memory."), (None, "not measured")]
)
def test_a_figure_that_could_not_be_measured_is_a_gap_that_says_why(note, told, tmp_path):
    synthetic.bench(tmp_path, "fp16", 4096)
    lost = dict.fromkeys(("median_s", "low_s", "high_s", "ratio", "blocks_s")) | {"note": note}
    edited(
        tmp_path,
        "contiguity.bench",
        lambda row: row.update(lost if row["variant"] == "sliced_offset_view" else {}),
    )
    for column in ("median_s", "ratio", "ratio | .2f", "median_s | range"):
        assert shown(f"{BENCH}.sliced_offset_view.{column}", root=tmp_path) == told


def test_two_recordings_of_one_experiment_are_told_apart_by_parameters():
    other = shown(
        "contiguity.bench(dtype=fp32, m=8192, n=8192, k=8192).matmul.gpu_warm.contiguous.flops"
    )
    assert other != shown(f"{BENCH}.contiguous.flops")
    with pytest.raises(UnknownName, match=r"parameter of contiguity\.bench called 'dtpye'"):
        shown("contiguity.bench(dtpye=fp32).matmul.gpu_warm.contiguous.flops")


def test_several_rows_are_an_error_that_lists_what_would_be_unique():
    with pytest.raises(BadParameter) as error:
        shown("contiguity.bench.matmul.sliced_offset_view.ratio")
    assert str(error.value) == (
        "it meets 2 rows, and must meet one. Add one of quantity: gpu_warm, gpu_cold."
    )


def test_no_row_is_an_error_that_lists_what_there_is():
    with pytest.raises(UnknownName, match=r"'sliced_view'\. Did you mean 'sliced_offset_view'"):
        shown(f"{BENCH}.sliced_view.ratio")
    with pytest.raises(UnknownName, match=r"no factor 'kk'\. .*Known: aligned, base, k, ld"):
        shown("alignment.thresholds.factor=kk.median_s")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("contiguity.benhc.matmul.gpu_warm.contiguous.ratio", "Did you mean 'contiguity.bench'"),
        (f"{BENCH}.contiguous.mediann_s", "no column 'mediann_s'. Did you mean 'median_s'"),
        ("claim:no-such-thing", "no claim 'no-such-thing'"),
        ("limit:matmul fp61", "no limit 'matmul fp61'. Did you mean 'matmul fp16'"),
        ("seed:fp16-2048.matmul.contiguos", "Did you mean 'contiguous'"),
        ("clam:x", "no kind of reference 'clam'. Did you mean 'claim'"),
        ("machine:gpuu", "no field of the machine 'gpuu'"),
        ("1 + 1", "a reference begins with an experiment"),
        ("contiguity.bench(dtype=fp16.ratio", "never closed"),
        ("contiguity.bench(fp16).matmul.ratio", "'fp16' has no value"),
        ("contiguity.bench", "ends with the column wanted"),
        (f"{BENCH}.contiguous.median_s | furlongs", "neither a format"),
        (f"{BENCH}.contiguous.verdict | .2f", "is text"),
        (f"{BENCH}.contiguous.samples | range", "samples has no interval"),
    ],
)
def test_a_wrong_reference_says_what_is_wrong(body, says):
    page = synthetic.showing(shown=[Asked("contiguity.bench", {}, "page.md:1")])
    with pytest.raises(AnatomyError) as error:
        inline.render(page, body)
    assert says in str(error.value)


def test_a_missing_recording_is_a_gap_with_the_command_and_no_error():
    text = shown("contiguity.bench(m=512).matmul.gpu_warm.contiguous.ratio")
    assert text == "not recorded yet: pytorch-gpu-anatomy record contiguity.bench --m 512"


def test_a_recording_that_is_not_current_is_marked_and_never_an_error(monkeypatch):
    page = synthetic.showing()
    for name in ("contiguity.bench", "limits.ceilings"):
        found = page.find(name)
        key = (page.machine, name, *sorted(found.params.items()))
        stale = Freshness("code-changed", "The code has changed.")
        page.known[key] = type(found)(name, found.params, found.recording, stale)
    assert "out of date" in inline.render(page, f"{BENCH}.contiguous.median_s")
    gap = inline.render(page, f"{BENCH}.a_variant_that_came_later.ratio")
    assert "not in the recording, which is out of date" in gap
    asked = SimpleNamespace(defaults={"median_s": 1.0})
    monkeypatch.setattr(values, "signature", {"contiguity.bench": asked}.__getitem__)
    setting = inline.render(page, f"{BENCH}.contiguous.median_s")
    assert "out of date" not in setting, "what was asked for is no finding"


def test_a_claim_is_one_short_reference_to_all_that_is_known_of_it():
    page = synthetic.showing()
    text = shown("claim:slice-doubles-fp16")
    number = claims.evaluate(page, "slice-doubles-fp16").measured.text
    assert unescape(text) == (
        "In fp16 at 2048 the sliced view takes 1.99 times as long in a matmul. · claimed 1.99×"
        f" · here {number} · ✓holds · evidence"
    )
    html = inline.render(page, "claim:slice-doubles-fp16")
    assert 'class="chip better"' in html and 'title="the original suite&#x27;s guide' in html
    assert 'href="recordings/toy-gpu/contiguity.bench/' in html
    assert shown("claim:slice-doubles-fp16 | measured") == number
    assert shown("claim:slice-doubles-fp16 | claimed") == "1.99×"
    assert shown("claim:slice-doubles-fp16 | verdict") == "✓holds"
    assert shown("claim:slice-doubles-fp16 | states") == "✓misconception confirmed"
    assert shown("claim:slice-doubles-fp16 | refutes") == "✗misconception refuted"
    where = shown("claim:contiguous-beats-strided | condition")
    assert where == (
        "for matmul of sliced_offset_view, layer_norm of transposed_view/as_strided_view, "
        "30 of 90 cases"
    )
    assert shown("claim:contiguous-beats-strided | where") == "in 30 of 90 cases", "shorter"
    assert shown("claim:contiguous-beats-strided | count") == "in 30 of 90 cases"
    assert shown("claim:slice-doubles-fp16 | where") == "", "it holds, so there is nothing to add"


def test_a_claim_without_its_recordings_is_a_visible_gap(tmp_path):
    for part in ("", " | verdict", " | evidence", " | measured"):
        text = shown(f"claim:slice-doubles-fp16{part}", root=tmp_path)
        assert "not recorded yet: pytorch-gpu-anatomy record contiguity.bench --m 2048" in text
    assert "no number" in shown("claim:split-transactions | measured")
    with pytest.raises(BadParameter, match="a claim has verdict, evidence, statement"):
        shown("claim:slice-doubles-fp16 | number")


def test_claims_limits_seeds_and_the_machine_can_be_named():
    page = synthetic.showing(shown=[Asked("contiguity.bench", {}, "page.md:1")])
    assert ">holds<" in inline.render(page, "claim:slice-doubles-fp16")
    assert "1.99" in inline.render(page, "claim:slice-doubles-fp16 | evidence")
    assert "0.6576 ms" in shown("seed:fp16-2048.matmul.sliced_offset_view")
    assert shown("seed:fp16-2048.matmul.sliced_offset_view | ratio") == units.ratio(0.6576 / 0.3297)
    peak = synthetic.FLOPS_PER_S["fp16"]
    assert float(shown("limit:matmul fp16 | TFLOP/s.0").split()[0]) == pytest.approx(
        peak / 1e12, rel=0.02
    )
    assert inline.render(page, "machine:gpu") == "Toy GPU"


def test_a_limit_has_its_share_of_the_makers_figure_and_its_corner(tmp_path, monkeypatch):
    assert shown("limit:matmul fp16 | ridge").endswith(" FLOP/B")
    assert "no datasheet" in inline.render(synthetic.showing(), "limit:copy | reached")
    with pytest.raises(BadParameter, match="no ridge"):
        shown("limit:copy | ridge")
    monkeypatch.setattr(synthetic, "MACHINE", "nvidia-h200")
    synthetic.MAKERS["limits.ceilings"](tmp_path)
    page = synthetic.showing(tmp_path)
    assert "4.80 TB/s" in inline.render(page, "limit:copy | maker")
    share = float(re.search(r">([\d.]+)%<", inline.render(page, "limit:copy | reached"))[1])
    assert share == pytest.approx(100 * 4.0 / 4.8, rel=0.02)
    unmeasured = synthetic.showing(tmp_path / "none")
    assert "record limits.ceilings" in inline.render(unmeasured, "limit:copy | reached")


def test_nothing_is_replaced_in_code_comments_and_escapes():
    text = (
        "`[[x]]` and ``a ` [[x]]`` and \\[[x]] <!-- [[x]] -->\n\n"
        '```python title="x"\n[[x]]\n```\n\n    ~~~\n    [[x]]\n    ~~~\n'
    )
    assert inline.replace(synthetic.showing(), text) == (text, [])


def test_a_reference_may_be_wrapped_over_lines_and_stand_in_a_table():
    wrapped = f"It takes [[{BENCH}.sliced_offset_view.ratio\n| .2f]]."
    assert inline.replace(synthetic.showing(), wrapped)[1] == []
    table = f"| a |\n| --- |\n| [[{BENCH}.sliced_offset_view.ratio | .2f]] |\n"
    text, wrong = inline.replace(synthetic.showing(), table)
    assert not wrong
    assert text.splitlines()[2].count("|") == 2  # the format's bar is gone, and none came in


def test_speeds_in_one_column_of_a_table_are_in_one_unit(monkeypatch):
    ratio = {"sliced_offset_view": 1.5312, "transposed_view": 1.0834}
    first, second = (f"[[{BENCH}.{name}.ratio | speed]]" for name in ratio)
    pick = inline.pick

    def slower(*given) -> dict:
        found = pick(*given)
        ends = dict.fromkeys(("ratio", "ratio_low", "ratio_high"), ratio[found["variant"]])
        return found | ends | {"verdict": "slower"}

    monkeypatch.setattr(inline, "pick", slower)

    def said(*texts: str) -> list[str]:
        table = "| x | {} |\n|---|---|\n| y {} | z |\n| a | b {} |"
        text = "\n\n".join(table.format(*texts[at : at + 3]) for at in range(0, len(texts), 3))
        html, wrong = inline.replace(synthetic.showing(), text)
        assert not wrong
        plain = re.sub(r"&#(\d+);", lambda code: chr(int(code[1])), re.sub(r"<[^>]*>", "", html))
        return re.findall(r"\S+ slower", plain)

    assert said("", "", second) == ["8% slower"]
    assert said(first, "", second) == ["1.53× slower", "1.08× slower"]
    assert said("", first, second) == ["1.5× slower", "8% slower"]  # in two columns
    assert said(first, "", "", second, "", "") == ["1.5× slower", "8% slower"]  # in two tables
    ratio["sliced_offset_view"] = 1.15
    assert said(first, "", second) == ["15% slower", "8% slower"]


def test_wrong_references_are_all_told_with_their_lines_in_the_file():
    text = f"one\n\n[[{BENCH}.nope.ratio]]\n\n```\nx\n```\n\nthree [[y]]\nfour [[z]]\n"
    _, wrong = inline.replace(synthetic.showing(page="a/b.md"), text, offset=4)
    assert [each.split(": ")[0] for each in wrong] == ["a/b.md:7", "a/b.md:13", "a/b.md:14"]


def test_the_markup_survives_markdown():
    from markdown import markdown

    text, _ = inline.replace(
        synthetic.showing(),
        f"_It_ takes [[{BENCH}.sliced_offset_view.ratio | range]] and "
        "[[contiguity.bench(m=512).matmul.gpu_warm.as_strided_view.ratio]] of *that*.",
    )
    html = markdown(text)
    assert html.count("<em>") == 2
    assert 'class="measured"' in html and "&lt;span" not in html
    assert "--m 512" in re.sub(r"&#(\d+);", lambda code: chr(int(code[1])), html)


def test_text_in_a_sentence_is_text_for_html_and_for_markdown():
    from markdown import markdown

    told = '<b>"x"</b> *x* _y_ `z` [1](2) ![i](j) & \\* |'
    blocks = ("# x", "1. x", "- x", "> x", "    x", "a\n\n    b", "* * *")
    for text in (told, *blocks, "[a](x onload=y)"):
        html = markdown(f"word {spans.inert(spans.figure('given', text, text))} word")
        html = html.replace("&#10;", "\n")
        assert html.count("<") == 4 and html.count(">") == 4, html
        parts = re.search('title="(.*)">(.*)</s', html, re.DOTALL).groups()
        assert [unescape(each) for each in parts] == [text, text]
        line = markdown(spans.inert(escape(text)))  # where a reference begins a line
        assert unescape(re.sub("^<p>|</p>$", "", line)) == text


def test_captions_take_references_code_and_links():
    page = synthetic.showing(
        page="benchmarks/a.md",
        url="benchmarks/a/",
        pages={"benchmarks/b.md": "benchmarks/b/", "index.md": ""},
    )
    html = inline.render_text(
        page, "`a < b` is [[limit:copy]]; see [b](b.md#x) & [home](../index.md)."
    )
    assert "<code>a &lt; b</code>" in html
    assert '<a href="../b/#x">b</a> &amp; <a href="../..">home</a>' in html
    assert "TB/s" in html
    with pytest.raises(UnknownName, match=r"no page 'benchmarks/c\.md'"):
        inline.render_text(page, "[c](c.md)")
