"""Answers of the ladder that are calculated from what was recorded: mostly what bytes alone would
take."""

import pytest

from anatomy.chapters.ladder import calculations
from anatomy.figures.text import inline
from anatomy.table import units
from tests.chapters.ladder import ladder_forward_rows
from tests.fakes import synthetic


def test_half_the_bytes_are_read_in_half_the_time():
    assert calculations.weights_read(4e9, 4e12) == pytest.approx(1e-3)
    assert calculations.weights_read(2e9, 4e12) == pytest.approx(0.5e-3)
    assert calculations.seven_billion_read(1e12) == pytest.approx(14e-3)


def test_a_table_of_scores_has_a_number_for_each_pair_and_head():
    assert calculations.scores_read(8, 1024, 1024, 1.0) == 2**28
    assert calculations.scores_read(4, 2048, 1024, 1.0) == 2**28


def test_the_rate_of_linear_layers_is_held_against_the_best_one():
    # 24 C^2 FLOPs a token and layer, and three times that with the backward pass.
    flops = 3 * 24 * 1024**2 * (8 * 1024) * 2
    assert calculations.matmuls_share(1.0, 2, 8, 1024, 1024, flops) == pytest.approx(1.0)
    assert calculations.matmuls_share(2.0, 2, 8, 1024, 1024, flops) == pytest.approx(0.5)


def test_the_best_rate_is_that_of_which_a_step_reached_its_share():
    assert calculations.best_of_the_run(100.0, 2.0, 0.5) == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("name", "variant"), [("fp32", "0 fp32"), ("bf16", "5 bf16"), ("fp8", "5 fp8")]
)
def test_each_format_is_asked_for_its_own_weights(tmp_path, name, variant):
    ladder_forward_rows.decoding(tmp_path)
    synthetic.MAKERS["limits.ceilings"](tmp_path)
    showing = synthetic.showing(root=tmp_path)
    rows = showing.find("ladder.decoding").recording.rows
    weights = next(row["weight_bytes"] for row in rows if row["variant"] == variant)
    took = units.seconds(weights / showing.ceilings.get("read").value)
    assert f">{took}<" in inline.render(showing, f"calculated: {name}-weights-read")
