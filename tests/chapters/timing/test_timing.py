"""Measuring on the CPU: what the tables hold, what follows from samples, and the claims."""

import re

import pytest

from anatomy.chapters.timing import calculations, equals, figures, judged, ways
from anatomy.page import curve
from anatomy.parts import memory
from anatomy.record.requirements import Capacity
from anatomy.record.showing import using
from tests.chapters.timing import timing_rows
from tests.fakes import synthetic
from tests.fakes.verdicts import words


def test_a_call_is_timed_in_every_way_in_the_same_blocks(monkeypatch):
    monkeypatch.setattr(ways, "BLOCKS", 3)
    monkeypatch.setattr(ways, "WARM_UP_S", 0.0)
    table = ways.ways("cpu", side=16, iters=2)
    assert table.blocks_s.notna().all()
    for op, others in timing_rows.WAYS.items():
        rows = table[table.op == op]
        assert list(rows.role) == ["control", *["variant"] * len(others), "again"]
        assert list(rows.variant)[1:-1] == list(others)
    rows = table[table.op == "GEMM"].set_index("variant")
    assert set(rows.blocks_s.map(len)) == {3} and set(rows.samples) == {15}
    assert "100 calls and one synchronize" in rows.method["perf_counter, one wait"]
    assert list(rows.launch_inclusive) == [False, *[True] * 5, False]
    values = table[table.op == "values"]
    assert values.method.str.endswith("the median of 2").all(), "a clock takes a while to follow"


def test_all_samples_are_kept_in_order():
    table = equals.equals("cpu", side=16, samples=48)
    kept = table[table.variant == "samples"]
    assert [len(each) for each in kept.samples_s] == [48, 48] and set(kept.samples) == {48}
    assert list(table[table.op == "GEMM"].variant)[1:4] == [
        equals.SINGLE,
        equals.AFTER,
        equals.IN_TURN,
    ]
    assert set(table.blocks.dropna()) == set(equals.BLOCKS)


def test_without_room_every_row_that_the_page_names_says_why(monkeypatch):
    monkeypatch.setattr(memory, "capacity", lambda where: Capacity(0, None, 2**20))
    table = ways.ways("cpu", side=16)
    assert table.note.notna().all() and "noise_floor" in table
    found = {op: list(table[table.op == op].variant) for op in timing_rows.WAYS}
    controls = {op: timing_rows.CONTROLS.get(op, ways.CAREFUL) for op in timing_rows.WAYS}
    assert found == {op: [controls[op], *others] for op, others in timing_rows.WAYS.items()}
    table = equals.equals("cpu", side=16)
    assert table.note.notna().all()
    assert {equals.IN_TURN, equals.AFTER, "12 blocks"} < set(table[table.op == "GEMM"].variant)


def test_a_drift_shows_in_halves_and_not_in_turns():
    drifting = [1.0 + 0.01 * at for at in range(96)]
    after, turn = (judged.ratios(drifting, way) for way in (equals.AFTER, equals.IN_TURN))
    assert len(after) == len(turn) == 4
    assert after[0] == pytest.approx(1.055 / 1.175) and turn[0] == pytest.approx(1 / 1.01, abs=2e-3)
    assert judged.ratios([1.0, 2.0, 3.0, 3.0, 9.0], equals.SINGLE) == [0.5, 1.0]


def test_strays_and_widths_are_read_off_the_samples():
    samples = [1.0, 1.0] * 19 + [1.0, 1.3] + [1.0, 1.0] * 8
    given = [{"op": "a", "variant": "samples", "samples_s": samples}]
    given += [{"op": "a", "variant": equals.SINGLE, "blocks": None}]
    given += [{"op": "a", "variant": "48 blocks", "blocks": 48}]
    given += [{"op": "a", "variant": "96 blocks", "blocks": 96}]
    given += [{"op": "b", "variant": equals.SINGLE, "blocks": None, "note": "no memory"}]
    found = dict(judged.equals(given, None))
    assert found == {
        1: {"stray": 0.0, "pairs": 28},
        2: {"half_width": 0.0},
        3: {"half_width": None},
    }
    given[0]["samples_s"] = samples[36:40] + samples[:4]
    assert dict(judged.equals(given, None))[1]["stray"] == pytest.approx(0.3)


WAYS = ("without-a-wait-the-asking-is-timed", "events-alone-time-the-host")
WAYS += ("without-a-flush-copies-look-faster", "zeros-are-faster")
EQUALS = ("single-samples-differ-by-a-percent", "in-turn-equals-differ-less")


def test_claims_on_ways_follow_the_ratios(tmp_path, monkeypatch):
    timing_rows.ways(tmp_path / "a")
    assert words(tmp_path / "a", *WAYS) == ["holds"] * 4
    for op, way in (("GEMM", "perf_counter, no wait"), ("addition", "events, one call")):
        monkeypatch.setitem(timing_rows.WAYS[op], way, 1.0)
    monkeypatch.setitem(timing_rows.WAYS["copy"], "back to back", 1.1)
    monkeypatch.setitem(timing_rows.WAYS["values"], "zeros", 1.0)
    timing_rows.ways(tmp_path / "b")
    assert words(tmp_path / "b", *WAYS) == ["fails"] * 4


@pytest.mark.parametrize(
    ("drift", "noise", "expected"),
    [
        (5.0, 0.01, ["holds", "holds"]),
        (0.0, 1e-4, ["fails", "fails"]),  # no drift, and little noise
    ],
)
def test_claims_on_equals_follow_drift_and_noise(drift, noise, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(timing_rows, "DRIFT", drift)
    monkeypatch.setattr(timing_rows, "NOISE", noise)
    timing_rows.equals(tmp_path)
    assert words(tmp_path, *EQUALS) == expected


def test_figures_show_strays_and_widths(tmp_path):
    timing_rows.equals(tmp_path)
    with using(synthetic.showing(tmp_path)):
        drawn, samples = figures.strays(), figures.in_order()
        widths = curve("timing.equals", x="blocks", y="half_width", series="op", fit="power")
    assert "one after the other" in drawn and "<svg" in drawn and "Fitted exponents" in widths
    assert "960 samples" in samples and {">0.95×<", ">1.00×<", ">1.05×<"} <= set(
        re.findall(">[0-9.]+×<", samples)
    )


def test_equals_that_do_not_stray_at_all_have_a_figure_and_a_verdict(tmp_path, monkeypatch):
    monkeypatch.setattr(timing_rows, "DRIFT", 0.0)
    monkeypatch.setattr(timing_rows, "NOISE", 0.0)
    timing_rows.equals(tmp_path)
    with using(synthetic.showing(tmp_path)):
        assert "<svg" in figures.strays()
    assert words(tmp_path, *EQUALS) == ["fails", "fails"]


@pytest.mark.parametrize(("half", "blocks"), [(0.01, 300), (0.002, 12), (0.003, 27)])
def test_blocks_go_with_the_square_of_the_width(half, blocks):
    assert calculations.blocks_for_two_permille(half) == blocks
