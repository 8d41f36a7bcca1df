"""Coalescing: sectors counted by hand, the kernel that reads them, and what follows from rates."""

import json
import re
import subprocess
import sys

import pytest
import torch

from anatomy import claims, page
from anatomy.chapters.coalescing import calculations, figures, requirements
from anatomy.chapters.coalescing.sectors import sectors, useful_share
from anatomy.record import recording
from anatomy.record.declare import load
from anatomy.record.showing import using
from tests.chapters.coalescing import coalescing_rows as made
from tests.fakes import synthetic
from tests.fakes.fake_stopwatch import made_up_time
from tests.fakes.sites import CHECKOUT
from tests.fakes.verdicts import verdict, words
from tests.parts import cuda_on_cpu


@pytest.fixture
def root(tmp_path):
    made.strides(tmp_path)
    made.offsets(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("stride", "offset", "touched"),
    [(1, 0, 4), (2, 0, 8), (7, 0, 28), (8, 0, 32), (9, 0, 32), (32, 0, 32),
     (1, 4, 5), (1, 28, 5), (1, 32, 4), (1, 128, 4), (2, 4, 8), (8, 4, 32)],
)  # fmt: skip
def test_the_sectors_of_a_request(stride, offset, touched):
    found = sectors(stride, offset)
    assert len(found) == touched and sum(found.values()) == 128
    assert useful_share(stride, offset) == 4 / touched
    assert list(found) == sorted(found) and max(found.values()) <= 32


def test_neighbours_fill_their_sectors_and_an_offset_leaves_parts_of_two():
    assert sectors(1) == {0: 32, 1: 32, 2: 32, 3: 32}
    assert sectors(1, 4) == {0: 28, 1: 32, 2: 32, 3: 32, 4: 4}
    assert sectors(8) == dict.fromkeys(range(32), 4)


@pytest.mark.parametrize(
    ("first", "stride", "neighbours", "elements", "rounds"),
    [(0, 1, 1, 300, 1), (3, 1, 1, 64, 5), (0, 5, 1, 77, 1), (1, 4, 4, 130, 2), (0, 32, 32, 9, 1)],
)
def test_a_thread_reads_the_elements_that_it_should(first, stride, neighbours, elements, rounds):
    data = torch.randint(1, 16, (first + elements * stride + 32,)).float()
    sums, expected = torch.full((64,), float("nan")), torch.zeros(64)
    given = (data, sums, first, stride, neighbours, elements, rounds)
    cuda_on_cpu.kernel("strided_read")(2, 32, given)
    for element in range(elements):
        at = first + element * stride
        expected[element % 64] += rounds * data[at : at + neighbours].sum()
    assert (sums == expected).all()


@pytest.mark.parametrize("name", ["strides", "offsets"])
def test_an_experiment_behind_the_shim_agrees_with_its_reference(name, kernels_on_cpu):
    with made_up_time():
        table = load(f"coalescing.{name}")(device="cpu", scale=0.0001, iters=6)
    assert (table.error == 0).all() and table.op.nunique() == 2
    assert (table.useful_share == 4 / table.sectors).all()


@pytest.mark.parametrize("name", ["strides", "offsets"])
def test_a_cpu_has_nothing_to_say_and_says_so(name):
    table = load(f"coalescing.{name}")(device="cpu")
    assert table.note.str.contains("this is cpu").all() and len(table) > 30


def test_the_verdicts_of_a_card_that_moves_32_bytes_at_a_time(root):
    names = "sectors-predict-strides", "strides-are-cheap-if-all-is-used", "pieces-predict-strides"
    assert words(root, *names) == [claims.HOLDS, claims.HOLDS, claims.IN_PART]
    offsets = verdict(root, "sectors-predict-offsets")
    assert offsets.word == claims.IN_PART and "from L1" in offsets.condition


def test_where_64_bytes_move_at_a_time_the_sectors_miss_the_large_strides(tmp_path):
    made.strides(tmp_path, atom=64)
    found = words(tmp_path, "sectors-predict-strides", "pieces-predict-strides")
    assert found == [claims.IN_PART, claims.HOLDS]


def test_the_prediction_is_the_controls_rate_times_what_is_used(tmp_path):
    (row,) = (
        row for row in recording.load(made.strides(tmp_path)).rows
        if (row["op"], row["variant"]) == ("one of each", "stride 4")
    )  # fmt: skip
    assert row["predicted_rate"] == pytest.approx(made.ALIGNED / 4, rel=0.02)
    assert row["piece_rate"] == pytest.approx(row["predicted_rate"])


def test_the_picture_has_what_was_measured_for_every_stride_and_offset(root):
    with using(synthetic.showing(root=root)):
        drawn = figures.touched([(1, 0), (8, 0), (1, 4)], sliders=True)
        beside = figures.offsets()
        curve = page.curve("coalescing.strides", x="stride", y="rate", series="op",
                           fit="predicted_rate")  # fmt: skip
    assert "stride 8" in drawn and "32 sectors" in drawn and "TB/s measured" in drawn
    rates = json.loads(re.search(r'data-measured="([^"]*)"', drawn)[1].replace("&quot;", '"'))
    assert {"1,0", "32,0", "1,128"} <= set(rates) and all(rates.values())
    assert "stroke-dasharray" in curve and "GB/s" in curve
    assert beside.count("<tr") == 1 + 2 * len(requirements.OFFSETS) and "<svg" in beside


def test_without_a_recording_the_picture_still_shows_the_sectors(tmp_path):
    with using(synthetic.showing(root=tmp_path)):
        drawn, beside = figures.touched([(2, 0)]), figures.offsets()
    assert "8 sectors, 50% used" in drawn and "measured," not in drawn and "<svg" not in beside


@pytest.mark.parametrize("bandwidth", [4.1e12, 1.7e12])
def test_the_answers_of_the_day_for_two_machines(bandwidth):
    assert calculations.time_of_every_eighth(bandwidth) == pytest.approx(2**30 / bandwidth)
    assert calculations.clocks(1e-3, 128e6, 2000, 100) == pytest.approx(200)
    assert calculations.l1_at_two_clocks(2000, 100) == pytest.approx(12.8e12)


def test_the_days_script_runs_by_itself():
    script = CHECKOUT / "snippets" / "days" / "day_05" / "strides.py"
    done = subprocess.run([sys.executable, str(script), "1000"], capture_output=True, text=True)
    assert not done.returncode and done.stdout.count("stride") == 16, done.stderr
