"""Statements of the seed: each with its place and row, in the folder of who measures it."""

import re
from pathlib import Path

import pytest

from anatomy import claims
from anatomy.claims import seeds
from anatomy.claims.findings import UNITS
from anatomy.table import chapters
from anatomy.table.errors import AnatomyError, UnknownName

LEDGER = list(range(1, 159))
GUIDE = "the original suite's guide to tensor semantics"


def test_every_row_of_the_ledger_is_stated_once_and_in_order():
    assert [said.row for said in seeds.statements().values()] == LEDGER


def test_every_statement_has_a_claim_or_the_verdict_of_a_reading():
    known = claims.all_claims()
    for name, said in seeds.statements().items():
        claim = known[name]
        ways = (claim.judge, said.verdict)
        assert sum(bool(way) for way in ways) == 1, f"{name} has {ways}"
        assert claim.place.startswith(("the original suite's ", "the inherited ")), name
        assert not re.search(r"seed|\d", claim.place), name
        assert claim.settled is None or claim.settled.evidence.startswith("By reading: ")
        assert claim.topic and (claim.claimed is None) == (claim.unit == ""), name
        assert claim.claimed is None or (claim.unit in UNITS and claim.number), name


def test_a_statement_lies_with_the_chapter_that_measures_it():
    known = claims.all_claims()
    for file in (seeds.BY_READING, *chapters.files("statements.toml")):
        for name in seeds.read([file]):
            if judge := known[name].judge:
                home = judge.__module__.removeprefix(f"{chapters.PACKAGE}.").partition(".")[0]
                assert file.is_relative_to(chapters.CHAPTERS / home), f"{name} lies in {file}"


STATED = """
[fusion-is-free]
row = 7
source = "guide"
lines = [3, 4]
says = "Fusion is free."
topic = "fusion"
"""


def test_statements_of_several_files_come_in_the_order_of_the_ledger(tmp_path):
    files = stated(
        tmp_path, STATED, STATED.replace("is-free", "helps").replace("row = 7", "row = 5")
    )
    read = seeds.read(files)
    assert [(name, said.row) for name, said in read.items()] == [
        ("fusion-helps", 5),
        ("fusion-is-free", 7),
    ]
    assert read["fusion-helps"].place == GUIDE


@pytest.mark.parametrize(
    ("edit", "place", "claimed"),
    [
        (("[3, 4]", "[31]"), f"{GUIDE}, on contiguity", None),
        (("[3, 4]", "[314, 400, 401]"), f"{GUIDE}, on contiguity", None),
        (("row", 'claimed = [2.0]\nunit = "x"\nrow'), GUIDE, (2.0, 2.0)),
        (("row", 'claimed = [2.0, 4.0]\nunit = "x"\nrow'), GUIDE, (2.0, 4.0)),
    ],
)
def test_a_statement_tells_its_place_and_the_ends_of_its_number(tmp_path, edit, place, claimed):
    (said,) = seeds.read(stated(tmp_path, STATED.replace(*edit))).values()
    assert (said.place, said.claimed) == (place, claimed)
    assert (said.statement, said.row, said.topic) == ("Fusion is free.", 7, "fusion")


def test_the_seeds_figures_are_by_run_operation_and_variant():
    run = seeds.run("fp32-8192")
    assert (run.dtype, run.size, list(run.ops)) == ("fp32", 8192, ["matmul", "layer_norm_chain"])
    assert list(seeds.runs()) == ["fp16-2048", "fp32-8192", "bf16-4096"]
    first, second = seeds.figures("fp32-8192", "layer_norm_chain")[:2]
    assert (first.variant, first.place, first.ratio) == (
        "contiguous",
        f"{GUIDE}, on contiguity",
        1.0,
    )
    assert (second.variant, second.place, second.gpu) == (
        *("transposed_view", f"{GUIDE}, on contiguity", "RTX 5070"),
    )
    assert seeds.figure("fp32-8192", "layer_norm_chain", "transposed_view") == second
    for name in (("fp8", "matmul", "a"), ("fp32-8192", "sum", "a"), ("fp32-8192", "matmul", "a")):
        with pytest.raises(UnknownName, match="of the seed"):
            seeds.figure(*name)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            ("row = 7", "row = 8"),
            r"b/statements.toml: the statement fusion-is-free is stated twice",
        ),
        (("is-free", "helps"), r"b/statements.toml: .* fusion-helps has row 7, as fusion-is-free"),
        (('"guide"', '"guise"'), "no document of the seed 'guise'"),
        (("row = 7", ""), r"b/statements.toml: the statement fusion-is-free lacks row\."),
        (('source = "guide"', ""), r"the statement fusion-is-free lacks source\."),
        (("lines = [3, 4]", ""), r"the statement fusion-is-free lacks lines\."),
        (('says = "Fusion is free."', ""), r"the statement fusion-is-free lacks says\."),
        (('topic = "fusion"', ""), r"the statement fusion-is-free lacks topic\."),
        (('row = 7\nsource = "guide"', ""), "fusion-is-free lacks source, row"),
    ],
)
def test_a_statement_that_is_not_one_of_its_own_is_an_error(tmp_path, edit, message):
    with pytest.raises(AnatomyError, match=message):
        seeds.read(stated(tmp_path, STATED, STATED.replace(*edit)))


def stated(root, *texts: str) -> list[Path]:
    """Statements of chapters a, b and so on, as files."""
    files = [root / letter / "statements.toml" for letter in "abc"[: len(texts)]]
    for file, text in zip(files, texts, strict=True):
        file.parent.mkdir()
        file.write_text(text, encoding="utf-8")
    return files
