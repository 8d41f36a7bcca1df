"""The ledger: one row for each claim and machine, the same in the page, in CSV and in JSON."""

import csv
import errno
import io
import json
import os
import re
from html import unescape
from math import log
from shutil import copytree

import pytest

from anatomy import claims, page
from anatomy.claims import ledger
from anatomy.figures import tables
from anatomy.figures.charts import loglog
from anatomy.figures.ledger.table import HEADS
from anatomy.record import recording
from anatomy.record.showing import using
from anatomy.site.collecting import on_page
from anatomy.table.errors import RecordingError, UnknownName
from tests.fakes import synthetic
from tests.fakes.sites import Project, block
from tests.site.test_page import Balance

ANALYSIS = "the original suite's guide to tensor semantics, on the analysis of contiguity"


@pytest.fixture(scope="module")
def found() -> list[claims.Result]:
    return ledger.results(synthetic.showing())


@pytest.fixture
def two_machines(tmp_path):
    """The toy machine, and another one whose sliced view costs nothing."""
    copytree(synthetic.shared(), tmp_path, dirs_exist_ok=True)
    for file in (tmp_path / synthetic.MACHINE / "contiguity.bench").glob("*.json"):
        data = json.loads(file.read_text())
        data["machine"]["slug"] = "other-gpu"
        for row in data["rows"]:
            if row["variant"] == "sliced_offset_view" and row["op"] == "matmul":
                row |= {"ratio": 1.0, "ratio_low": 0.999, "ratio_high": 1.001, "verdict": "same"}
        data["rows"] = synthetic.as_said(data["rows"])
        recording.save(data, tmp_path)
    return tmp_path


def shown(part: str, **given) -> str:
    with using(synthetic.showing(**given)):
        return page.ledger(part)


def test_every_claim_stands_in_it_once_for_each_machine(found, two_machines):
    every = claims.all_claims()
    assert [each.claim.name for each in found] == sorted(every, key=lambda n: every[n].trivia)
    both = ledger.results(synthetic.showing(root=two_machines))
    assert len(both) == 2 * len(found)
    verdicts = {r.machine: r.word for r in both if r.claim.name == "slice-doubles-fp16"}
    assert verdicts == {"toy-gpu": claims.HOLDS, "other-gpu": claims.FAILS}


def test_csv_and_json_are_the_same_rows(found):
    rows = list(csv.DictReader(io.StringIO(ledger.as_csv(found))))
    data = json.loads(ledger.as_json(found))
    assert len(rows) == len(data) == len(found) and tuple(data[0]) == ledger.COLUMNS
    for row, entry in zip(rows, data, strict=True):
        assert row == {name: "" if v is None else str(v) for name, v in entry.items()}
    one = next(entry for entry in data if entry["claim"] == "slice-doubles-fp16")
    assert one["row"] == 37 and one["source"] == ANALYSIS and one["topic"] == "alignment"
    assert one["claimed_low"] == one["claimed_high"] == 1.99 and one["unit"] == "x"
    assert one["measured_low"] < one["measured"] < one["measured_high"]
    assert one["deviation"] == pytest.approx(one["measured"] / 1.99, rel=1e-4)
    conditions = {each.claim.name: each.condition or None for each in found}
    assert {entry["claim"]: entry["condition"] for entry in data} == conditions
    assert any(conditions.values()) and ledger.as_json(found).startswith('[\n {\n  "row": ')
    read = next(entry for entry in data if entry["claim"] == "overview-is-complete")
    assert read["verdict"] == "fails" and read["measured"] is None and read["fresh"] is None


def test_a_range_that_was_claimed_is_met_anywhere_within_it():
    claim = claims.Claim("c", "", "", None, claimed=(2.0, 4.0), unit="x")

    def deviation(value: float, unit: str = "x") -> float | None:
        number = claims.Measured(value, value, value, unit)
        return claims.Result(claim, "holds", "", (), number).deviation

    assert deviation(3.0) == 1 and deviation(1.0) == 0.5 and deviation(8.0) == 2
    assert deviation(3.0, "s") is None  # seconds can't be held against a ratio


def test_the_table_has_a_row_with_marks_for_each_claim(found):
    html = shown("table")
    Balance(html)
    rows = re.findall(r"<tr id=.*?</tr>", html, re.DOTALL)
    assert len(rows) == len(found) == len(claims.all_claims())
    assert sum(each.claim.row is not None for each in found) == 158  # beside claims of our own
    for row, result in zip(rows, found, strict=True):
        assert f'data-verdict="{result.word}"' in row
        assert f'data-topic="{result.claim.topic}"' in row
        assert f">{result.word}<" in row, "the verdict stands there in words"
        assert "<script" not in row
    kept = unescape(next(row for row in rows if "slice-doubles-fp16" in row))
    assert "1.99×" in kept and ANALYSIS in kept and "Recordings: <a" in kept


