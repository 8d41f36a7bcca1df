"""Number formats: what an experiment counts, what a machine lacks, and when a verdict flips."""

import json
from pathlib import Path

import pandas as pd
import pytest
import synthetic
import torch

from anatomy import claims, models, recording
from anatomy.errors import DisagreementError
from anatomy.experiments import precision, precision_fp8, precision_gradients, precision_training
from anatomy.measuring import blocks, comparison

CPU = torch.device("cpu")
NAMES = ("training", "gradients", "fp8", "inference")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Synthetic recordings of the four experiments, to be edited."""
    for name in NAMES:
        synthetic.MAKERS[f"precision.{name}"](tmp_path)
    return tmp_path


@pytest.fixture
def short(monkeypatch):
    """Blocks as short as can be."""
    monkeypatch.setattr(blocks, "PART_S", 1e-4)
    monkeypatch.setattr(blocks, "LOOKS", (6,))
    monkeypatch.setattr(comparison, "SETTLE_CAP_S", 0.1)


def verdict(name: str, root: Path) -> claims.Result:
    return claims.evaluate(synthetic.showing(root=root), name)


def edited(root: Path, name: str, change) -> None:
    """Change the rows of a recording, and save it again."""
    (file,) = (root / synthetic.MACHINE / f"precision.{name}").glob("*.json")
    data = json.loads(file.read_text())
    for row in data["rows"]:
        change(row)
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
        "mixed-precision-is-faster": claims.ONLY_WHERE,
        "end-to-end-speed-up": claims.ONLY_WHERE,
        "mixed-precision-halves-memory": claims.FAILS,
        "mixed-precision-halves-activations": claims.HOLDS,
        "bf16-range-is-fp32s": claims.HOLDS,
        "bf16-needs-no-scaling": claims.HOLDS,
        "fp16-for-inference": claims.ONLY_WHERE,
        "fp8-pays-with-quantisation": claims.ONLY_WHERE,
        "fp8-halves-a-product": claims.ONLY_WHERE,
        "fp8-is-hopper": claims.FAILS,
    }
    for name, word in words.items():
        result = verdict(name, root)
        assert result.word == word, (name, result.word, result.evidence)


@pytest.mark.parametrize("name", ["mixed-precision-is-faster", "end-to-end-speed-up"])
@pytest.mark.parametrize(
    ("times", "floor", "word"),
    [
        ({"tf32": 1.0, "16 bits": 1 / 1.7}, None, claims.HOLDS),
        ({"tf32": 1.0, "16 bits": 1.0}, None, claims.FAILS),
        ({"tf32": 1.0, "16 bits": 1 / 3}, None, claims.FAILS),
        ({"tf32": 1.0, "16 bits": 1 / 1.7}, 0.5, claims.INCONCLUSIVE),
        ({"tf32": 0.5, "16 bits": 1 / 1.7}, None, claims.ONLY_WHERE),
    ],
)
def test_a_step_is_as_much_faster_as_claimed_or_not(name, times, floor, word, root):
    def to(row):
        return times["tf32" if row["variant"] == "tf32" else "16 bits"] / row["ratio"]

    edited(root, "training", retimed(to))
    if floor:
        edited(root, "training", lambda row: row.update(noise_floor=floor))
    assert verdict(name, root).word == word, verdict(name, root).evidence


def test_a_gain_over_fp32_alone_says_so(root):
    edited(
        root,
        "training",
        retimed(lambda row: (1 if row["variant"] == "tf32" else 0.6) / row["ratio"]),
    )
    edited(root, "training", retimed(lambda row: 0.6 if row["variant"] == "tf32" else 1))
    result = verdict("mixed-precision-is-faster", root)
    assert result.condition == "for fp32, 12 of 24 cases", result.evidence


def test_memory_is_halved_if_all_of_it_is(root):
    def halve(row):
        if row["variant"] in ("amp fp16", "amp bf16"):
            row["total_peak_bytes"] = int((4e8 + 8e8 + 2.6e9) / 2)

    edited(root, "training", halve)
    assert verdict("mixed-precision-halves-memory", root).word == claims.HOLDS

    def keep(row):
        if row["variant"] == "amp fp16":
            row["activation_bytes"] = int(1.4e9)

    edited(root, "training", keep)
    result = verdict("mixed-precision-halves-activations", root)
    assert result.word == claims.ONLY_WHERE and "for amp bf16" in result.condition


def test_without_an_account_of_memory_there_is_no_verdict_on_the_peak(root):
    edited(root, "training", lambda row: row.update(total_peak_bytes=None))
    result = verdict("mixed-precision-halves-memory", root)
    assert result.word == claims.NOT_MEASURABLE
    assert result.evidence == "a CPU keeps no account of its memory"
    assert verdict("mixed-precision-halves-activations", root).word == claims.HOLDS


@pytest.mark.parametrize(
    ("column", "value"), [("underflow", 5), ("overflow", 1), ("error", 5e-3), ("error", None)]
)
def test_bf16_that_gains_by_scaling_needs_it(column, value, root):
    def lose(row):
        if row["variant"] == "bf16" and row["op"] == "gradients small":
            row[column] = value

    edited(root, "gradients", lose)
    result = verdict("bf16-needs-no-scaling", root)
    assert result.word == claims.ONLY_WHERE and "except for small" in result.condition


def test_a_narrower_range_is_not_fp32s(root):
    def narrow(row):
        if row["op"] == "finfo" and row["variant"] == "bf16":
            row |= {"largest": 65504.0, "smallest_normal": 2.0**-14}

    edited(root, "gradients", narrow)
    assert verdict("bf16-range-is-fp32s", root).word == claims.FAILS


def test_fp16_is_for_inference_if_it_is_as_fast_as_accurate_and_large_enough(root):
    assert "except for range" in verdict("fp16-for-inference", root).condition

    def finite(row):
        if row["op"] == "overflow":
            row["overflow"] = 0

    edited(root, "gradients", finite)
    assert verdict("fp16-for-inference", root).word == claims.HOLDS
    edited(root, "inference", retimed(lambda row: 1.1))
    assert "except for time" in verdict("fp16-for-inference", root).condition
    edited(root, "inference", lambda row: row.update(error=1e-3))
    edited(
        root, "gradients", lambda row: row.update(overflow=1) if row["op"] == "overflow" else None
    )
    assert verdict("fp16-for-inference", root).word == claims.FAILS


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
    assert verdict("fp8-pays-with-quantisation", root).word == word


@pytest.mark.parametrize(("ratio", "word"), [(0.5, claims.HOLDS), (0.7, claims.FAILS)])
def test_an_fp8_product_takes_half_the_time_or_does_not(ratio, word, root):
    edited(root, "fp8", retimed(lambda row: ratio / row["ratio"] if row.get("ratio") else 1.0))
    assert verdict("fp8-halves-a-product", root).word == word


WITHOUT_FP8 = "not supported on sm_80: fp8 products need sm_89"


def test_a_card_without_fp8_says_so_and_nothing_else(root):
    def absent(row):
        if "fp8" in row["variant"]:
            keep = ("op", "variant", "role", "quantity")
            row |= {name: None for name in row if name not in keep}
            row["note"] = WITHOUT_FP8

    edited(root, "fp8", absent)
    for name in ("fp8-pays-with-quantisation", "fp8-halves-a-product"):
        result = verdict(name, root)
        assert (result.word, result.evidence) == (claims.NOT_MEASURABLE, WITHOUT_FP8)


def test_on_sm_80_the_bf16_rows_are_measured_and_the_others_say_why(short, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    why = precision_fp8.without_fp8(torch.device("cuda", 0))
    assert why == WITHOUT_FP8
    monkeypatch.setattr(precision_fp8, "without_fp8", lambda where: why)
    found = pd.concat(precision_fp8.products([(16, 16, 16)], CPU, 6, 0.1))
    assert set(found[found.note.isna()].variant) == {"bf16", "bf16 (again)"}
    refused = found[found.note.notna()]
    assert set(refused.note) == {WITHOUT_FP8} and refused.median_s.isna().all()
    assert set(refused.variant) == {
        "fp8, factors ready",
        "fp8, quantised",
        "fp8, quantised, compiled",
    }


def test_quantising_fills_the_range_and_never_leaves_it():
    x = torch.randn(64, 64).bfloat16()
    x[0, 0] = 1000.0
    x8, scale = precision_fp8.quantised(x)
    assert x8.dtype == torch.float8_e4m3fn and x8.float().abs().max() == precision_fp8.LARGEST
    back = x8.float() * scale
    assert float((back - x.float()).norm() / x.float().norm()) < 2**-4
    zero, scale = precision_fp8.quantised(torch.zeros(4, 4).bfloat16())
    assert zero.float().isfinite().all() and scale > 0


def test_factors_of_random_size_are_off_by_as_much_as_the_tolerance_says():
    torch.manual_seed(0)
    x, w = torch.randn(128, 256).bfloat16(), torch.randn(96, 256).bfloat16()
    (x8, s), (w8, t) = precision_fp8.quantised(x), precision_fp8.quantised(w)
    found = (x8.double() @ w8.double().t()) * s.double() * t.double()
    exact = x.double() @ w.double().t()
    error = float((found - exact).norm() / exact.norm())
    assert error < precision_fp8.ALLOWED_QUANTISED < 2 * error


def fake_product(x, w, x_scale, w_scale, bias=None):
    """What the FP8 kernel computes, on a CPU."""
    y = (x.double() @ w.double().t()) * x_scale.double() * w_scale.double()
    return (y if bias is None else y + bias.double()).bfloat16()


def test_every_way_through_fp8_runs_and_agrees_where_the_kernel_is_faked(short, monkeypatch):
    monkeypatch.setattr(precision_fp8, "without_fp8", lambda where: None)
    monkeypatch.setattr(precision_fp8, "product", fake_product)
    monkeypatch.setattr(precision_fp8, "compiled", lambda function: function)
    found = pd.concat(precision_fp8.products([(32, 32, 64)], CPU, 6, 0.1))
    found = pd.concat([found, *precision_fp8.perceptron(64, 16, CPU, 6, 0.1)])
    assert found.note.isna().all() if "note" in found else True
    timed = found[(found.op != "first call") & (found.role != "again")]
    assert len(timed) == 2 * 4 + 4 and timed.median_s.notna().all()
    eight = timed[timed.variant.str.startswith("fp8")]
    assert (eight.error.between(0.01, 0.1)).all()
    assert (found[found.op.str.startswith("linear")].kernel_error < 2**-6).all()
    mlp = timed[timed.op.str.startswith("mlp")].set_index("variant")
    assert mlp.control["fp8, quantised, compiled"] == "bf16, compiled"
    assert mlp.control["fp8, quantised"] == "bf16"


def test_a_compiler_that_fails_costs_its_own_rows_alone(short, monkeypatch):
    def broken(function):
        def run(*given):
            raise RuntimeError("no lowering in /a/b/c.py for this\nand more")

        return run

    monkeypatch.setattr(precision_fp8, "without_fp8", lambda where: None)
    monkeypatch.setattr(precision_fp8, "product", fake_product)
    monkeypatch.setattr(precision_fp8, "compiled", broken)
    found = pd.concat(precision_fp8.products([(32, 32, 64)], CPU, 6, 0.1))
    refused = found[found.note.notna()]
    assert set(refused.variant) == {"fp8, quantised, compiled"} and len(refused) == 2
    assert set(refused.note) == {"not measured: RuntimeError: no lowering in for this"}


def test_a_wrong_fp8_kernel_is_never_timed(short, monkeypatch):
    monkeypatch.setattr(precision_fp8, "without_fp8", lambda where: None)
    monkeypatch.setattr(precision_fp8, "compiled", lambda function: function)
    wrong = lambda *given: fake_product(*given) * 1.2  # noqa: E731
    monkeypatch.setattr(precision_fp8, "product", wrong)
    found = pd.concat(precision_fp8.products([(32, 32, 64)], CPU, 6, 0.1))
    refused = found[found.note.notna()]
    assert len(refused) == 2 * 3 and refused.note.str.contains("strays from its reference").all()
    with pytest.raises(DisagreementError):
        x = torch.randn(32, 32).to(torch.float8_e4m3fn)
        one = torch.ones(())
        precision_fp8._of_the_kernel(lambda: wrong(x, x, one, one), x, x, one)


def test_a_step_leaves_the_weights_alone_and_gives_the_same_gradients_each_time():
    model = models.transformer(32, 2, CPU, torch.float32)
    x = torch.randn(2, 16, 32)
    for name in precision_training.WAYS:
        step = precision_training.Step(name, model, x)
        before = [p.detach().clone() for p in step.parameters]
        first = [g.clone() for g in step()]
        for _ in range(3):
            again = step()
        for one, other in zip(first, again, strict=True):
            assert torch.equal(one, other), name
        for one, other in zip(before, step.parameters, strict=True):
            assert torch.equal(one, other), name
        assert step.optimizer.state[step.parameters[0]]["exp_avg"].abs().sum() > 0, "it stepped"


def test_the_reference_of_a_step_is_the_gradient_of_all_sequences_at_once():
    model = models.transformer(32, 2, CPU, torch.float32)
    x = torch.randn(3, 8, 32)
    double = precision_training.copied(model, torch.float64)
    loss = double(x.double()).square().mean()
    expected = [loss.detach(), *torch.autograd.grad(loss, list(double.parameters()))]
    for found, wanted in zip(precision_training.exact_gradients(model, x), expected, strict=True):
        torch.testing.assert_close(found, wanted)


def test_what_is_kept_for_the_backward_pass_is_counted_by_kind():
    model = models.transformer(64, 2, CPU, torch.float32)
    x = torch.randn(1, 64, 64)  # as many tokens as columns: shapes do not tell weights apart
    account = {
        name: precision_training.saved(precision_training.Step(name, model, x))
        for name in ("fp32", "amp bf16", "bf16")
    }
    assert account["fp32"]["copy_bytes"] == account["bf16"]["copy_bytes"] == 0
    linear = [m for m in model.modules() if isinstance(m, torch.nn.Linear)]
    elements = sum(p.numel() for module in linear for p in module.parameters())
    assert account["amp bf16"]["copy_bytes"] == 2 * elements
    full, mixed, pure = (account[n]["activation_bytes"] for n in account)
    assert full / 2 <= pure < mixed < full
    # The input of each of the 8 linear layers, and of the norms and the GELU, is among them.
    assert full > (4 * 4 + 2 * 2 + 2 * 4) * 64 * 64 * 4


def test_a_way_whose_gradients_are_wrong_is_a_row_that_says_so(short, monkeypatch):
    ways = precision_training.WAYS
    bad = ways["amp bf16"].__class__(torch.float32, torch.bfloat16, False, False, "bf16", 2**-20)
    monkeypatch.setitem(ways, "amp bf16", bad)
    (found,) = precision_training.maps((16,), (16,), CPU, 6, 0.1)
    refused = found[found.note.notna()]
    assert list(refused.variant) == ["amp bf16"] and refused.median_s.isna().all()
    assert refused.note.iloc[0].startswith("its gradients stray")
    assert refused.weight_bytes.notna().all() and set(found.width) == {16}


def test_memory_that_does_not_suffice_is_told_for_every_way(monkeypatch):
    def full(*given):
        raise torch.OutOfMemoryError("no")

    monkeypatch.setattr(precision_training, "exact_gradients", full)
    (found,) = precision_training.maps((16,), (16,), CPU, 6, 0.1)
    assert list(found.variant) == list(precision_training.WAYS)
    assert set(found.note) == {"not enough memory on this device"} and "median_s" not in found


def test_the_switch_for_tf32_is_as_it_was_after_every_way():
    before = torch.backends.cuda.matmul.allow_tf32
    model = models.transformer(16, 1, CPU, torch.float32)
    for name in precision_training.WAYS:
        precision_training.Step(name, model, torch.randn(1, 8, 16))()
        assert torch.backends.cuda.matmul.allow_tf32 == before


def test_gradients_are_counted_by_what_became_of_them():
    exact = torch.tensor([1.0, 1e-5, 1e-9, 2.0, 0.0, 1.0], dtype=torch.float64)
    found = torch.tensor([1.0, 1e-5, 0.0, float("inf"), 0.0, float("nan")])
    told = precision_gradients.counted(found, exact, torch.float16)
    assert told["gradients"] == 5, "what is 0 in float64 is not counted"
    assert (told["underflow"], told["subnormal"], told["overflow"]) == (1, 1, 2)
    assert told["error"] is None
    scaled = precision_gradients.counted(exact.float() * 1024, exact, torch.float16, 1024.0)
    assert scaled["subnormal"] == 1 and scaled["error"] < 1e-6
    halved = precision_gradients.counted(exact.float() / 2, exact, torch.float32)
    assert halved["error"] == pytest.approx(0.5)


def test_small_gradients_vanish_in_fp16_alone_and_a_loss_scale_brings_them_back():
    found = precision.gradients(device="cpu", width=32, tokens=32)
    small = found[found.op == "gradients small"].set_index("variant")
    assert small.underflow["fp16"] > small.gradients["fp16"] / 4
    for way in ("bf16", "fp32", "fp16, scaled"):
        assert small.underflow[way] < small.gradients[way] / 100, way
    large = found[found.op == "gradients large"].set_index("variant")
    assert large.loss_scale["fp16, scaled"] < precision_gradients.FIRST_SCALE
    assert (large.overflow == 0).all()
    beyond = found[found.op == "overflow"].set_index("variant")
    assert beyond.overflow["fp16"] > 0 == beyond.overflow["bf16"] == beyond.overflow["fp32"]
    assert beyond.largest_weight["fp16"] < torch.finfo(torch.float16).max


def test_sizes_that_differ_stay_different_when_they_are_made_small():
    assert precision._sizes((256, 1024, 2048), 1 / 1000, 16) == (16, 32, 48)
    assert precision._sizes((8192, 16384, 4096), 1.0, 16) == (8192, 16384, 4096)
    assert precision._sizes((1024, 8192), 0.5, 16) == (512, 4096)
