"""Occupancy without a GPU: the kernels on the CPU, the fit of the steps, and the claims."""

from types import SimpleNamespace

import pytest
import torch

from anatomy.chapters.occupancy import calculations, figures, judged, occupancy
from anatomy.figures.curriculum import calculations as calculated
from anatomy.figures.diagrams.warps import block_waves, hidden_waits
from anatomy.page import curve, show
from anatomy.record.showing import using
from tests.chapters.occupancy import occupancy_rows
from tests.fakes import synthetic
from tests.fakes.verdicts import verdict, words

CARD = SimpleNamespace(
    multi_processor_count=3,
    shared_memory_per_block_optin=227 * 2**10,
    shared_memory_per_multiprocessor=228 * 2**10,
    max_threads_per_multi_processor=2048,
    warp_size=32,
)


@pytest.fixture
def toy(monkeypatch, kernels_on_cpu):
    """A card of three SMs whose kernels run on the CPU, with little to do."""
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda where: CARD)
    monkeypatch.setattr(occupancy, "STEPS", 20)
    monkeypatch.setattr(occupancy, "ROUNDS", 1)
    monkeypatch.setattr(occupancy, "HOW", occupancy.HOW | {"budget_s": 0.5, "settle_cap_s": 0.01})


def test_launches_lie_close_around_the_end_of_each_wave(toy):
    table = occupancy.staircase("cpu", iters=2)
    assert table.note.isna().all() and table.error.eq(0).all()
    for op, held in {"one block an SM": 1, "as many as fit": 8}.items():
        rows = table[(table.op == op) & (table.role != "again")]
        assert list(rows.grid_blocks) == occupancy.block_counts(3) == list(range(1, 13))
        assert set(rows.blocks_per_sm) == {held}
    for at_once in (132, 340):
        counts = occupancy.block_counts(at_once)
        assert counts[0] == 1 and counts[-1] == 4 * at_once and len(counts) < 30
        for wave in (1, 2, 3):
            assert {at_once * wave - 1, at_once * wave, at_once * wave + 1} <= set(counts)


def test_all_ways_read_the_same_and_say_what_they_have_in_flight(toy):
    table = occupancy.throughput("cpu", iters=2)
    rows = table[table.role != "again"]
    assert len(rows) == 3 * 8 and set(rows.bytes) == {3 * 8 * 256 * 64 * 4}
    assert list(rows.occupancy)[:8] == [held / 8 for held in range(8, 0, -1)]
    several = rows.loads_each.str.split().str[0].astype(int)
    assert list(rows.loads_in_flight) == list(rows.blocks_per_sm * several * 8)
    assert rows.iloc[-1].variant == "16 loads at a time, 1 blocks per SM"
    assert rows.iloc[-1].control == "16 loads at a time, 8 blocks per SM"


def test_without_a_gpu_rows_figures_and_claims_say_why(tmp_path):
    for run in (occupancy.staircase, occupancy.throughput):
        table = run("cpu")
        assert len(table) < 3 and table.note.str.contains("a CUDA kernel needs a GPU").all()
        rows = table.astype(object).where(table.notna(), None).to_dict("records")
        synthetic.record(tmp_path, f"occupancy.{run.__name__}", rows)
    assert set(words(tmp_path, *STEPS, *READS)) == {"not measurable here"}
    with using(synthetic.showing(tmp_path)):
        drawn = figures.staircase()
        drawn += curve("occupancy.throughput", x="occupancy", y="rate", series="loads_each")
        drawn += show("occupancy.staircase", chart="times")
    assert drawn.count("a CUDA kernel needs a GPU") == 3


@pytest.mark.parametrize("at_once", [7, 132, 188])
def test_the_steps_are_found_exactly_in_times_with_noise(at_once):
    counts = occupancy.block_counts(at_once)
    noise = torch.Generator().manual_seed(0)
    spread = 1 + 0.01 * torch.randn(len(counts), generator=noise)
    times = [occupancy_rows.seconds(n, at_once) for n in counts] * spread.numpy()
    found = judged.steps(counts, times)
    assert [found[f"at_once{end}"] for end in ("", "_low", "_high")] == [at_once] * 3
    assert found["wave_s"] == pytest.approx(occupancy_rows.WAVE_S, rel=0.05)


