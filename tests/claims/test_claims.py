"""Claims: statements with their places, verdicts from recordings, and nothing typed."""

import json
import re

import pytest

from anatomy import claims
from anatomy.claims import Case, Cases, Finding, Measured, seeds
from anatomy.claims.findings import span
from anatomy.claims.table import Table, over_control
from anatomy.record import recording
from anatomy.table.errors import AnatomyError, UnknownName
from tests.fakes import synthetic


def verdict(name: str, **given) -> claims.Result:
    return claims.evaluate(synthetic.showing(**given), name)


def test_the_seeds_figures_are_in_seconds_with_their_lines():
    figure = seeds.figure("fp16-2048", "matmul", "sliced_offset_view")
    assert figure.seconds == pytest.approx(0.6576e-3)
    assert figure.text == "0.6576 ms"
    assert figure.place == "the original suite's guide to tensor semantics, on contiguity"
    assert figure.ratio == pytest.approx(0.6576 / 0.3297)
    assert (
        sum(len(seeds.figures(run, op)) for run in seeds.runs() for op in seeds.run(run).ops) == 30
    )
    with pytest.raises(UnknownName, match="'fp16-4096'"):
        seeds.run("fp16-4096")


@pytest.mark.parametrize(
    ("name", "word"),
    [  # what the rule in synthetic.SLOWDOWN makes true and false
        ("transposed-view-copies-nothing", claims.HOLDS),
        ("slice-doubles-fp16", claims.HOLDS),
        ("slice-always-doubles", claims.HOLDS),
        ("transpose-costs-2-percent", claims.INCONCLUSIVE),
        ("as-strided-no-overhead", claims.FAILS),
        ("chain-is-layer-norm", claims.FAILS),
        ("slice-costs-6-percent", claims.FAILS),
        ("transposed-view-forces-slower-kernels", claims.INCONCLUSIVE),  # the rest is undecided
        ("contiguous-beats-strided", claims.IN_PART),
        ("fp16-2048-time", claims.NOT_MEASURABLE),
        ("split-transactions", claims.NOT_MEASURABLE),
        ("factors-below-one", claims.INCONCLUSIVE),
    ],
)
def test_verdicts_follow_from_the_recordings(name, word):
    result = verdict(name)
    assert result.word == word, result.evidence
    assert re.search(r"\d|By reading", result.evidence)


def test_a_verdict_changes_with_the_recording(tmp_path, monkeypatch):
    monkeypatch.setitem(
        synthetic.SLOWDOWN,
        "sliced_offset_view",
        {**synthetic.SLOWDOWN["sliced_offset_view"], "matmul": 1.3},
    )
    synthetic.bench(tmp_path, "fp16", 2048)
    assert verdict("slice-doubles-fp16", root=tmp_path).word == claims.FAILS


def edited(root, name: str, change) -> None:
    """Change the rows of a recording and save it again, so that it can be trusted."""
    (file,) = (root / synthetic.MACHINE / name).glob("*.json")
    data = json.loads(file.read_text())
    for row in data["rows"]:
        change(row)
    data["rows"] = synthetic.as_said(data["rows"])
    recording.save(data, root)


def test_a_verdict_flips_when_a_recording_is_edited(tmp_path):
    synthetic.bench(tmp_path, "fp16", 2048)
    assert verdict("slice-doubles-fp16", root=tmp_path).word == claims.HOLDS

    def halve(row):
        if row["variant"] == "sliced_offset_view":
            row |= {name: row[name] / 2 for name in ("ratio", "ratio_low", "ratio_high")}

    edited(tmp_path, "contiguity.bench", halve)
    flipped = verdict("slice-doubles-fp16", root=tmp_path)
    assert flipped.word == claims.FAILS
    assert flipped.deviation == pytest.approx(0.5, rel=0.02)


def test_a_wide_interval_or_floor_leaves_a_number_undecided(tmp_path):
    synthetic.bench(tmp_path, "fp16", 2048)
    edited(tmp_path, "contiguity.bench", lambda row: row.update(noise_floor=0.3))
    assert verdict("slice-doubles-fp16", root=tmp_path).word == claims.INCONCLUSIVE


WITHOUT_FP8 = "not supported on sm_80: fp8 products need sm_89"


def without_fp8(row):
    """Make a row what a card without fp8 records of it."""
    if row["op"] == "matmul fp8":
        row |= {name: None for name in row if name not in ("op", "variant", "role", "quantity")}
        row["note"] = WITHOUT_FP8