def test_what_is_about_the_documents_themselves_stands_apart_at_the_end(found):
    html = shown("table")
    physics, _, trivia = html.partition('<tr class="apart">')
    assert html.count("<tbody data-here=") == 2 and 'data-topic="contiguity"' in physics
    for topic in ("the suite", "learning"):
        assert f'data-topic="{topic}"' in trivia and f'data-topic="{topic}"' not in physics
    assert 'data-topic="contiguity"' not in trivia


def test_what_was_claimed_and_what_was_measured_stand_in_columns_of_their_own(found):
    rows = re.findall(r"<tr id=.*?</tr>", shown("table"), re.DOTALL)
    for row, result in zip(rows, found, strict=True):
        inside = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", unescape(row), re.DOTALL)
        cells = dict(zip((head.removeprefix("#") for head in HEADS), inside, strict=True))
        assert (result.claim.number or "—") in cells["claimed"]
        if result.measured is None:
            assert "—" in cells["measured"]
        else:
            seen = result.measured
            number = seen.middle if seen.cases > 1 else seen.text.partition(" [")[0]
            assert cells["measured"].startswith(number)
            assert result.claim.measures in cells["measured"]


def test_a_measured_number_says_what_it_is(found):
    silent = [each.claim.name for each in found if each.measured and not each.claim.measures]
    assert not silent, "`measures` in a statements.toml, or in the decorator, says it"


def test_a_deviation_says_in_words_which_way(found):
    from anatomy.figures.ledger.table import _deviation

    claim = claims.Claim("c", "", "", None, claimed=(2.0, 4.0), unit="x")

    def said(*ends: float, cases: int = 1) -> tuple[str, float]:
        result = claims.Result(claim, "holds", "", (), claims.Measured(*ends, "x", cases))
        off, words = _deviation(result)
        return re.sub("<.*?>", "", words), off

    assert said(8.0, 7.9, 8.1) == ("2.00× above", pytest.approx(log(2)))
    assert said(0.5, 0.4, 0.6) == ("4.00× below", pytest.approx(log(4)))
    assert said(5.0, 3.9, 6.0) == ("meets it", 0.0)
    assert said(3.0, 1.0, 9.0, cases=5) == ("within", 0.0)
    assert said(5.0, 3.9, 6.0, cases=5)[0] == "1.25× above", "a span is no interval"


def test_the_answer_counts_the_verdicts_in_a_sentence(found):
    said = shown("answer")
    counted = ledger.counts(found)
    assert f"{counted['holds']} hold and {counted['fails']} fail; the rest" in said
    assert len(re.findall(r"(?<![\w-])\d+(?![\w-])", re.sub("<.*?>", "", said))) == 3


def test_what_is_not_decided_is_counted_beside_what_is(found):
    counted, said = ledger.counts(found), shown("open")
    assert f"The list has {len(found)}." in said
    assert f"{counted['inconclusive']} that are inconclusive" in said
    assert f"{counted[claims.NOT_RECORDED]} that wait" in said


def test_the_farthest_are_of_different_topics_and_do_not_hold(found, monkeypatch):
    from anatomy.figures.ledger import table

    monkeypatch.setattr(table, "FARTHEST", len(found))
    lines = re.findall(r"<tr>.*?</tr>", shown("farthest"))
    off = [each for each in found if each.claim.row and each.word in ("fails", "holds in part")]
    assert 0 < len(lines) - 1 <= len({each.claim.topic for each in off})


def test_every_word_has_a_chip_and_every_verdict_a_mark():
    assert set(claims.ALL_WORDS) <= set(tables.CHIPS)
    assert set(loglog.VERDICTS) == set(claims.WORDS)
    assert len({shape for _, shape in loglog.VERDICTS.values()}) == len(claims.WORDS)


def test_the_chart_has_a_row_for_each_claimed_number_with_both_intervals(found):
    from anatomy.figures.ledger.table import _point

    off = [each for each in found if each.deviation]
    spec = loglog.claimed([_point(each) for each in off], width=680)
    kinds = [layer["mark"]["type"] for layer in spec["layer"]]
    assert kinds == ["bar", "rule", "rule", "point"]
    ranges, right, intervals, marks = spec["layer"]
    assert right["data"]["values"] == [{"value": 1.0}], "on this line the claim was right"
    assert all(each["claimed_low"] < 1 < each["claimed_high"] for each in ranges["data"]["values"])
    assert len(marks["encoding"]["y"]["sort"]) == len(off), "each claim has a row of its own"
    assert intervals["encoding"]["x2"]["field"] == "high"
    assert marks["encoding"]["x"]["scale"]["type"] == "log"
    assert '<div class="chart"' in shown("chart")


