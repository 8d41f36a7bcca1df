"""Claims: statements with their places, verdicts from recordings, and nothing typed."""

import re

import pytest
import synthetic

from anatomy import claims
from anatomy.claims import Case, Finding, across, seeds
from anatomy.claims.table import Table
from anatomy.errors import AnatomyError, UnknownName

LEDGER = [*range(1, 5), *range(22, 53)]


def verdict(name: str, **given) -> claims.Result:
    return claims.evaluate(synthetic.showing(**given), name)


def test_every_row_of_the_ledger_that_belongs_here_is_stated_once():
    assert sorted(said.row for said in seeds.statements().values()) == LEDGER


def test_every_statement_has_a_claim_or_the_verdict_of_a_reading():
    known = claims.all_claims()
    for name, said in seeds.statements().items():
        claim = known[name]
        assert (claim.judge is None) == (said.verdict is not None), name
        assert claim.place.startswith(("seeds/000:", "seeds/001:"))
        assert claim.settled is None or claim.settled.evidence.startswith("By reading: ")


def test_the_seeds_figures_are_in_seconds_with_their_lines():
    figure = seeds.figure("fp16-2048", "matmul", "sliced_offset_view")
    assert figure.seconds == pytest.approx(0.6576e-3)
    assert figure.text == "0.6576 ms"
    assert figure.place == "seeds/001:128"
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
        ("transpose-costs-2-percent", claims.FAILS),
        ("as-strided-no-overhead", claims.FAILS),
        ("chain-is-layer-norm", claims.FAILS),
        ("slice-costs-6-percent", claims.FAILS),
        ("transposed-view-forces-slower-kernels", claims.ONLY_WHERE),
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


def test_holds_only_where_says_where():
    result = verdict("transposed-view-forces-slower-kernels")
    assert "It holds for layer_norm, 12 of 36 cases." in result.evidence


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
        ({"a_1": None, "a_2": None}, claims.INCONCLUSIVE, "2 of 2 cases are undecided"),
        ({"a_1": True, "a_2": None}, claims.HOLDS, "1 of 2 cases are undecided"),
        (
            {"a_1": True, "a_2": True, "b_1": False, "b_2": False},
            claims.ONLY_WHERE,
            "for a, 2 of 4",
        ),
        (
            {"a_1": True, "a_2": False, "b_1": True, "b_2": False},
            claims.ONLY_WHERE,
            "for 1, 2 of 4",
        ),
        (
            {"a_1": True, "a_2": False, "b_1": False, "b_2": False},
            claims.ONLY_WHERE,
            "for a 1, 1 of",
        ),
        (
            {"a_1": False, "a_2": True, "b_1": True, "b_2": True},
            claims.ONLY_WHERE,
            "except for a 1,",
        ),
    ],
)
def test_cases_are_summed_up_to_one_verdict(outcomes, word, says):
    found = across(cases(**outcomes), "Seen.")
    assert found.word == word and says in found.evidence


def test_a_verdict_is_one_of_five_words():
    with pytest.raises(UnknownName, match="no verdict 'maybe'"):
        Finding("maybe", "")


def test_a_claim_that_breaks_names_itself(monkeypatch):
    broken = claims.Claim(
        "broken", "", "", None, (claims.Need("contiguity.bench"),), lambda t: 1 / 0
    )
    monkeypatch.setitem(claims._declared, "broken", broken)
    with pytest.raises(
        AnatomyError, match="claim broken could not be evaluated: ZeroDivisionError"
    ):
        verdict("broken")
    with pytest.raises(UnknownName, match="no claim 'slice-doubled'"):
        verdict("slice-doubled")


def test_ratios_are_taken_block_by_block():
    rows = synthetic.compared("op", "gpu_warm", 1e-3, {"other": 1.5})
    ratio, word = Table(rows, {}).ratio("other", "contiguous", op="op")
    assert (ratio.median, ratio.low, ratio.high) == pytest.approx(
        (rows[1]["ratio"], rows[1]["ratio_low"], rows[1]["ratio_high"]),
        rel=1e-4,  # blocks are kept to six digits
    )
    assert word == "slower"


def test_ratios_of_several_processes_are_taken_in_each():
    rows = synthetic.compared("op", "gpu_warm", 1e-3, {"other": 1.012})
    assert Table(rows, {}).ratio("other", "contiguous", op="op")[1] == "undecided"
    for row in rows:
        row["run_blocks"] = [len(row["blocks_s"])] * 3
        row["blocks_s"] = row["blocks_s"] * 3
    ratio, word = Table(rows, {}).ratio("other", "contiguous", op="op")
    assert word == "slower" and ratio.median == pytest.approx(rows[1]["ratio"], rel=1e-4)
