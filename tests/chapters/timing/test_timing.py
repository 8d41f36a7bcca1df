"""Measuring on the CPU: what the tables hold, what follows from samples, and the claims."""

import pytest

from anatomy.chapters.timing import calculations, figures, judged, timing
from anatomy.page import curve, show
from anatomy.parts import memory
from anatomy.record.requirements import Capacity
from anatomy.record.showing import using
from tests.chapters.timing import timing_rows
from tests.fakes import synthetic
from tests.fakes.verdicts import words

SINGLE, AFTER, IN_TURN = timing.FOLLOWING
WAYS = ("without-a-wait-the-asking-is-timed", "events-alone-time-the-host")
WAYS += ("without-a-flush-copies-look-faster", "zeros-are-faster")
EQUALS = ("single-samples-differ-by-a-percent", "in-turn-equals-differ-less")


def test_a_call_is_timed_in_every_way_in_the_same_blocks(monkeypatch):
    monkeypatch.setattr(timing, "BLOCKS", 3)
    monkeypatch.setattr(timing, "settle", lambda watch, rings: 0.0)
    table = timing.ways("cpu", side=16, iters=2)
    assert set(table.blocks_s.map(len)) == {3} and set(table.samples) == {15}
    for op, (control, *others) in timing.NAMED.items():
        rows = table[table.op == op]
        assert list(rows.variant) == [control, *others, f"{control} (again)"]
        assert list(rows.role) == ["control", *["variant"] * len(others), "again"]
    rows = table[table.op == "GEMM"].set_index("variant")
    assert "100 calls and one synchronize" in rows.method["perf_counter, one wait"]
    assert list(rows.launch_inclusive) == [False, *[True] * 5, False]
    values = table[table.op == "values"]
    assert values.method.str.endswith("the median of 2").all(), "a clock takes a while to follow"


def test_all_samples_are_kept_in_order():
    table = timing.equals("cpu", side=16, samples=48)
    kept = table[table.variant == "samples"]
    assert [len(each) for each in kept.samples_s] == [48, 48] and set(kept.samples) == {48}
    assert set(table.blocks.dropna()) == {6, 12, 24, 48, 96}


def test_without_room_every_row_that_the_page_names_says_why(monkeypatch):
    monkeypatch.setattr(memory, "capacity", lambda where: Capacity(0, None, 2**20))
    table, equals = timing.ways("cpu", side=16), timing.equals("cpu", side=16)
    assert table.note.notna().all() and equals.note.notna().all() and "noise_floor" in table
    assert {op: tuple(own) for op, own in table.groupby("op").variant} == timing.NAMED
    assert set(equals.variant) == {"samples", *timing.FOLLOWING, *timing.COUNTS}


def test_a_drift_shows_in_halves_and_not_in_turns():
    drifting = [1.0 + 0.01 * at for at in range(96)]
    after, turn = (judged.ratios(drifting, way) for way in (AFTER, IN_TURN))
    assert len(after) == len(turn) == 4
    assert after[0] == pytest.approx(1.055 / 1.175) and turn[0] == pytest.approx(1 / 1.01, abs=2e-3)
    assert judged.ratios([1.0, 2.0, 3.0, 3.0, 9.0], SINGLE) == [0.5, 1.0]


def test_strays_and_widths_are_read_off_the_samples():
    samples = [1.0, 1.0] * 19 + [1.0, 1.3] + [1.0, 1.0] * 8
    given = [
        {"op": "a", "variant": "samples", "samples_s": samples},
        {"op": "a", "variant": SINGLE},
    ]
    given += [{"op": "a", "variant": f"{count} blocks", "blocks": count} for count in (48, 96)]
    given += [{"op": "b", "variant": SINGLE, "note": "no memory"}]
    found = dict(judged.equals(given, None))
    widths = {2: {"half_width": 0.0}, 3: {"half_width": None}}
    assert found == {1: {"stray": 0.0, "pairs": 28}} | widths
    given[0]["samples_s"] = samples[36:40] + samples[:4]
    assert dict(judged.equals(given, None))[1]["stray"] == pytest.approx(0.3)


def test_claims_on_ways_follow_the_ratios(tmp_path, monkeypatch):
    timing_rows.ways(tmp_path / "a")
    assert words(tmp_path / "a", *WAYS) == ["holds"] * 4
    slower = {"GEMM": (1.0,) * 5, "addition": (1.0,) * 5, "copy": (1.1,), "values": (1.0,)}
    monkeypatch.setattr(timing_rows, "SLOWER", slower)
    timing_rows.ways(tmp_path / "b")
    assert words(tmp_path / "b", *WAYS) == ["fails"] * 4


@pytest.mark.parametrize(
    ("drift", "noise", "expected"),
    [(5.0, 0.01, "holds"), (0.0, 1e-4, "fails"), (0.0, 0.0, "fails")],
)
def test_claims_and_bars_of_equals_follow_drift_and_noise(
    drift, noise, expected, tmp_path, monkeypatch
):
    monkeypatch.setattr(timing_rows, "DRIFT", drift)
    monkeypatch.setattr(timing_rows, "NOISE", noise)
    timing_rows.equals(tmp_path)
    assert words(tmp_path, *EQUALS) == [expected] * 2
    with using(synthetic.showing(tmp_path)):
        assert "<svg" in show("timing.equals", chart="stray", rows=[*timing.FOLLOWING])


def test_samples_are_drawn_in_order_and_widths_over_their_number(tmp_path):
    timing_rows.equals(tmp_path)
    with using(synthetic.showing(tmp_path)) as showing:
        samples = figures.in_order()
        seen = showing.find("timing.equals").recording.data["conditions"]
        seen["before"]["throttle"] = {"power_cap": 10**9}
        seen["after"]["throttle"] = {"power_cap": 35 * 10**8}
        capped = figures.in_order()
        widths = curve("timing.equals", x="blocks", y="half_width", series="op", fit="power")
    assert "the 960 samples in order" in samples and "<title>samples 949 to 960: " in samples
    assert "power cap" not in samples and "clock down for 2.5 s" in capped
    assert "Fitted exponents" in widths


@pytest.mark.parametrize(("half", "blocks"), [(0.01, 300), (0.002, 12), (0.003, 27)])
def test_blocks_go_with_the_square_of_the_width(half, blocks):
    assert calculations.blocks_for_two_permille(half) == blocks


def test_a_way_that_waits_for_a_long_kernel_is_paced_by_it(tmp_path):
    timing_rows.ways(tmp_path)
    rows = synthetic.showing(tmp_path).find("timing.ways").recording.rows
    paced = {(row["op"], row["variant"]): row["paced_by"] for row in rows}
    assert paced["GEMM", "events, many calls"] == "GPU"
    assert paced["GEMM", "perf_counter, no wait"] == "host", "it does not wait for the kernel"
    assert {who for (op, way), who in paced.items() if op == "addition"} == {"GPU", "host"}
    assert paced["addition", "events, many calls"] == "host"
