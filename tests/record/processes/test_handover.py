"""A comparison goes to whoever asked for it by an environment variable, and nowhere else."""

import numpy as np
import pandas as pd
import pytest

from anatomy.record.processes import handover
from anatomy.table.errors import MeasurementError

TABLE = pd.DataFrame(
    {
        "variant": ["a", "b"],
        "median_s": [1 / 3, np.nan],
        "samples": [240.0, np.nan],
        "blocks_s": [[0.1, 0.2], None],
        "wide": [np.bool_(True), np.bool_(False)],
    }
)


def test_nothing_happens_unless_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for value in (None, ""):
        monkeypatch.delenv(handover.VARIABLE, raising=False)
        if value is not None:
            monkeypatch.setenv(handover.VARIABLE, value)
        handover.hand_over(TABLE, 0.01)
    assert list(tmp_path.iterdir()) == []


def test_comparisons_arrive_in_their_order_in_plain_values(tmp_path, monkeypatch):
    file = tmp_path / "lines"
    assert handover.handed_over(file) == []
    monkeypatch.setenv(handover.VARIABLE, str(file))
    handover.hand_over(TABLE, 0.01)
    handover.hand_over(TABLE[:1], 0.02, ["Mind\nthe gap."])
    first, second = handover.handed_over(file)
    assert first["rows"] == [
        {"variant": "a", "median_s": 0.333333333, "samples": 240, "blocks_s": [0.1, 0.2],
         "wide": True},
        {"variant": "b", "median_s": None, "samples": None, "blocks_s": None, "wide": False},
    ]  # fmt: skip
    assert (first["noise_floor"], first["warnings"]) == (0.01, [])
    assert (second["noise_floor"], second["warnings"]) == (0.02, ["Mind\nthe gap."])


def test_a_file_that_can_not_be_written_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv(handover.VARIABLE, str(tmp_path / "nowhere" / "lines"))
    with pytest.raises(MeasurementError, match=r"could not be handed over to .*nowhere.lines"):
        handover.hand_over(TABLE, 0.01)
