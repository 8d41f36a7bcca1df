"""Claims on number formats: each verdict turns when the rows behind it are edited."""

import json
from pathlib import Path

import pytest

from anatomy import claims
from anatomy.chapters.precision import claims as precision_claims
from anatomy.record import recording
from tests.fakes import synthetic
from tests.fakes.verdicts import verdict

NAMES = ("training", "gradients", "fp8", "inference")
WITHOUT_FP8 = "not supported on sm_80: fp8 products need sm_89"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Synthetic recordings of the four experiments, to be edited."""
    for name in NAMES:
        synthetic.MAKERS[f"precision.{name}"](tmp_path)
    return tmp_path


def edited(root: Path, name: str, change) -> None:
    """Change the rows of a recording, and save it again."""
    (file,) = (root / synthetic.MACHINE / f"precision.{name}").glob("*.json")
    data = json.loads(file.read_text())
    for row in data["rows"]:
        change(row)
    data["rows"] = synthetic.as_said(data["rows"])
    recording.save(data, root)


def retimed(factor):
    """A change of every variant's time and ratio by `factor(row)`."""

    def change(row):
        if row.get("role") == "variant" and row.get("blocks_s"):
            times = ("median_s", "low_s", "high_s", "ratio", "ratio_low", "ratio_high")
            by = factor(row)
            row |= {n: row[n] * by for n in times if row.get(n) is not None}
            row["blocks_s"] = [each * by for each in row["blocks_s"]]

    return change


def test_the_verdicts_of_the_made_up_card(root):
    words = {
        "mixed-precision-is-faster": claims.IN_PART,
        "end-to-end-speed-up": claims.IN_PART,
        "mixed-precision-halves-memory": claims.FAILS,
        "mixed-precision-halves-activations": claims.HOLDS,
        "bf16-range-is-fp32s": claims.HOLDS,
        "bf16-needs-no-scaling": claims.HOLDS,
        "fp16-for-inference": claims.NOT_MEASURABLE,
        "fp8-pays-with-quantisation": claims.IN_PART,
        "fp8-halves-a-product": claims.IN_PART,
        "fp8-is-hopper": claims.FAILS,
    }
    for name, word in words.items():
        result = verdict(root, name)
        assert result.word == word, (name, result.word, result.evidence)


@pytest.mark.parametrize("name", ["mixed-precision-is-faster", "end-to-end-speed-up"])
@pytest.mark.parametrize(
    ("times", "floor", "word"),
    [
        ({"tf32": 1.0, "16 bits": 1 / 1.7}, None, claims.HOLDS),
        ({"tf32": 1.0, "16 bits": 1.0}, None, claims.FAILS),
        ({"tf32": 1.0, "16 bits": 1 / 1.4}, None, claims.FAILS),
        ({"tf32": 1.0, "16 bits": 1 / 3}, None, claims.HOLDS),
        ({"tf32": 1.0, "16 bits": 1 / 1.7}, 0.5, claims.INCONCLUSIVE),
        ({"tf32": 0.5, "16 bits": 1 / 1.7}, None, claims.IN_PART),
    ],
)
def test_a_step_is_as_much_faster_as_claimed_or_not(name, times, floor, word, root):
    def to(row):
        return times["tf32" if row["variant"] == "tf32" else "16 bits"] / row["ratio"]

    edited(root, "training", retimed(to))
    if floor:
        edited(root, "training", lambda row: row.update(noise_floor=floor))
    assert verdict(root, name).word == word, verdict(root, name).evidence


def test_a_gain_over_fp32_alone_says_so(root):
    edited(
        root,
        "training",
        retimed(lambda row: (1 if row["variant"] == "tf32" else 0.6) / row["ratio"]),
    )
    edited(root, "training", retimed(lambda row: 0.6 if row["variant"] == "tf32" else 1))
    result = verdict(root, "mixed-precision-is-faster")
    assert result.condition == "for fp32, 12 of 24 cases", result.evidence


