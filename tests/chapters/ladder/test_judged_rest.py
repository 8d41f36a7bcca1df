"""The rest of a step, beside its kernels, as the ladder's recordings are read."""

from anatomy import judge
from tests.chapters.ladder import ladder_rows
from tests.fakes import synthetic


def test_a_profile_with_more_kernel_time_than_the_step_leaves_a_rest_below_zero(tmp_path):
    ladder_rows.training(tmp_path)
    found = synthetic.showing(root=tmp_path).find("ladder.training", width=1024, layers=2)
    rows = [dict(row) for row in found.recording.rows]
    row = next(each for each in rows if each["variant"] == "3 default" and each["busy_s"])
    row["busy_s"] = 1.05 * row["median_s"]
    known = judge.Circumstances(experiment="ladder.training")
    again = judge.judged(rows, known)[rows.index(row)]
    assert round(again["gap_s"] / again["median_s"], 6) == -0.05


def test_a_first_step_is_paid_back_whole(tmp_path):
    ladder_rows.training(tmp_path)
    found = synthetic.showing(root=tmp_path).find("ladder.training", width=1024, layers=2)
    rows = {row["variant"]: row for row in found.recording.rows if row.get("rung")}
    row = next(each for each in rows.values() if each.get("uses") and each["setup_s"])
    saved = rows[row["before"]]["median_s"] - row["median_s"]
    assert abs(row["uses"] * saved / row["setup_s"] - 1) < 0.1