def test_far_from_the_edges_the_steps_are_known_to_a_range():
    counts = [10, 90, 150, 250, 290, 390]
    found = judged.steps(counts, [-(-n // 132) for n in counts])
    assert (found["at_once_low"], found["at_once_high"]) == (130, 144)


def test_what_grows_evenly_or_not_at_all_has_no_steps():
    counts = occupancy.block_counts(16)
    assert judged.steps(counts, [1e-6 * n for n in counts]) is None
    assert judged.steps(counts, [1e-6 + 1e-9 * (n % 3) for n in counts]) is None
    assert judged.steps([1, 2], [1.0, 2.0]) is None
    assert judged.steps([1, 1, 1, 1], [1.0, 2.0, 2.0, 1.0]) is None


STEPS = ("staircase-tells-the-sms", "one-block-more-costs-a-wave", "room-hides-the-step")
READS = ("warps-hide-latency", "half-the-occupancy-is-enough", "more-loads-beat-more-warps")


@pytest.mark.parametrize("per_sm", [1, 2])
def test_a_staircase_tells_the_sms(per_sm, tmp_path):
    occupancy_rows.staircase(tmp_path, at_once=4 * per_sm)
    assert words(tmp_path, *STEPS) == ["holds"] * 3
    assert verdict(tmp_path, STEPS[0]).evidence == "The times say 4 SMs (4 to 4); there are 4."


def test_a_line_is_no_staircase(tmp_path):
    occupancy_rows.staircase(tmp_path, at_once=1)
    assert set(words(tmp_path, *STEPS)) == {"not measurable here"}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, ["holds", "holds", "holds"]),
        ({"BYTES_PER_S": 1e15}, ["holds", "fails", "holds"]),  # a memory that never is the limit
        ({"WAIT_S": 1e-12}, ["fails", "holds", "inconclusive"]),  # one that answers at once
    ],
)
def test_what_is_in_flight_sets_the_rate_up_to_that_of_the_memory(
    changed, expected, tmp_path, monkeypatch
):
    for each, value in changed.items():
        monkeypatch.setattr(occupancy_rows, each, value)
    occupancy_rows.throughput(tmp_path)
    assert words(tmp_path, *READS) == expected


def test_a_load_is_under_way_as_long_as_little_says(tmp_path):
    occupancy_rows.throughput(tmp_path)
    found = synthetic.showing(tmp_path).find("occupancy.throughput").recording.rows
    alone = next(row for row in found if row["variant"] == "1 load at a time, 1 blocks per SM")
    assert alone["under_way_s"] == pytest.approx(occupancy_rows.WAIT_S, rel=0.05)


def test_the_staircase_is_drawn_with_its_places_and_told_without_a_script(tmp_path):
    occupancy_rows.staircase(tmp_path)
    with using(synthetic.showing(tmp_path)):
        alone, together = figures.staircase(), figures.staircase(op="as many as fit")
    assert 'data-at-once="4"' in alone and "<b data-blocks>5</b> blocks" in alone
    assert "<b data-used>62.5%</b>" in alone  # 5 of 2 x 4 places
    assert "data-at-once" not in together and "8 blocks" in together


def test_rates_are_drawn_over_what_is_under_way(tmp_path):
    occupancy_rows.throughput(tmp_path)
    with using(synthetic.showing(tmp_path)):
        drawn = curve("occupancy.throughput", x="occupancy", y="rate", series="loads_each")
    assert "12.5%" in drawn and "GB/s" in drawn and "16 loads at a time" in drawn


def test_the_drawings_say_in_words_what_they_show(tmp_path):
    occupancy_rows.staircase(tmp_path)
    with using(synthetic.showing(tmp_path)):
        assert "Block 5 waits" in block_waves() and ">measured: " in block_waves()
    assert "the SM is never idle" in hidden_waits()


@pytest.mark.parametrize(
    ("at_once", "waves", "seconds"), [(132, 8, 362e-6), (48, 21, 947e-6), (500, 2, 92e-6)]
)
def test_a_thousand_blocks_take_whole_waves(at_once, waves, seconds):
    assert calculations.waves_of_a_thousand_blocks(at_once) == waves
    assert calculations.time_of_a_thousand_blocks(at_once, 2e-6, 45e-6) == pytest.approx(seconds)


def test_a_wave_is_its_multiply_adds_and_four_blocks_share_an_sm():
    assert calculations.cycles_of_a_multiply_add(40e-6, 2000) == pytest.approx(4)
    assert calculations.share_of_one_block(alone=50e-6, shared=160e-6) == pytest.approx(0.8)
    by_cycles = calculated.DECLARED["three-blocks-by-cycles"].function
    assert by_cycles(fixed=2e-6, clock_mhz=2000) == pytest.approx(122e-6)


@pytest.mark.parametrize(
    ("bandwidth", "wait", "sms", "loads"),
    [(4.5e12, 700e-9, 132, 186.4), (0.65e12, 500e-9, 48, 52.9)],  # an H200, and an RTX 5070
)
def test_bandwidth_times_wait_is_what_must_be_under_way(bandwidth, wait, sms, loads):
    found = calculations.loads_for_the_bandwidth(bandwidth, wait, sms)
    assert found == pytest.approx(loads, rel=1e-3)
