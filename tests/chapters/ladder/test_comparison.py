"""The comparison of the ladder's rungs: who may fail, and what follows from the blocks."""

import pandas as pd
import pytest
import torch

from anatomy.chapters.ladder import ceilings as ladder_ceilings
from anatomy.chapters.ladder import comparison, gates, requirements, rungs, steps
from anatomy.measure import blocks
from anatomy.table.errors import AnatomyError, DisagreementError, MeasurementError
from tests.chapters.ladder.test_training import CPU, bench, few, way

__all__ = ["bench", "few"]


def compared_without(*culprits, error):
    """A comparison that fails while one of the culprits is in it."""

    def measured(calls):
        for label in culprits:
            if label in calls:
                raise error(label)
        return list(calls)

    return measured


def noted(label):
    error = RuntimeError("CUDA error")
    error.add_note(f"This was raised while {label!r} was being measured.")
    return error


@pytest.mark.parametrize(
    "error",
    [
        lambda label: DisagreementError(f"{label} strays from its reference by 1."),
        lambda label: MeasurementError(f"{label} leaves work on another stream."),
        noted,
    ],
)
def test_a_way_that_can_not_be_compared_costs_itself_alone(error):
    calls = dict.fromkeys(("0 fp32", "5 bf16", "5 bf16 without a graph", "2 amp bf16"))
    measured = compared_without("5 bf16 without a graph", "2 amp bf16", error=error)
    left, absent = comparison.without_culprits(measured, calls, "0 fp32")
    assert left == ["0 fp32", "5 bf16"]
    assert set(absent) == {"5 bf16 without a graph", "2 amp bf16"}


def test_who_is_not_named_is_looked_for_among_graphs_and_then_compiled_ways():
    calls = dict.fromkeys(("0 fp32", "2 amp bf16", "3 default", "5 bf16"))

    def nobody(label):
        return MeasurementError("20 of 30 blocks were disturbed: compilations (20).")

    def found(*culprits):
        return comparison.without_culprits(
            compared_without(*culprits, error=nobody), calls, "0 fp32"
        )

    assert found("5 bf16")[0] == ["0 fp32", "2 amp bf16", "3 default"]
    assert found("3 default")[0] == ["0 fp32", "2 amp bf16"]
    with pytest.raises(MeasurementError):
        found("2 amp bf16")
    with pytest.raises(DisagreementError):
        named = compared_without("0 fp32", error=lambda n: DisagreementError(f"{n} strays"))
        comparison.without_culprits(named, {"0 fp32": None, "2 amp bf16": None}, "0 fp32")


def test_without_rung_0_there_is_no_comparison_and_every_way_says_why(bench):
    ready = [steps.Ready(way("2 amp bf16"), None, lambda: None)]
    table, absent = comparison.compared("forward and backward", ready, bench, {}, 6, 0.05)
    assert table is None and "rung 0" in absent["2 amp bf16"]


def test_an_optimizer_that_can_not_be_had_costs_that_comparison_alone(bench, few, monkeypatch):
    def none(model, lr):
        raise RuntimeError("no optimizer here")

    monkeypatch.setattr(rungs.load("2_sdpa"), "optimizer_of", none)
    monkeypatch.setattr(blocks, "LOOKS", (6,))
    ready, refused = steps.prepared(bench)
    assert not refused
    given = (ready, bench, {}, 6, 0.05)
    first, absent = comparison.compared("forward and backward", *given)
    assert not absent and "2 amp bf16" in set(first.variant)
    second, absent = comparison.compared("with AdamW", *given)
    assert absent == {"2 amp bf16": "RuntimeError: no optimizer here"}
    assert "2 amp bf16" not in set(second.variant)


def rows(ratios: dict[str, float]) -> pd.DataFrame:
    """A comparison's rows in 12 equal blocks."""
    named = {"0 fp32": 1.0} | ratios
    return pd.DataFrame(
        {
            "variant": name,
            "role": "variant" if ratio != 1.0 else "control",
            "verdict": "faster",
            "blocks_s": [ratio] * 12,
            **dict.fromkeys(("median_s", "low_s", "high_s"), ratio),
            "noise_floor": 0.001,
            "flops": 100.0,
            "busy_s": None,
        }
        for name, ratio in named.items()
    )


def test_setting_up_is_paid_back_over_the_rung_before():
    ratios = {"2 amp bf16": 0.5, "3 default": 0.25, "3 reduce-overhead": 0.6, "5 bf16": 0.2}
    setups = {"0 fp32": 0.0, "2 amp bf16": 1.0, "3 default": 6.0, "5 bf16": 4.0}
    setups["3 reduce-overhead"] = 9.0
    known = {
        label: steps.Ready(way(label), None, None, {"setup_s": s, "busy_s": 0.1})
        for label, s in setups.items()
    }
    ceilings = {"bf16": ladder_ceilings.Ceiling(800.0, 400.0, 1600.0)}
    found = comparison.with_columns(rows(ratios), known, ceilings, gaps=True)
    found = found.set_index("variant")
    assert found.uses["3 default"] == (6.0 - 1.0) / (0.5 - 0.25) and found.pays["3 default"]
    assert found.pays["3 reduce-overhead"] is False and found.uses["3 reduce-overhead"] is None
    assert found.uses["5 bf16"] == 0.0, "it is set up sooner than rung 3, and is faster"
    assert found.before["5 bf16"] == "3 default" and found.before["0 fp32"] is None
    assert found.before["2 amp bf16"] is None, "rung 1 was not measured"
    assert found.gap_s["3 default"] == pytest.approx(0.15)
    assert found.share_of_ceiling["3 default"] == 100 / 0.25 / 800
    assert found.share_of_ceiling_low["3 default"] == 100 / 0.25 / 1600
    assert found.share_of_ceiling["0 fp32"] is None


def test_ceilings_are_checked_and_the_highest_counts():
    found = ladder_ceilings.measured([(16, 32, 16)], CPU, 6, scale=1 / 256)
    assert set(found.op) == {f"ceiling {name}" for name in requirements.SIDES}
    refused = found[found.get("note").notna()]
    assert list(refused.products) == ["fp8"] and refused.note.iloc[0].startswith("not supported")
    best = ladder_ceilings.highest(found)
    bf16 = found[(found.products == "bf16") & (found.role != "again")]
    assert best["bf16"].value == (bf16.flops / bf16.median_s).max() and "fp8" not in best
    assert best["bf16"].low <= best["bf16"].value <= best["bf16"].high
    assert ladder_ceilings.highest(None) == {}


def test_a_ceilings_product_is_held_against_more_precision():
    a, b = torch.randn(2, 64, 64).bfloat16()
    exact = ladder_ceilings._exact(a, b, "bf16")
    assert exact.dtype == torch.float32
    torch.testing.assert_close(exact.double(), a.double() @ b.double(), rtol=1e-5, atol=1e-5)
    assert ladder_ceilings._exact(a.float(), b.float(), "fp32").dtype == torch.float64


def test_scores_that_are_made_anew_are_no_other_work():
    attention = 6 * 1000
    seen = gates.Work(5000, 7 * 1000, "FlopCounterMode", "flash")
    assert gates.require_equal_work(seen, 5000, attention) == 5000 + 7000
    with pytest.raises(AnatomyError, match="void: its attention"):
        more = gates.Work(5000, 8 * 1000, "FlopCounterMode", "flash")
        gates.require_equal_work(more, 5000, attention)