def test_on_a_machine_without_fp8_a_claim_about_it_says_why(tmp_path):
    synthetic.MAKERS["limits.ceilings"](tmp_path)
    there = verdict("fp8-doubles-fp16", root=tmp_path)
    assert there.word == claims.FAILS and "fp8 1.40" in there.evidence
    edited(tmp_path, "limits.ceilings", without_fp8)
    result = verdict("fp8-doubles-fp16", root=tmp_path)
    assert (result.word, result.evidence) == (claims.NOT_MEASURABLE, WITHOUT_FP8)
    assert result.measured is None and result.deviation is None
    # And what does not need it is judged all the same.
    judged = verdict("half-precision-beats-fp32", root=tmp_path)
    assert judged.word == claims.INCONCLUSIVE, "made as twice of TF32's rate, neither more nor less"


def test_a_figure_of_another_card_is_judged_on_that_card_alone(tmp_path):
    synthetic.MAKERS["limits.ceilings"](tmp_path)
    here = verdict("hbm-bandwidth", root=tmp_path)
    assert here.word == claims.NOT_MEASURABLE and "of an A100" in here.evidence
    (file,) = (tmp_path / synthetic.MACHINE / "limits.ceilings").glob("*.json")
    data = json.loads(file.read_text())
    data["machine"]["gpu"] = "NVIDIA A100-SXM4-80GB"
    recording.save(data, tmp_path)
    assert verdict("hbm-bandwidth", root=tmp_path).word == claims.FAILS


def test_running_out_of_memory_is_a_runtime_error():
    torch = pytest.importorskip("torch")
    assert issubclass(torch.OutOfMemoryError, RuntimeError)
    assert verdict("out-of-memory-is-runtime-error").word == claims.HOLDS


@pytest.mark.parametrize(
    ("low", "high", "floor", "outcome"),
    [
        (1.9, 2.1, 0.0, True),
        (1.7, 2.1, 0.0, None),
        (1.2, 1.4, 0.0, False),
        (2.5, 2.6, 0.0, False),
        (1.9, 2.1, 0.1, None),
        (1.2, 1.75, 0.1, None),
    ],
)
def test_a_number_is_inside_or_outside_with_its_whole_interval(low, high, floor, outcome):
    number = Measured((low + high) / 2, low, high, floor=floor)
    assert number.within(1.8, 2.2) is outcome


def test_several_numbers_are_summed_up_from_the_lowest_to_the_highest_end():
    numbers = [Measured(m, m - 0.1, m + 0.1, floor=m / 100) for m in (1.0, 2.0, 4.0)]
    over = span(numbers)
    ends = (over.value, over.low, over.high, over.floor)
    assert ends == pytest.approx((2.0, 0.9, 4.1, 0.04))
    assert over.text == "0.900× to 4.10× in 3 cases"
    assert span(numbers[:1]) is numbers[0] and span([]) is None


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        ("x", "2.0× [1.9, 2.1]"),
        ("s", "2.0 s [1.9, 2.1]"),
        ("B/s", "2.0 B/s [1.9, 2.1]"),
        ("share", "200% [190%, 210%]"),
        ("count", "2.00 [1.90, 2.10]"),
    ],
)
def test_a_number_is_printed_in_its_unit(unit, text):
    assert Measured(2.0, 1.9, 2.1, unit).text == text


def test_cases_that_could_not_be_measured_are_counted_apart():
    done, absent = Case({"op": "a"}, True), Case({"op": "b"}, None, why="needs sm_89")
    some = Cases([done, absent]).finding("Seen.")
    assert some.word == claims.HOLDS
    assert some.evidence == "Seen. 1 of 2 cases can't be measured: needs sm_89."
    none = Cases([absent]).finding("Seen.")
    assert (none.word, none.evidence) == (claims.NOT_MEASURABLE, "needs sm_89")


def test_holds_in_part_must_say_where():
    with pytest.raises(AnatomyError, match="says where: give `condition`"):
        Finding(claims.IN_PART, "Somewhere.")


def test_holds_in_part_says_where():
    result = verdict("contiguous-beats-strided")
    where = "for matmul of sliced_offset_view, layer_norm of transposed_view/as_strided_view"
    assert f"It holds {where}, 30 of 90 cases." in result.evidence
    assert result.condition == f"{where}, 30 of 90 cases"


