"""Sync points: claims that follow the rows of their recordings."""

from pathlib import Path

import pytest

from anatomy.chapters.sync_points import requirements
from anatomy.chapters.sync_points.claims.sync_points import crossing
from anatomy.chapters.sync_points.lines import ITEM, SYNC
from anatomy.claims import FAILS, HOLDS, INCONCLUSIVE, NOT_MEASURABLE
from tests.chapters.sync_points.sync_points_rows import bench, events, kernel_s, training_loop
from tests.fakes.verdicts import verdict


def edited(root: Path, change) -> Path:
    """A recording whose loops with a synchronize are changed by `change(row, control)`."""

    def edit(rows: list[dict]) -> None:
        for row in rows:
            if str(row["op"]).startswith("loop ") and row["variant"] == SYNC:
                control = next(
                    each for each in rows if each["op"] == row["op"] and each["role"] == "control"
                )
                change(row, control)

    bench(root, edit)
    return root


EXPECTED = {
    "item-includes-pending-work": HOLDS,
    "sync-is-1-percent-of-25-ms": FAILS,
    "sync-is-half-of-18-us": HOLDS,
    "fp16-8192-is-25-ms": NOT_MEASURABLE,
    "fp16-512-is-18-us": NOT_MEASURABLE,
    "numpy-synchronizes": FAILS,
    "async-is-fastest": FAILS,  # printing is slower than a synchronize
    "gap-means-utilisation": FAILS,
    "readback-share-falls": HOLDS,
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("bench")
    bench(root)
    return root


@pytest.mark.parametrize("name", EXPECTED)
def test_a_verdict_follows_the_rule_of_the_toy_machine(name, recorded):
    result = verdict(recorded, name)
    assert result.word == EXPECTED[name], result.evidence


def test_a_synchronize_that_costs_12_us_at_every_size_costs_the_same(tmp_path):
    def twelve(row, control):
        row |= {"wait_s": 12e-6, "wait_low_s": 11.5e-6, "wait_high_s": 12.5e-6}
        row["noise_floor"] = 0.0

    assert verdict(edited(tmp_path, twelve), "sync-costs-the-same").word == HOLDS


def test_one_that_grows_with_the_product_does_not(tmp_path):
    def grows(row, control):
        row |= {"wait_s": row["kernel_s"], "noise_floor": 0.0}
        row |= {"wait_low_s": row["kernel_s"] * 0.99, "wait_high_s": row["kernel_s"] * 1.01}

    result = verdict(edited(tmp_path, grows), "sync-costs-the-same")
    assert result.word == FAILS, result.evidence


def test_one_without_an_interval_is_not_judged(tmp_path):
    def unknown(row, control):
        row |= dict.fromkeys(("wait_s", "wait_low_s", "wait_high_s"))

    result = verdict(edited(tmp_path, unknown), "sync-costs-the-same")
    assert result.word == NOT_MEASURABLE and "too few blocks" in result.evidence


@pytest.mark.parametrize(
    ("ratio", "word"), [((1.009, 1.010, 1.011), HOLDS), ((1.0, 1.005, 1.012), INCONCLUSIVE)]
)
def test_one_percent_of_25_ms_is_a_range_that_the_interval_must_lie_in(ratio, word, tmp_path):
    def share(row, control):
        row |= dict(zip(("ratio_low", "ratio", "ratio_high"), ratio, strict=True))
        row["noise_floor"] = 0.0005

    assert verdict(edited(tmp_path, share), "sync-is-1-percent-of-25-ms").word == word


def test_an_item_that_does_not_wait_is_found_out(tmp_path):
    def edit(rows):
        for row in rows:
            if row["variant"] == "queue, item":
                row |= {"median_s": 4e-6, "low_s": 3.9e-6, "high_s": 4.1e-6}

    bench(tmp_path, edit)
    assert verdict(tmp_path, "item-includes-pending-work").word == FAILS


def test_a_numpy_that_raises_nothing_was_not_measured(tmp_path):
    def edit(rows):
        rows[-1] |= {"raised": None, "note": "on cpu it shares the tensor's memory"}

    bench(tmp_path, edit)
    result = verdict(tmp_path, "numpy-synchronizes")
    assert result.word == NOT_MEASURABLE and "shares" in result.evidence


@pytest.mark.parametrize(("slow", "word"), [(2.4, HOLDS), (1.7, INCONCLUSIVE), (1.3, INCONCLUSIVE)])
def test_item_can_double_the_time_of_training_if_it_does_once(slow, word, tmp_path):
    training_loop(tmp_path, slow)
    bench(tmp_path, lambda rows: None)
    result = verdict(tmp_path, "item-doubles-runtime")
    assert result.word == word, result.evidence
    assert result.short == (() if word == HOLDS else ("not seen in 2 models",))
    assert "A loop over nothing but matmuls takes up to" in result.evidence


def test_a_share_that_stays_does_not_fall(tmp_path):
    def edit(rows):
        for row in rows:
            if str(row["op"]).startswith("loop ") and row["variant"] == ITEM:
                row |= {"ratio_low": 1.49, "ratio": 1.5, "ratio_high": 1.51}

    bench(tmp_path, edit)
    assert verdict(tmp_path, "readback-share-falls").word == FAILS


def _loops(rows: list[dict], variant: str) -> list[dict]:
    return [r for r in rows if str(r["op"]).startswith("loop ") and r["variant"] == variant]


def _longest(variant: str, low: float, middle: float, high: float):
    """A change of the ratio behind the longest product."""

    def edit(rows):
        last = _loops(rows, variant)[-1]
        last |= {"ratio_low": low, "ratio": middle, "ratio_high": high}

    return edit


def test_a_share_that_may_be_nothing_is_no_negative_number(tmp_path):
    bench(tmp_path, _longest(ITEM, 0.95, 1.02, 1.07))
    result = verdict(tmp_path, "readback-share-falls")
    assert result.word == INCONCLUSIVE and "at most 6." in result.evidence
    assert "-" not in result.evidence and result.measured.low > 0.5


def test_a_share_counts_only_where_the_gpu_has_no_pause_without_the_line(tmp_path):
    def edit(place):
        def change(rows):
            row = _loops(rows, ITEM)[place]
            assert row["bound_by"] == "host"
            row |= {"ratio_low": 1.01, "ratio": 1.02, "ratio_high": 1.03}

        return change

    bench(tmp_path, edit(0))  # the kernel is half of the iteration: the GPU idles anyway
    assert verdict(tmp_path, "readback-share-falls").word == HOLDS
    bench(tmp_path, edit(1))  # kernel and queueing take equally long: over half is expected
    assert verdict(tmp_path, "readback-share-falls").word == FAILS


def test_a_gap_means_utilisation_where_no_pair_of_sizes_says_otherwise(tmp_path):
    def edit(rows):
        for row in _loops(rows, SYNC):  # the longer the product, the larger the gap
            gap = 1.0 + row["side"] / 4096
            row |= {"ratio_low": gap * 0.999, "ratio": gap, "ratio_high": gap * 1.001}

    bench(tmp_path, edit)
    result = verdict(tmp_path, "gap-means-utilisation")
    assert result.word == HOLDS and "idler one in 0" in result.evidence


def test_the_noise_of_queueing_is_none_of_a_wait_for_25_ms(tmp_path):
    def edit(rows):
        for row in rows:
            if str(row["op"]) == f"behind {requirements.SIDES[-1]}":
                row["noise_floor"] = 0.95

    bench(tmp_path, edit)
    result = verdict(tmp_path, "item-includes-pending-work")
    assert result.word == HOLDS and "undecided" not in result.evidence


def test_a_crossing_lies_between_its_neighbours_and_may_be_none():
    line = [(1e-6, 0.9), (1e-4, 0.3), (1e-2, 0.001)]
    at = crossing(line, 0.5)
    assert 1e-6 < at < 1e-4 and crossing(line, 0.95) is None
    assert crossing([(1.0, 1.0), (100.0, 0.0)], 0.5) == pytest.approx(10.0)


def test_the_toy_machine_has_the_seeds_18_us_and_25_ms():
    times = [kernel_s(side) for side in requirements.SIDES]
    assert any(10e-6 < t < 30e-6 for t in times) and any(20e-3 < t < 30e-3 for t in times)
    assert len(events("no wait")) < len(events("item each step"))


def test_a_level_that_no_share_is_shown_to_be_below_is_not_fallen_through(tmp_path):
    bench(tmp_path)
    evidence = verdict(tmp_path, "readback-share-falls").evidence
    assert "1.00% between" in evidence and "not decided" not in evidence
    bench(tmp_path, _longest(ITEM, 0.95, 1.002, 1.07))
    evidence = verdict(tmp_path, "readback-share-falls").evidence
    assert "1.00% between" not in evidence and "is above 1.00% or below" in evidence


def test_an_inconclusive_share_says_what_it_was_held_against(tmp_path):
    bench(tmp_path, _longest(SYNC, 1.001, 1.004, 1.02))
    result = verdict(tmp_path, "sync-is-1-percent-of-25-ms")
    assert result.word == INCONCLUSIVE and "from 0.50% to 1.50%" in result.evidence
