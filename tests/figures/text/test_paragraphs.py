"""Paragraphs bound to a verdict: the right one shows, and none is an error with its line."""

import json

import pytest

from anatomy.figures.text import inline
from anatomy.figures.text.paragraphs import choose
from anatomy.record import recording
from anatomy.site.collecting import on_page
from tests.fakes import synthetic
from tests.fakes.sites import Project, block

CLAIM = "slice-doubles-fp16"  # which holds in the synthetic recordings
PAGE = f"""# T

[[when claim:{CLAIM} is holds]]
It doubles.
[[when fails, inconclusive]]
It does not: [[claim:{CLAIM} | evidence]]
[[end]]

After.
"""


def turned(root):
    """Recordings in which the sliced view costs nothing."""
    synthetic.bench(root, "fp16", 2048)
    (file,) = (root / synthetic.MACHINE / "contiguity.bench").glob("*.json")
    data = json.loads(file.read_text())
    for row in data["rows"]:
        if row["variant"] == "sliced_offset_view":
            row |= {"ratio": 1.0, "ratio_low": 0.999, "ratio_high": 1.001, "verdict": "same"}
    data["rows"] = synthetic.as_said(data["rows"])
    recording.save(data, root)
    return root


def test_the_paragraph_written_for_the_verdict_is_shown(tmp_path):
    text, wrong = inline.replace(synthetic.showing(), PAGE)
    assert not wrong and "It doubles." in text and "It does not" not in text
    text, wrong = inline.replace(synthetic.showing(root=turned(tmp_path)), PAGE)
    assert not wrong and "It doubles." not in text and "It does not: Here it is 1.0" in text
    assert "[[" not in text


def test_every_line_keeps_its_number():
    text, _ = choose(synthetic.showing(), PAGE)
    lines = PAGE.splitlines()
    assert [line for line in text.splitlines() if line] == [lines[0], lines[3], lines[8]]
    assert [bool(line) for line in text.splitlines()] == [1, 0, 0, 1, 0, 0, 0, 0, 1]


def test_prose_that_its_number_contradicts_is_an_error_with_its_line(tmp_path):
    only = PAGE.replace("fails, inconclusive", "inconclusive")
    showing = synthetic.showing(root=turned(tmp_path), page="a/b.md")
    _, wrong = choose(showing, only, offset=4)
    (told,) = wrong
    assert told.startswith("a/b.md:7: on toy-gpu the verdict of slice-doubles-fp16 is 'fails', ")
    assert "written for holds, inconclusive alone. Write one for [[when fails]]." in told


def test_a_missing_recording_is_a_gap_in_their_place(tmp_path):
    text, wrong = choose(synthetic.showing(root=tmp_path), PAGE)
    assert not wrong and "It doubles" not in text and "It does not" not in text
    assert "not recorded yet" in text.splitlines()[2]


def test_while_collecting_every_paragraph_notes_what_it_shows():
    code = 'from anatomy.page import show\nshow("tensor_layout.report")'
    both = PAGE.replace("It doubles.", block(code)).replace(
        "| evidence]]", "| evidence]] [[alignment.factorial.base.ratio]]"
    )
    asked, wrong = on_page("a.md", both)
    assert not wrong
    assert {each.name for each in asked} >= {"tensor_layout.report", "alignment.factorial"}


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("[[when holds]]\nx\n[[end]]", 1, "begin with a line [[when claim:ID is VERDICT]]"),
        ("x\n[[end]]", 2, "begin with a line"),
        (f"[[when claim:{CLAIM} is holds]]\nx", 1, "never closed; write [[end]]"),
        (f"[[when claim:{CLAIM} is true]]\nx\n[[end]]", 1, "no verdict 'true'"),
        (f"[[when claim:{CLAIM} is holds]]\nx\n[[when holds]]\ny\n[[end]]", 3, "stands above"),
        (f"[[when claim:{CLAIM} is holds]]\nx\n[[when]]\ny\n[[end]]", 3, "no verdict ''"),
        ("[[when claim:slice-dubles is holds]]\nx\n[[end]]", 1, "no claim 'slice-dubles'"),
        (f"Words [[when claim:{CLAIM} is holds]] in a line.", 1, "a line of its own"),
    ],
)
def test_what_can_not_be_read_is_told_with_its_line(text, line, says):
    wrong = inline.replace(synthetic.showing(page="p.md"), text)[1]
    assert wrong and wrong[0].startswith(f"p.md:{line}: ") and says in wrong[0], wrong
    assert on_page("p.md", text)[1], "it is found before anything is measured"


def test_in_code_they_are_text():
    fenced = f"```text\n{PAGE}```\n"
    assert choose(synthetic.showing(), fenced) == (fenced, [])


def test_a_build_shows_one_paragraph_and_stops_where_none_fits(tmp_path):
    (tmp_path / "good").mkdir()
    built = Project(tmp_path / "good", synthetic.shared()).write(index=PAGE).build("--strict")
    assert built.status == 0, built.said
    assert "It doubles." in built.read() and "It does not" not in built.read()
    recordings = turned(tmp_path / "recordings")
    text = PAGE.replace("fails, inconclusive", "inconclusive")
    (tmp_path / "bad").mkdir()
    built = Project(tmp_path / "bad", recordings).write(index="# H\n", bad=text).build()
    assert built.status != 0 and "bad.md:3: on toy-gpu the verdict" in built.said
    assert "Traceback" not in built.said