def test_a_claim_without_its_recordings_has_no_verdict(tmp_path):
    result = verdict("slice-doubles-fp16", root=tmp_path)
    assert result.word == claims.NOT_RECORDED
    assert [found.recording for found in result.found] == [None]


def test_while_collecting_a_claim_notes_what_it_reads():
    page = synthetic.showing(collecting=True)
    claims.evaluate(page, "slice-always-doubles")
    sizes = {(asked.params["dtype"], asked.params["m"]) for asked in page.asked}
    assert len(sizes) == 12 and {asked.name for asked in page.asked} == {"contiguity.bench"}


def cases(**outcomes) -> list[Case]:
    return [
        Case(dict(zip(("op", "size"), key.split("_"), strict=True)), o)
        for key, o in outcomes.items()
    ]


@pytest.mark.parametrize(
    ("outcomes", "word", "says"),
    [
        ({"a_1": True, "a_2": True}, claims.HOLDS, "Seen."),
        ({"a_1": False, "a_2": False}, claims.FAILS, "Seen."),
        ({"a_1": None, "a_2": None}, claims.INCONCLUSIVE, "Undecided: 2 of 2 cases"),
        # What is undecided counts for no verdict.
        (
            {"a_1": True, "a_2": None},
            claims.INCONCLUSIVE,
            "Undecided: 1 of 2 cases; it holds in 1.",
        ),
        (
            {"a_1": False, "a_2": None},
            claims.INCONCLUSIVE,
            "Undecided: 1 of 2 cases; it fails in 1.",
        ),
        ({"a_1": False, "a_2": False, "b_1": None}, claims.FAILS, "Undecided: 1 of 3 cases"),
        ({"a_1": True, "a_2": False, "b_1": None}, claims.IN_PART, "for a 1, 1 of 3 cases."),
        (
            {"a_1": True, "a_2": True, "b_1": None, "b_2": False, "c_1": False, "c_2": False},
            claims.IN_PART,
            "for a, 2 of 6",
        ),
        (
            {"a_1": True, "a_2": True, "b_1": False, "b_2": False},
            claims.IN_PART,
            "for a, 2 of 4",
        ),
        (
            {"a_1": True, "a_2": False, "b_1": True, "b_2": False},
            claims.IN_PART,
            "for 1, 2 of 4",
        ),
        (
            {"a_1": True, "a_2": False, "b_1": False, "b_2": False},
            claims.IN_PART,
            "for a 1, 1 of",
        ),
        (
            {"a_1": False, "a_2": True, "b_1": True, "b_2": True},
            claims.IN_PART,
            "except for a 1,",
        ),
    ],
)
def test_cases_are_summed_up_to_one_verdict(outcomes, word, says):
    found = Cases(cases(**outcomes)).finding("Seen.")
    assert found.word == word and says in found.evidence


def test_where_no_column_decides_few_cases_are_named_and_many_are_grouped():
    few = cases(a_1=True, a_2=True, b_1=False, b_2=True, c_1=False, c_2=False)
    assert Cases(few).finding("").condition == "for a, b 2, 3 of 6 cases"
    many = [Case(case.where | {"n": n}, case.outcome) for n in range(4) for case in few]
    many.append(Case({"op": "b", "size": "1", "n": 0}, True))
    said = "always for a, b 2; never for c; in part for b 1; 13 of 25 cases in all"
    assert Cases(many).finding("").condition == said


def test_a_verdict_is_one_of_five_words():
    with pytest.raises(UnknownName, match="no verdict 'maybe'"):
        Finding("maybe", "")


def test_a_claim_may_come_from_a_paper(monkeypatch):
    claims.all_claims()  # those of the chapters are declared once, when they are first asked for
    monkeypatch.setattr(claims, "_declared", dict(claims._declared))

    @claims.claim(
        claims.Need("contiguity.bench"),
        place="arXiv:2205.14135, table 1",
        topic="alignment",
        number="2.4×",
        claimed=(2.4, 2.4),
        unit="x",
    )
    def slices_are_slower(bench: Table) -> Finding:
        """A view that is
        sliced is slower.

        The sliced view's ratio,
        on two lines."""
        row = bench.measured("sliced_offset_view", op="matmul", quantity="gpu_warm")
        return Cases([Case({}, True, over_control(row))]).finding("Seen.")

    result = verdict("slices-are-slower")
    assert list(claims.all_claims())[-1] == "slices-are-slower"
    assert (result.word, result.claim.row) == (claims.HOLDS, None)
    assert result.claim.place.startswith("arXiv:")
    assert result.claim.statement == "A view that is sliced is slower."
    # As it is without the indentation, which Python 3.13 alone takes off.
    assert result.claim.test == "The sliced view's ratio,\non two lines."
    assert result.deviation == pytest.approx(2 / 2.4, rel=0.02)
    with pytest.raises(AnatomyError, match="two claims called slices-are-slower"):
        claims.claim(topic="alignment")(slices_are_slower)
    for given in ({}, {"topic": "alignment"}):
        with pytest.raises(AnatomyError, match="needs one statement"):
            claims.claim(**given)(lambda: None)


