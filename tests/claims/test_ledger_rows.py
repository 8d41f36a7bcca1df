"""A row of the ledger, as data: what stands in it, where it links to, and how rows are chosen."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from anatomy import claims
from anatomy.claims import Claim, Measured, Result, ledger
from anatomy.record import recording
from anatomy.record.showing import Showing
from anatomy.table.errors import RecordingError, UnknownName
from tests.fakes import synthetic

SLOWER = Claim(
    "a-is-slower",
    "It is slower.",
    "paper, page 3",
    7,
    "layouts",
    "2× to 4×",
    (2.0, 4.0),
    "x",
    "time of a / of b",
)
TWICE = Measured(8.0000001, 7.0, 9.0, cases=3)
BARE = Result(Claim("a-bare-one", "It is so."), claims.NOT_RECORDED, "None is there.", ())


def read(*current: bool | None) -> tuple:
    """Recordings that were read: current or not; None where it is missing."""
    return tuple(
        SimpleNamespace(
            recording=None if each is None else SimpleNamespace(path=Path(f"toy/name/{at}.json")),
            freshness=SimpleNamespace(current=bool(each)),
        )
        for at, each in enumerate(current)
    )


def slower(*current: bool | None, word: str = claims.HOLDS, **more) -> Result:
    given = {"condition": "for a", "machine": "toy-gpu"} | more
    return Result(SLOWER, word, "Seen.", read(*current), TWICE, **given)


def test_a_row_has_what_was_claimed_what_was_measured_and_what_came_of_it():
    assert ledger.row(slower(True)) == {
        "row": 7,
        "claim": "a-is-slower",
        "statement": "It is slower.",
        "source": "paper, page 3",
        "topic": "layouts",
        "machine": "toy-gpu",
        "verdict": "holds",
        "condition": "for a",
        "claimed": "2× to 4×",
        "claimed_low": 2.0,
        "claimed_high": 4.0,
        "unit": "x",
        "measured": 8.0000001,
        "measured_low": 7.0,
        "measured_high": 9.0,
        "measures": "time of a / of b",
        "cases": 3,
        "deviation": 8.0000001 / 4.0,
        "evidence": "Seen.",
        "fresh": True,
    }
    assert list(ledger.row(slower(True))) == list(ledger.COLUMNS)


def test_what_a_row_lacks_is_none():
    there = {name: value for name, value in ledger.row(BARE).items() if value is not None}
    assert there == {
        **{"claim": "a-bare-one", "statement": "It is so.", "source": "", "topic": ""},
        **{"machine": "", "verdict": "not recorded", "evidence": "None is there."},
    }
    without = ledger.row(replace(slower(True), measured=None))
    assert without["measures"] is None and without["unit"] == "x"
    unclaimed = replace(BARE, measured=Measured.counted(3.0, "s"))
    row = ledger.row(unclaimed)
    assert (row["unit"], row["measured"], row["cases"], row["measures"]) == ("s", 3.0, 1, None)


@pytest.mark.parametrize(
    ("current", "fresh"),
    [
        ((), None),
        ((None,), None),
        ((True, True), True),
        ((True, False), False),
        ((False, False), False),
        ((True, None), True),
    ],
)
def test_a_row_is_fresh_if_all_recordings_that_there_are_are_current(current, fresh):
    assert ledger.row(slower(*current))["fresh"] is fresh


def test_written_numbers_have_six_digits_and_no_text_is_a_formula():
    odd = replace(BARE, claim=replace(BARE.claim, statement="=1+1", place="Grüße"))
    lines = ledger.as_csv([slower(True), odd]).split("\n")
    assert lines[0] == ",".join(ledger.COLUMNS) and lines[-1] == ""
    assert ",2.0,4.0,x,8.0,7.0,9.0,time of a / of b,3,2.0,Seen.,True" in lines[1]
    assert lines[2] == ",a-bare-one,'=1+1,Grüße,,,not recorded,,,,,,,,,,,,None is there.,"
    text = ledger.as_json([slower(True), odd])
    first, other = json.loads(text)
    assert first["measured"] == 8.0 and other["statement"] == "=1+1" and "Grüße" in text
    with pytest.raises(ValueError, match="not JSON compliant"):
        ledger.as_json([replace(BARE, measured=Measured.counted(float("nan")))])
    assert text.endswith("}\n]\n") and '\n {\n  "row": 7,\n' in text


def test_under_a_verdict_stands_where_it_holds_or_how_much_is_open():
    assert ledger.where(slower(True)) == "for a"
    open_ = slower(True, word=claims.INCONCLUSIVE, condition="")
    assert ledger.where(open_) == ""
    counted = replace(open_, short=("2 of 9 cases undecided",))
    assert ledger.where(counted) == "2 of 9 cases undecided"
    assert ledger.where(replace(counted, word=claims.HOLDS)) == ""


def test_evidence_is_the_row_on_the_ledgers_page_or_else_the_first_recording():
    result = slower(None, True, True)
    pages = {"index.md": "", "ledger.md": "ledger/", "a/b/page.md": "a/b/page/"}
    deep = Showing(Path("."), "toy-gpu", page="a/b/page.md", url="a/b/page/", pages=pages)
    assert ledger.link(deep, result) == "../../../ledger/#claim-a-is-slower-toy-gpu"
    alone = replace(deep, pages={"a/b/page.md": "a/b/page/"})
    assert ledger.link(alone, result) == "../../../recordings/toy/name/1.json"
    assert ledger.link(alone, BARE) == "", "there is none"


def test_a_condition_is_cut_only_where_it_is_longer_than_the_most():
    condition = "for a, 4 of 7 cases"
    result = slower(condition=condition, short=("4 of 7 cases",))
    assert ledger.brief(result, len(condition)) == condition
    assert ledger.brief(result, len(condition) - 1) == "in 4 of 7 cases"
    assert ledger.brief(replace(result, short=()), 5) == condition, "it has no clauses"


@pytest.mark.parametrize(
    ("most", "said"),
    [
        (42, "always for a/b; never for c; 7 of 13 cases"),
        (41, "always for a/b; 7 of 13 cases"),
        (26, "never for c; 7 of 13 cases"),
        (25, "in 7 of 13 cases"),
    ],
)
def test_of_a_long_condition_as_much_is_said_as_there_is_room_for(most, said):
    condition = "always for a/b; never for c; in part for 9 combinations; 7 of 13 cases in all"
    short = ("always for a/b", "never for c", "7 of 13 cases")
    assert ledger.brief(slower(condition=condition, short=short), most) == said


FOUND = [
    slower(True),
    slower(True, word=claims.IN_PART),
    BARE,
    replace(BARE, claim=replace(BARE.claim, name="other", topic="sums")),
]


def test_results_are_counted_by_all_words_and_verdicts_are_those_of_five():
    assert ledger.counts(FOUND[:3]) == {
        **{"holds": 1, "fails": 0, "holds in part": 1, "inconclusive": 0},
        **{"not measurable here": 0, "not recorded": 1},
    }
    assert ledger.verdicts(FOUND) == {"a-is-slower": claims.IN_PART}


@pytest.mark.parametrize(
    ("asked", "places"),
    [
        ({}, [0, 1, 2, 3]),
        ({"verdict": "holds"}, [0]),
        ({"verdict": "holds in part"}, [1]),
        ({"verdict": "holds-in-part"}, [1]),
        ({"verdict": "fails"}, []),
        ({"topic": "layouts"}, [0, 1]),
        ({"topic": "sums", "verdict": "not-recorded"}, [3]),
        ({"topic": "sums", "verdict": "holds"}, []),
    ],
)
def test_results_are_wanted_by_verdict_and_topic(asked, places):
    assert ledger.wanted(iter(FOUND), **asked) == [FOUND[place] for place in places]


def test_a_verdict_or_topic_that_there_is_not_is_told():
    with pytest.raises(UnknownName, match="no verdict 'perhaps'"):
        ledger.wanted(FOUND, "perhaps")
    with pytest.raises(UnknownName, match="no topic 'weather'"):
        ledger.wanted(FOUND, topic="weather")


@pytest.mark.parametrize(
    ("before", "word", "told"),
    [
        ({}, claims.HOLDS, ["had no verdict, is 'holds'. Seen."]),
        ({}, claims.NOT_RECORDED, []),
        ({"a-is-slower": "holds"}, claims.HOLDS, []),
        ({"a-is-slower": "fails"}, claims.HOLDS, ["was 'fails', is 'holds'. Seen."]),
        ({"a-is-slower": "fails"}, claims.NOT_RECORDED, ["was 'fails', is 'not recorded'. Seen."]),
    ],
)
def test_a_verdict_has_changed_where_one_is_lost_or_another(before, word, told):
    now = [replace(slower(True), word=word)]
    assert ledger.changes(before, now) == [f"a-is-slower: {each}" for each in told]


def test_committed_verdicts_are_sorted_lines_that_are_read_again(tmp_path):
    path = ledger.commit(tmp_path, "toy-gpu", {"größer": "holds", "b": "fails"})
    assert path == tmp_path / "toy-gpu" / "verdicts.json"
    assert path.read_text(encoding="utf-8") == '{\n "b": "fails",\n "größer": "holds"\n}\n'
    assert ledger.committed(tmp_path, "toy-gpu") == {"b": "fails", "größer": "holds"}


def test_verdicts_that_are_not_there_or_cannot_be_read_are_to_be_written(tmp_path):
    write = r"Write it: pytorch-gpu-anatomy claims --machine toy-gpu --write"
    with pytest.raises(RecordingError, match=f"^There is no toy-gpu/verdicts.json .*{write}"):
        ledger.committed(tmp_path, "toy-gpu")
    (tmp_path / "toy-gpu" / "verdicts.json").mkdir(parents=True)
    with pytest.raises(RecordingError, match=f"can't be read: .*{write}"):
        ledger.committed(tmp_path, "toy-gpu")


def copied(root: Path, slug: str) -> None:
    """The recordings of the toy GPU, as those of another machine."""
    for file in root.glob(f"{synthetic.MACHINE}/*/*.json"):
        data = json.loads(file.read_text())
        data["machine"]["slug"] = slug
        recording.save(data, root)


def test_a_host_says_nothing_of_the_recordings_of_another(tmp_path, monkeypatch):
    synthetic.layouts(tmp_path)
    copied(tmp_path, "other-gpu")
    needs = (claims.Need("tensor_layout.report"),)
    one = Claim("one", "", needs=needs, judge=lambda table: claims.answer(True, "Seen."))
    monkeypatch.setattr(claims, "all_claims", lambda: {"one": one})
    here = {"slug": synthetic.MACHINE, "card": "another", "torch": "1.0", "driver": "1"}
    page = Showing(tmp_path, synthetic.MACHINE, here)
    mine, other = ledger.results(page)
    assert (mine.machine, other.machine) == (synthetic.MACHINE, "other-gpu")
    assert [ledger.row(each)["fresh"] for each in (mine, other)] == [False, True]
    assert [each.recording.machine for each in page.looked_up()] == [synthetic.MACHINE]
    assert len(page.asked) == 1, "what is asked of another machine is no wish of the page"
    (only,) = ledger.results(page, ["other-gpu"])
    assert only.machine == "other-gpu"


def test_while_collecting_what_claims_read_is_asked_of_the_machine_that_is_shown(tmp_path):
    synthetic.layouts(tmp_path)
    copied(tmp_path, "other-gpu")
    page = Showing(tmp_path, synthetic.MACHINE, collecting=True)
    assert ledger.results(page) == []
    assert len(page.asked) == sum(len(each.needs) for each in claims.all_claims().values())


def test_claims_are_judged_on_gpus_and_on_a_cpu_where_there_is_no_other(tmp_path):
    assert ledger.judged_machines(tmp_path) == []
    synthetic.layouts(tmp_path)
    copied(tmp_path, "cpu-toy")
    assert ledger.judged_machines(tmp_path) == [synthetic.MACHINE]
    for file in tmp_path.glob(f"{synthetic.MACHINE}/*/*.json"):
        file.unlink()
    assert ledger.judged_machines(tmp_path) == ["cpu-toy"]
