"""What reading the weights alone would take in decoding, from what was recorded."""

import pytest

from anatomy.chapters.ladder import calculations
from anatomy.figures.text import inline
from anatomy.table import units
from tests.chapters.ladder import ladder_forward_rows
from tests.fakes import synthetic


def test_half_the_bytes_are_read_in_half_the_time():
    assert calculations.weights_read(4e9, 4e12) == pytest.approx(1e-3)
    assert calculations.weights_read(2e9, 4e12) == pytest.approx(0.5e-3)


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