def test_a_claim_that_breaks_names_itself(monkeypatch):
    needs = (claims.Need("contiguity.bench"),)
    broken = claims.Claim("broken", "", needs=needs, judge=lambda t: 1 / 0)
    monkeypatch.setitem(claims._declared, "broken", broken)
    with pytest.raises(
        AnatomyError, match="claim broken could not be evaluated: ZeroDivisionError"
    ):
        verdict("broken")
    with pytest.raises(UnknownName, match="no claim 'slice-doubled'"):
        verdict("slice-doubled")


def test_ratios_are_taken_block_by_block():
    rows = synthetic.compared("op", "gpu_warm", 1e-3, {"other": 1.5})
    ratio = Table(rows, {}).ratio("other", "contiguous", op="op")
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx(
        (rows[1]["ratio"], rows[1]["ratio_low"], rows[1]["ratio_high"]),
        rel=1e-4,  # blocks are kept to six digits
    )
    assert ratio.verdict == "slower"


def test_ratios_of_several_processes_are_taken_in_each():
    rows = synthetic.compared("op", "gpu_warm", 1e-3, {"other": 1.012})
    assert Table(rows, {}).ratio("other", "contiguous", op="op").verdict == "undecided"
    for row in rows:
        row["run_blocks"] = [len(row["blocks_s"])] * 3
        row["blocks_s"] = row["blocks_s"] * 3
    ratio = Table(rows, {}).ratio("other", "contiguous", op="op")
    assert ratio.verdict == "slower" and ratio.value == pytest.approx(rows[1]["ratio"], rel=1e-4)


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [(1.6, 1.9, True), (1.4, 1.6, None), (1.1, 1.4, False), (3.0, 4.0, True), (0.5, 0.6, False)],
)
def test_a_promised_gain_is_met_from_its_lower_end_on(low, high, outcome):
    gain = Measured((low + high) / 2, low, high)
    assert gain.at_least(1.5) is outcome
    noisy = Measured((low + high) / 2, low, high, floor=2.0)
    assert noisy.at_least(1.5) is None


def test_a_tally_counts_what_is_certain():
    ends = [(1.6, 1.9), (1.4, 1.6), (3.0, 4.0), (0.5, 0.6), (0.9, 1.1)]
    gains = [Measured(low, low, high) for low, high in ends]
    cases = [Case({}, gain.at_least(1.5), gain) for gain in gains]
    assert Cases([*cases, Case({}, None, why="no")]).tally(1.5, 2.0) == (
        "1.50× or more is reached in 2 of 5 cases (up to 2.00× in 1, beyond it in 1); 3 are faster "
        "at all, 1 slower."
    )
    assert Cases(cases[:1]).tally(0.7, 0.7) == "0.700× or more is reached in 1 of 1 cases."


def test_a_cost_that_is_spared_more_than_promised_keeps_the_promise():
    spared = (Measured(share, share, share) for share in (0.2, 0.5, 0.6))
    assert [share.at_most(0.5) for share in spared] == [True, True, False]


def test_the_range_of_a_few_blocks_decides_nothing():
    row = {"median_s": 1.0, "ratio": 0.5, "ratio_low": 0.49, "ratio_high": 0.51}
    row |= {"noise_floor": 0.01}
    few, enough = (over_control(row | {"blocks_s": [1.0] * count}) for count in (5, 6))
    assert few.within(0.4, 0.6) is None and few.inverse.within(1.5, 3.0) is None
    assert enough.within(0.4, 0.6) is True and enough.inverse.within(1.5, 3.0) is True
    pooled = over_control(row | {"blocks_s": [1.0] * 3, "runs": 3})
    assert pooled.within(0.4, 0.6) is True, "an envelope of processes is another matter"