def test_memory_is_halved_if_all_of_it_is(root):
    def halve(row):
        if row["variant"] in ("amp fp16", "amp bf16"):
            row["total_peak_bytes"] = int((4e8 + 8e8 + 2.6e9) / 2)

    edited(root, "training", halve)
    assert verdict(root, "mixed-precision-halves-memory").word == claims.HOLDS

    def keep(row):
        if row["variant"] == "amp fp16":
            row["activation_bytes"] = int(1.4e9)

    edited(root, "training", keep)
    result = verdict(root, "mixed-precision-halves-activations")
    assert result.word == claims.IN_PART and "for amp bf16" in result.condition


def test_without_an_account_of_memory_there_is_no_verdict_on_the_peak(root):
    edited(root, "training", lambda row: row.update(total_peak_bytes=None))
    result = verdict(root, "mixed-precision-halves-memory")
    assert result.word == claims.NOT_MEASURABLE
    assert result.evidence == "a CPU keeps no account of its memory"
    assert verdict(root, "mixed-precision-halves-activations").word == claims.HOLDS


@pytest.mark.parametrize(
    ("column", "value"), [("underflow", 5), ("overflow", 1), ("error", 5e-3), ("error", None)]
)
def test_bf16_that_gains_by_scaling_needs_it(column, value, root):
    def lose(row):
        if row["variant"] == "bf16" and row["op"] == "gradients small":
            row[column] = value

    edited(root, "gradients", lose)
    result = verdict(root, "bf16-needs-no-scaling")
    assert result.word == claims.IN_PART and "except for small" in result.condition


def test_a_narrower_range_is_not_fp32s(root):
    def narrow(row):
        if row["op"] == "finfo" and row["variant"] == "bf16":
            row |= {"largest": 65504.0, "smallest_normal": 2.0**-14}

    edited(root, "gradients", narrow)
    assert verdict(root, "bf16-range-is-fp32s").word == claims.FAILS


def test_fp16_is_for_inference_if_it_is_as_fast_and_more_accurate(root, monkeypatch):
    # The advice is for cards before Ampere, and the made-up one is none.
    found = verdict(root, "fp16-for-inference")
    assert found.word == claims.NOT_MEASURABLE and "of the error" in found.evidence
    monkeypatch.setattr(precision_claims, "AMPERE", 99.0)
    edited(root, "inference", retimed(lambda row: 0.9))
    found = verdict(root, "fp16-for-inference")
    # The block that overflows was made to: it is told, and decides nothing.
    assert found.word == claims.HOLDS and "outputs are infinite in fp16" in found.evidence
    edited(root, "inference", retimed(lambda row: 1.3))
    assert "for error" in verdict(root, "fp16-for-inference").condition
    edited(root, "inference", lambda row: row.update(error=1e-3))
    assert verdict(root, "fp16-for-inference").word == claims.FAILS


@pytest.mark.parametrize(
    ("factor", "floor", "word"),
    [
        (lambda row: 0.5 / row["ratio"], None, claims.HOLDS),
        (lambda row: 2.0 / row["ratio"], None, claims.FAILS),
        (lambda row: 0.9 / row["ratio"], 0.3, claims.INCONCLUSIVE),
    ],
)
def test_fp8_pays_where_its_whole_interval_is_below_bf16(factor, floor, word, root):
    edited(root, "fp8", retimed(lambda row: factor(row) if row.get("ratio") else 1.0))
    if floor:
        edited(root, "fp8", lambda row: row.update(noise_floor=floor))
    assert verdict(root, "fp8-pays-with-quantisation").word == word


@pytest.mark.parametrize(("ratio", "word"), [(0.5, claims.HOLDS), (0.7, claims.FAILS)])
def test_an_fp8_product_takes_half_the_time_or_does_not(ratio, word, root):
    edited(root, "fp8", retimed(lambda row: ratio / row["ratio"] if row.get("ratio") else 1.0))
    assert verdict(root, "fp8-halves-a-product").word == word


def test_a_card_without_fp8_says_so_and_nothing_else(root):
    def absent(row):
        if "fp8" in row["variant"]:
            keep = ("op", "variant", "role", "quantity")
            row |= {name: None for name in row if name not in keep}
            row["note"] = WITHOUT_FP8

    edited(root, "fp8", absent)
    for name in ("fp8-pays-with-quantisation", "fp8-halves-a-product"):
        result = verdict(root, name)
        assert (result.word, result.evidence) == (claims.NOT_MEASURABLE, WITHOUT_FP8)
