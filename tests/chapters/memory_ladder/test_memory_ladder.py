"""The memory ladder: kernels that read what they should, and levels that are found again."""

import pytest
import torch

from anatomy import claims
from anatomy.chapters.memory_ladder import bandwidth, calculations, latency, requirements
from anatomy.chapters.memory_ladder.requirements import BY_ALL, IN_PARTS, ONCE, WRITE
from anatomy.figures.curriculum import calculations as calculated
from anatomy.record import recording
from anatomy.record.declare import load
from anatomy.table.plateaus import plateaus
from tests.chapters.memory_ladder import memory_ladder_rows as made
from tests.fakes import synthetic
from tests.fakes.fake_stopwatch import made_up_time
from tests.fakes.verdicts import verdict, words
from tests.parts import cuda_on_cpu

CPU = torch.device("cpu")


@pytest.fixture
def on_cpu(kernels_on_cpu):
    with made_up_time():
        yield


def rows(path, **wanted) -> list[dict]:
    found = recording.load(path).rows
    return [row for row in found if all(row.get(n) == value for n, value in wanted.items())]


@pytest.mark.parametrize("op", [BY_ALL, IN_PARTS, ONCE])
def test_each_thread_reads_its_vectors_of_its_window_and_no_others(op):
    sets = bandwidth.windows(op, 6 * bandwidth.ROW_BYTES, blocks=3, scale=1e-4)
    data = torch.arange(sets.set_bytes // 4).remainder(15).add(1).float()
    sums = torch.zeros(3, bandwidth.THREADS)
    given = (data, sums, sets.rows, sets.apart, sets.rounds)
    cuda_on_cpu.kernel("ladder_read")(3, bandwidth.THREADS, given)
    assert (sums.double() == bandwidth._sums(data, sets, 3)).all()
    every = 3 if op == BY_ALL else 1
    assert sums.double().sum() == data.double().sum() * sets.rounds * every
    assert sets.rounds == 1 if op == ONCE else sets.rounds > 1


def test_a_launch_moves_equally_much_whatever_the_set_and_touches_all_of_it():
    for op in (BY_ALL, IN_PARTS, WRITE):
        for size in requirements.sets(op, 60 * 2**20):
            sets = bandwidth.windows(op, size, blocks=132)
            least = 132 * bandwidth.ROW_BYTES
            once = sets.moved_bytes // sets.rounds
            assert sets.moved_bytes == pytest.approx(max(2**33, once), rel=0.34)
            # Whole rows of all SMs: 2 MiB on a card with 132.
            assert abs(sets.set_bytes - size) <= max(least / 2, size / 8) or sets.rows == 1
            assert sets.rows * sets.rounds < 2**31, "the kernel counts in 32 bits"


def test_the_curves_are_measured_on_a_cpu_behind_the_shim(on_cpu):
    table = load("memory_ladder.bandwidth")(device="cpu", scale=0.0005, iters=6)
    timed = table[table.blocks_s.notna()]
    assert set(timed.op) == set(requirements.OPS) and (timed.error == 0).all()
    assert (timed.working_set_bytes <= timed.bytes).all()
    assert len(table[table.op == "write, levels"]) == bandwidth.MOST_LEVELS


def test_a_chain_visits_all_its_lines_and_comes_back(on_cpu):
    lines, loads = 64, 16
    chase = latency.Chase(lines, loads, CPU)
    stops = [next(chase._ways) for _ in range(4)]
    assert [end for _, end in stops[:-1]] == [start for start, _ in stops[1:]]
    assert stops[-1][1] == stops[0][0], "all of them, and back"
    at, seen = stops[0][0], set()
    for _ in range(lines):
        seen.add(at)
        at = (int(chase.chain[16 * at]) - chase.chain.data_ptr()) // requirements.LINE_BYTES
    assert seen == set(range(lines))
    assert all(chase() == 1 for _ in range(9)) and chase.cycles > 0
    chase.chain[16 * stops[0][0]] = chase.chain.data_ptr() + 128 * stops[0][0]
    assert 0 in [float(chase()) for _ in range(4)], "a chain that goes nowhere is found out"


def test_latencies_are_measured_on_a_cpu_behind_the_shim(on_cpu):
    table = load("memory_ladder.latency")(device="cpu", scale=0.001, iters=6)
    timed = table[table.blocks_s.notna()]
    assert set(timed.loads) == {16} and timed.working_set_bytes.nunique() > 10
    assert (timed.cycles_per_load > 0).all()


@pytest.mark.parametrize("name", ["bandwidth", "latency", "levels"])
def test_a_cpu_has_nothing_to_say_and_says_so(name):
    table = load(f"memory_ladder.{name}")(device="cpu")
    assert table.note.notna().all()


def test_levels_are_found_with_noise_and_with_sizes_between_them():
    down = [30, 30.5, 29.8, 20, 7, 6.8, 7.1, 6.9, 5, 4.1, 4.0, 4.05]
    assert plateaus(down) == [(0, 2), (4, 7), (9, 11)]
    assert plateaus([2.0**n for n in range(9)]) == [] == plateaus([]), "a slope has no level"
    assert plateaus([5.0] * 7) == [(0, 6)]


def test_a_made_up_card_has_the_levels_that_it_was_made_with(tmp_path):
    path = made.bandwidth(tmp_path)
    found = [row for row in rows(path, op="read by all, levels") if row["upto_bytes"]]
    assert [row["level_rate"] for row in found] == pytest.approx([30e12, 7e12, 4e12], rel=0.05)
    assert [row["upto_bytes"] for row in found[:2]] == [2**18, made.CACHE // 2]
    assert all(row["level_low"] <= row["level_rate"] <= row["level_high"] for row in found)
    chase = made.latency(tmp_path)
    found = [row for row in rows(chase, op="chase, levels") if row["upto_bytes"]]
    assert [row["latency_s"] for row in found] == pytest.approx([20e-9, 150e-9, 600e-9], rel=0.05)
    (one,) = rows(chase, variant="64.0 KiB")
    assert one["latency_s"] == pytest.approx(one["median_s"] / made.LOADS)


def test_the_verdicts_of_the_made_up_card(tmp_path):
    for make in (made.bandwidth, made.latency, made.levels):
        make(tmp_path)
    synthetic.MAKERS["limits.ceilings"](tmp_path)
    expected = {
        "reads-have-three-levels": claims.HOLDS,
        "hbm-is-ten-times-as-far": claims.HOLDS,
        "one-pass-hides-the-cache": claims.HOLDS,
        "l2-is-full-early": claims.HOLDS,
        "register-bandwidth": claims.FAILS,
        "registers-are-smallest": claims.FAILS,
        **dict.fromkeys(
            ("shared-memory-bandwidth", "l2-bandwidth", "hbm-bandwidth", "sram-is-20-mb",
             "l2-is-40-mb"),
            claims.NOT_MEASURABLE,
        ),
    }  # fmt: skip
    assert words(tmp_path, *expected) == [*expected.values()]
    assert "7.0" in verdict(tmp_path, "l2-bandwidth").evidence


def test_a_card_without_steps_turns_the_verdicts(tmp_path):
    made.bandwidth(tmp_path, levels={2**40: 4e12})
    made.levels(tmp_path)
    assert words(tmp_path, "reads-have-three-levels") == [claims.FAILS]
    made.bandwidth(tmp_path, levels={2**18: 24e12, 2**25: 5e12, 2**40: 4.5e12})
    near_by = words(tmp_path, "reads-have-three-levels")
    assert near_by == [claims.IN_PART], "three levels, and HBM hardly slower than the L2"
    assert words(tmp_path, "l2-bandwidth") == [claims.NOT_MEASURABLE]
    made.latency(tmp_path, levels={2**18: 20e-9, made.CACHE: 150e-9, 2**40: 600e-9})
    assert words(tmp_path, "l2-is-full-early") == [claims.FAILS]


@pytest.mark.parametrize(
    ("bandwidth", "latency", "kept"), [(4.1e12, 6e-7, 2**18), (1.7e12, 5e-7, 2**17)]
)
def test_the_answers_of_the_day_for_two_machines(bandwidth, latency, kept):
    in_flight = calculations.bytes_in_flight(bandwidth, latency)
    assert in_flight == pytest.approx(bandwidth * latency)
    passes = calculations.eight_passes(bandwidth, 2 * bandwidth, 4)
    assert passes == pytest.approx((1 + 16) * 2**24 / bandwidth)
    assert calculations.eight_passes_from_hbm(bandwidth, 4) == pytest.approx(32 / 17 * passes)
    assert calculations.loads_in_flight(bandwidth, latency, 4) == round(in_flight / 512)
    from_both = calculated.DECLARED["partly-from-l1-2-mib"].function(l2=bandwidth, kept=kept)
    assert from_both * (2**21 - kept) == pytest.approx(bandwidth * 2**21), "the L2 sends the rest"