def test_an_interval_that_reaches_below_zero_can_be_drawn():
    from anatomy.figures.ledger.table import _point

    claim = claims.Claim("c", "", "", None, claimed=(10e-6, 15e-6), unit="s")
    seen = claims.Measured(20e-6, -80e-6, 100e-6, "s")
    point = _point(claims.Result(claim, "inconclusive", "", (), seen))
    assert 0 < point["low"] < point["value"]
    loglog.claimed([point], width=680)


def test_without_recordings_the_page_shows_that_and_is_no_error(tmp_path):
    assert "not recorded" in shown("table", root=tmp_path)
    assert "has a measured one beside it yet" in shown("chart", root=tmp_path)
    assert "not recorded" in shown("counts", root=tmp_path)


def test_a_build_measures_all_that_the_ledger_reads():
    code = "from anatomy.page import ledger\nprint(ledger())"
    asked, wrong = on_page("ledger.md", f"# L\n\n{block(code)}")
    assert not wrong
    assert {"contiguity.bench", "remedies.payback", "limits.floors"} <= {a.name for a in asked}
    with pytest.raises(UnknownName, match="no part of the ledger 'tabel'"):
        shown("tabel")


def test_a_site_with_the_ledger_publishes_it_as_csv_and_json(tmp_path):
    reference = "[[claim:slice-doubles-fp16]]"
    built = Project(tmp_path, synthetic.shared()).write(
        index=f"# Home\n\n{reference}\n",
        ledger="# L\n\n"
        + block("from anatomy.page import ledger\nprint(ledger('downloads'))\nprint(ledger())"),
    ).build("--strict")  # fmt: skip
    assert built.status == 0, built.said
    data = json.loads(built.read("ledger.json"))
    assert len(data) == len(claims.all_claims()) and built.read("ledger.csv").startswith(
        "row,claim,statement,"
    )
    assert sum(each["row"] is not None for each in data) == 158
    html = built.read("ledger/index.html")
    assert 'href="../ledger.csv"' in html and 'href="../ledger.json"' in html
    target = re.search(r'href="ledger/#(claim-[\w.-]+)">evidence<', built.read())[1]
    assert f'id="{target}"' in html


def test_what_differs_from_the_committed_verdicts_is_told(found, tmp_path):
    now = ledger.verdicts(found)
    assert "register-bandwidth" not in now and now["slice-doubles-fp16"] == "holds"
    (tmp_path / synthetic.MACHINE).mkdir()
    path = ledger.commit(tmp_path, synthetic.MACHINE, now)
    assert path.read_text().count("\n") == len(now) + 2
    assert ledger.changes(ledger.committed(tmp_path, synthetic.MACHINE), found) == []
    then = now | {"slice-doubles-fp16": "fails", "a-claim-that-was": "holds"}
    del then["python-3-8"]
    told = ledger.changes(then, found)
    assert len(told) == 3
    assert told[1].startswith("python-3-8: had no verdict, is 'fails'.")
    assert told[0].startswith("slice-doubles-fp16: was 'fails', is 'holds'.")
    assert told[2] == "a-claim-that-was: was 'holds', and there is no such claim now."


@pytest.mark.parametrize("text", ["", "[1]", '{"a": "perhaps"}', "{"])
def test_a_file_of_verdicts_that_is_none_says_how_to_write_it(tmp_path, text):
    (tmp_path / "toy-gpu").mkdir()
    (tmp_path / "toy-gpu" / ledger.COMMITTED).write_text(text)
    with pytest.raises(RecordingError, match="claims --machine toy-gpu --write"):
        ledger.committed(tmp_path, "toy-gpu")


def test_the_committed_verdicts_are_those_of_the_committed_recordings():
    root = recording.default_root()
    for machine in ledger.judged_machines(root):
        now = ledger.results(synthetic.Showing(root=root, machine=machine), [machine])
        assert ledger.changes(ledger.committed(root, machine), now) == []


def test_a_full_disk_leaves_the_committed_verdicts_as_they_were(tmp_path, monkeypatch):
    file = ledger.commit(tmp_path, "toy-gpu", {"one": "holds", "two": "fails"})
    before = file.read_bytes()

    def refuse(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(RecordingError, match=r"verdicts\.json could not be written: No space left"):
        ledger.commit(tmp_path, "toy-gpu", {"one": "fails"})
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]
