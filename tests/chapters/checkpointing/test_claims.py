"""Checkpointing and accumulation: what may be said of their recordings."""

import json

import pytest

from anatomy import claims
from anatomy.record import recording
from tests.fakes import synthetic

FRONTIER = "checkpointing.frontier"
GRADIENTS = "accumulation.gradients"
MADE = (FRONTIER, GRADIENTS, "accumulation.steps")


@pytest.fixture
def verdict(tmp_path):
    """The verdict on a claim, of recordings whose rows were changed first."""
    for name in MADE:
        synthetic.MAKERS[name](tmp_path)

    def evaluated(claim, name=FRONTIER, change=None):
        if change:
            (file,) = (tmp_path / synthetic.MACHINE / name).glob("*.json")
            data = json.loads(file.read_text())
            for row in data["rows"]:
                change(row)
            data["rows"] = synthetic.as_said(data["rows"])
            recording.save(data, tmp_path)
        return claims.evaluate(synthetic.showing(root=tmp_path), claim)

    return evaluated


def faster(factor, *names):
    """Multiply the times of these variants, and with them the ratios."""

    def change(row):
        if row["variant"] in names:
            row["blocks_s"] = [factor * each for each in row["blocks_s"]]
            for column in ("median_s", "low_s", "high_s", "ratio", "ratio_low", "ratio_high"):
                row[column] *= factor

    return change


def test_speed_kept_is_the_inverse_of_the_ratio(verdict):
    found = verdict("checkpointing-speed")
    assert found.word == claims.HOLDS, "who keeps more speed than promised was not misled"
    slow = verdict("checkpointing-speed", change=faster(2.0, "every layer"))
    assert (slow.word, slow.condition) == (claims.IN_PART, "for selective, 5 of 10 cases")
    assert "every layer 0.39" in slow.evidence
    both = verdict("checkpointing-speed", change=faster(2.0, "every layer", "selective"))
    assert both.word == claims.FAILS


def test_a_floor_as_wide_as_the_claim_leaves_speed_undecided(verdict):
    found = verdict("checkpointing-speed", change=lambda row: row.update(noise_floor=0.5))
    assert found.word == claims.INCONCLUSIVE


def test_memory_counts_with_weights_and_without(verdict):
    found = verdict("checkpointing-memory")
    assert found.word == claims.IN_PART and found.condition.startswith("for every layer 8192")

    def much(row):
        row |= {"memory_ratio": 0.6, "total_memory_ratio": 0.6}

    assert verdict("checkpointing-memory", change=much).word == claims.FAILS

    def weights(row):
        row["memory_ratio"] = 0.6
        row["total_memory_ratio"] = 0.4

    found = verdict("checkpointing-memory", change=weights)
    assert (found.word, found.condition) == (claims.IN_PART, "for with weights, 10 of 20 cases")

    def both(row):
        row["memory_ratio"] = 0.45

    assert verdict("checkpointing-memory", change=both).word == claims.HOLDS


def test_without_an_account_of_memory_nothing_is_said_of_it(verdict):
    def forget(row):
        row |= dict.fromkeys(("peak_bytes", "memory_ratio", "total_memory_ratio"))

    for name in ("checkpointing-memory", "checkpoint-at-layers"):
        found = verdict(name, change=forget)
        assert found.word == claims.NOT_MEASURABLE and "account of its memory" in found.evidence
    found = verdict("accumulation-before-checkpointing", "accumulation.steps", forget)
    assert found.word == claims.NOT_MEASURABLE


def as_small(row):
    """Halves of a layer need hardly more than half of what layers do."""
    if row["variant"] == "halves of a layer":
        row["peak_bytes"] //= 2


def test_layers_stand_until_something_as_small_is_faster(verdict):
    assert verdict("checkpoint-at-layers").word == claims.HOLDS
    # Less memory for more time is another point of the frontier.
    assert verdict("checkpoint-at-layers", change=as_small).word == claims.HOLDS
    found = verdict("checkpoint-at-layers", change=faster(0.8, "halves of a layer"))
    assert found.word == claims.IN_PART and "halves of a layer" in found.condition
    assert "halves of a layer (train" in found.evidence


def test_being_faster_in_more_memory_beats_nothing(verdict):
    assert verdict("checkpoint-at-layers", change=faster(0.5, "segments")).word == claims.HOLDS


@pytest.mark.parametrize(
    ("memory", "time", "stands"),
    [
        (1.5, "faster", True),
        (1.005, "faster", False),
        (0.5, "faster", False),
        (0.5, "slower", True),
        (0.5, "same", False),
        (1.0, "same", True),
        (0.5, "undecided", None),
    ],
)
def test_one_way_dominates_another_by_both_or_not_at_all(memory, time, stands):
    from anatomy.chapters.checkpointing.claims import _not_dominated

    assert _not_dominated(memory, time) is stands


def test_what_could_not_be_run_is_left_out_and_counted(verdict):
    def refuse(row):
        if row["variant"] == "selective":
            row |= {name: None for name in row if name not in ("op", "variant", "role", "quantity")}
            row["note"] = "it does not fit"

    assert verdict("checkpointing-speed", change=refuse).word == claims.HOLDS
    assert (
        "5 of 10 cases can't be measured: it does not fit"
        in verdict("checkpointing-speed").evidence
    )


def test_dividing_by_steps_holds_where_the_tokens_are_equal(verdict):
    found = verdict("divide-loss-by-steps")
    assert (found.word, found.condition) == (claims.IN_PART, "for equal lengths, 9 of 27 cases")
    assert verdict("weighted-by-tokens-is-exact").word == claims.HOLDS


def test_verdicts_on_gradients_flip_with_their_errors(verdict):
    def exact(row):
        row["gradient_error"] = 0.0

    def rounded(row):
        row["gradient_error"] = 5 * row["allowed"]

    def wrong(row):
        row["gradient_error"] = 0.9

    for change, word in (
        (exact, claims.HOLDS), (rounded, claims.INCONCLUSIVE), (wrong, claims.FAILS),
    ):  # fmt: skip
        for name in ("divide-loss-by-steps", "weighted-by-tokens-is-exact"):
            assert verdict(name, GRADIENTS, change).word == word


def test_accumulating_is_cheaper_where_a_part_of_the_batch_is_still_large(verdict):
    name = "accumulation-before-checkpointing"
    found = verdict(name)
    assert (found.word, found.condition) == (claims.IN_PART, "for 32768 tokens, 1 of 3 cases")

    def large(row):
        if "steps" in row["variant"]:
            row["peak_bytes"] *= 100

    found = verdict(name, "accumulation.steps", large)
    assert found.word == claims.FAILS and "no number of steps needs as little" in found.evidence


def test_accumulating_that_is_faster_everywhere_holds(verdict):
    change = faster(0.1, "2 steps", "4 steps", "8 steps")
    name = "accumulation-before-checkpointing"
    assert verdict(name, "accumulation.steps", change).word == claims.HOLDS
