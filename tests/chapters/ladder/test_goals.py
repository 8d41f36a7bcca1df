"""The ladder's goals: met, missed or open by whole intervals, and only where measured."""

import pytest

from anatomy.chapters.ladder.claims import goals
from anatomy.chapters.ladder.shown import rungs
from anatomy.claims import evaluate
from tests.chapters.ladder import ladder_rows
from tests.chapters.ladder.shown.test_pages import changed, root
from tests.fakes import synthetic

__all__ = ["root"]  # the recordings of all three widths

TRAINING = "ladder.training"
GOALS = ("ladder-goal-at-4096", "ladder-goal-at-1024", "ladder-goal-beyond-engine")


def goal(root, name: str):
    return evaluate(synthetic.showing(root=root), name)


def test_goals_are_met_or_missed_by_the_share_of_the_best_product(root):
    found = {name: goal(root, name) for name in GOALS}
    assert found["ladder-goal-at-4096"].word == "holds"
    assert found["ladder-goal-at-1024"].word == "fails"
    rate = ladder_rows.RUNG_0_FLOPS_PER_S / ladder_rows.RATIOS["5 bf16"]
    share = rate / ladder_rows.CEILINGS["bf16"]
    assert found["ladder-goal-at-1024"].measured.value == pytest.approx(share, rel=0.02)
    assert "5 bf16 reaches" in found["ladder-goal-at-1024"].evidence
    assert "the mask hides" in found["ladder-goal-at-1024"].evidence


def test_what_the_mask_hides_is_left_out_where_attention_is_fused(root):
    known = {
        row["variant"]: (row["executed_share"], row["share_of_ceiling"])
        for row in rungs.of(synthetic.showing(root=root).find(TRAINING).recording.rows)
        if rungs.measured(row)
    }
    executed, whole = known["0 fp32"]  # unfused: both halves are computed
    assert executed == whole > 0
    executed, whole = known["5 bf16"]
    C = T = 1024
    attention, masked = 4 * C * T, 2 * C * T  # of a token in one layer
    assert executed / whole == pytest.approx(1 - masked / (24 * C * C + attention))


def copied(root, into):
    for width in (1024, 2048, 4096):
        changed(root, into, lambda row: None, width)
    return into


def test_a_share_at_the_goal_is_not_decided(root, tmp_path):
    share = goal(root, "ladder-goal-at-4096").measured.value

    def slower(row):
        if row.get("limit") == "matmul bf16" and not row["op"].startswith("ceiling"):
            for name in ("median_s", "low_s", "high_s"):
                row[name] *= share / 0.85

    folder = changed(root, copied(root, tmp_path), slower, 4096)
    assert goal(folder, "ladder-goal-at-4096").word == "inconclusive"


def test_without_a_best_product_a_goal_can_not_be_judged(root, tmp_path):
    def lost(row):
        if row["op"].startswith("ceiling"):
            row |= {"median_s": None, "note": "no room"}

    folder = changed(root, copied(root, tmp_path), lost, 4096)
    assert goal(folder, "ladder-goal-at-4096").word == "not measurable here"


def test_fp8_beats_the_engine_only_at_an_equal_error(root, tmp_path):
    assert goal(root, GOALS[2]).word == "holds"

    def worse(row):
        if row["variant"].startswith("5 fp8"):
            row["gradient_error"] *= 1.5

    folder = changed(root, copied(root, tmp_path), worse, 2048)
    found = goal(folder, GOALS[2])
    assert found.word == "holds in part" and "at a larger error" in found.evidence


@pytest.mark.parametrize(("loss", "equal"), [(2**-8, True), (1.1 * 2**-8, False)])
def test_a_loss_that_strays_by_no_more_than_a_bf16_rounding_counts_as_equal(loss, equal):
    ours = {"loss_error": loss, "gradient_error": 1e-3}
    assert goals._no_worse(ours, {"loss_error": 1e-6, "gradient_error": 1e-3}) is equal


def test_without_the_engine_there_is_nothing_to_beat(root, tmp_path):
    def absent(row):
        if row.get("rung") == "4_transformer_engine":
            for name in ("median_s", "low_s", "high_s", "limit", "ratio"):
                row[name] = None
            row |= {"note": "Rung 4 needs Transformer Engine.", "verdict": None}

    folder = tmp_path
    for width in (1024, 2048, 4096):
        changed(root, folder, absent, width)
    found = goal(folder, GOALS[2])
    assert found.word == "not measurable here" and "needs Transformer Engine" in found.evidence


def test_what_attention_contributes_to_the_lead_is_in_the_evidence(root, tmp_path):
    def attended(row):
        if row.get("rung") == "4_transformer_engine" and row.get("busy_s"):
            # All but attention takes the engine half of what it takes rung 5.
            row |= {"busy_s": row["median_s"], "attention_s": row["median_s"] - 1e-3}
        if row.get("rung") == "5_fastest" and row.get("busy_s"):
            row["attention_s"] = row["busy_s"] - 2e-3

    folder = changed(root, copied(root, tmp_path), attended, 1024)
    assert "without attention's kernels 2.00×" in goal(folder, GOALS[2]).evidence

    def unprofiled(row):
        row |= {name: None for name in ("busy_s", "attention_s") if name in row}

    folder = changed(root, copied(root, tmp_path), unprofiled, 1024)
    first = goal(folder, GOALS[2]).evidence.split("; width 2048")[0]
    assert "takes" in first and "attention" not in first
