"""Warnings among the sources: each is told once, with the operations that it is about."""

from pathlib import Path
from types import SimpleNamespace

from anatomy.figures.charts import strips


def told(warnings: list[str], *operations: str) -> str:
    showing = SimpleNamespace(here=None, raw_link=lambda recording: "raw.json")
    showing.cited = lambda: [("from-toy", found)]
    data = {
        "rows": [{"op": op} for op in operations],
        "machine": {"slug": "toy", "cpu": "Toy"},
        "software": {},
        "noise_floor": {},
        "method": {},
        "started_at": "2026-11-21T00:00:00Z",
        "code": {"commit": "0" * 40},
    }
    recording = SimpleNamespace(
        path=Path("toy.json"),
        data=data,
        warnings=warnings,
        experiment="toy",
        rows=data["rows"],
        noise_floor={},
    )
    found = SimpleNamespace(recording=recording, instead_of=None, name="toy", params={})
    return strips.sources(showing)


def test_warnings_that_differ_in_numbers_are_one_line_that_names_the_operations():
    shown = told(
        ["copy: taken away 3 times in 0.3 s.", "add: taken away 12 times in 0.3 s."], "copy", "add"
    )
    assert "<summary>2 warnings while recording</summary>" in shown
    assert "<li>Taken away 3–12 times in 0.3 s. So in 2 comparisons: copy, add.</li>" in shown


def test_warnings_about_different_things_stay_apart():
    shown = told(
        ["copy: taken away 3 times.", "add: not steady.", "matmul: 3 of 4", "A & B"], "copy", "add"
    )
    for line in ("copy: taken away 3 times.", "add: not steady.", "matmul: 3 of 4", "A &amp; B"):
        assert f"<li>{line}</li>" in shown


def test_a_name_with_a_number_in_it_is_no_number():
    shown = told(["copy: fp16 took 2 s.", "add: fp32 took 2 s."], "copy", "add")
    assert "<li>copy: fp16 took 2 s.</li><li>add: fp32 took 2 s.</li>" in shown


def test_without_warnings_there_is_no_list():
    assert "strip-warnings" not in told([], "copy")
