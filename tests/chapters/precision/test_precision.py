"""Number formats: what the experiments count, and what they do where a machine can not."""

import pandas as pd
import pytest
import torch

from anatomy.chapters.precision import calculations, fp8, gradients, precision, training
from anatomy.parts import models, sizes
from anatomy.table.errors import DisagreementError
from tests.fakes.fake_stopwatch import made_up_time

CPU = torch.device("cpu")
WITHOUT_FP8 = "not supported on sm_80: fp8 products need sm_89"

MLP = {"op": "mlp C=64 T=16", "m": 16, "n": 256, "k": 64}


def cell(m: int, n: int, k: int) -> dict:
    return {"op": f"linear {m} x {n} x {k}", "m": m, "n": n, "k": k}


@pytest.fixture
def short():
    """Comparisons that are soon done."""
    with made_up_time():
        yield


def test_on_sm_80_the_bf16_rows_are_measured_and_the_others_say_why(short, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    why = fp8.without_fp8(torch.device("cuda", 0))
    assert why == WITHOUT_FP8
    monkeypatch.setattr(fp8, "without_fp8", lambda where: why)
    found = fp8.product_of(cell(16, 16, 16), CPU, 6, 0.1)
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
    x8, scale = fp8.quantised(x)
    assert x8.dtype == torch.float8_e4m3fn and x8.float().abs().max() == fp8.LARGEST
    back = x8.float() * scale
    assert float((back - x.float()).norm() / x.float().norm()) < 2**-4
    zero, scale = fp8.quantised(torch.zeros(4, 4).bfloat16())
    assert zero.float().isfinite().all() and scale > 0


def test_factors_of_random_size_are_off_by_as_much_as_the_tolerance_says():
    torch.manual_seed(0)
    x, w = torch.randn(128, 256).bfloat16(), torch.randn(96, 256).bfloat16()
    (x8, s), (w8, t) = fp8.quantised(x), fp8.quantised(w)
    found = (x8.double() @ w8.double().t()) * s.double() * t.double()
    exact = x.double() @ w.double().t()
    error = float((found - exact).norm() / exact.norm())
    assert error < fp8.ALLOWED_QUANTISED < 2 * error


def fake_product(x, w, x_scale, w_scale, bias=None):
    """What the FP8 kernel computes, on a CPU."""
    y = (x.double() @ w.double().t()) * x_scale.double() * w_scale.double()
    return (y if bias is None else y + bias.double()).bfloat16()


def test_every_way_through_fp8_runs_and_agrees_where_the_kernel_is_faked(short, monkeypatch):
    monkeypatch.setattr(fp8, "without_fp8", lambda where: None)
    monkeypatch.setattr(fp8, "product", fake_product)
    monkeypatch.setattr(fp8, "compiled", lambda function: function)
    found = fp8.product_of(cell(32, 32, 64), CPU, 6, 0.1)
    found = pd.concat([found, fp8.perceptron(MLP, CPU, 6, 0.1)])
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

    monkeypatch.setattr(fp8, "without_fp8", lambda where: None)
    monkeypatch.setattr(fp8, "product", fake_product)
    monkeypatch.setattr(fp8, "compiled", broken)
    found = fp8.product_of(cell(32, 32, 64), CPU, 6, 0.1)
    refused = found[found.note.notna()]
    assert set(refused.variant) == {"fp8, quantised, compiled"} and len(refused) == 2
    assert set(refused.note) == {"not measured: RuntimeError: no lowering in for this"}


def test_a_wrong_fp8_kernel_is_never_timed(short, monkeypatch):
    monkeypatch.setattr(fp8, "without_fp8", lambda where: None)
    monkeypatch.setattr(fp8, "compiled", lambda function: function)
    wrong = lambda *given: fake_product(*given) * 1.2  # noqa: E731
    monkeypatch.setattr(fp8, "product", wrong)
    found = fp8.product_of(cell(32, 32, 64), CPU, 6, 0.1)
    refused = found[found.note.notna()]
    assert len(refused) == 2 * 3 and refused.note.str.contains("strays from its reference").all()
    with pytest.raises(DisagreementError):
        x = torch.randn(32, 32).to(torch.float8_e4m3fn)
        one = torch.ones(())
        fp8._of_the_kernel(lambda: wrong(x, x, one, one), x, x, one)


def test_a_step_leaves_the_weights_alone_and_gives_the_same_gradients_each_time():
    model = models.transformer(32, 2, CPU, torch.float32)
    x = torch.randn(2, 16, 32)
    for name in training.WAYS:
        step = training.Step(name, model, x)
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
    double = training.copied(model, torch.float64)
    loss = double(x.double()).square().mean()
    expected = [loss.detach(), *torch.autograd.grad(loss, list(double.parameters()))]
    for found, wanted in zip(training.exact_gradients(model, x), expected, strict=True):
        torch.testing.assert_close(found, wanted)


def test_what_is_kept_for_the_backward_pass_is_counted_by_kind():
    model = models.transformer(64, 2, CPU, torch.float32)
    x = torch.randn(1, 64, 64)  # as many tokens as columns: shapes do not tell weights apart
    account = {
        name: training.saved(training.Step(name, model, x)) for name in ("fp32", "amp bf16", "bf16")
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
    ways = training.WAYS
    bad = ways["amp bf16"].__class__(torch.float32, torch.bfloat16, False, False, "bf16", 2**-20)
    monkeypatch.setitem(ways, "amp bf16", bad)
    found = training.maps([(16, 16)], CPU, 6, 0.1)
    refused = found[found.note.notna()]
    assert list(refused.variant) == ["amp bf16"] and refused.median_s.isna().all()
    assert refused.note.iloc[0].startswith("its gradients stray")
    assert refused.weight_bytes.notna().all() and set(found.width) == {16}


def test_memory_that_does_not_suffice_is_told_for_every_way(monkeypatch):
    def full(*given):
        raise torch.OutOfMemoryError("no")

    monkeypatch.setattr(training, "exact_gradients", full)
    found = training.maps([(16, 16)], CPU, 6, 0.1)
    assert list(found.variant) == list(training.WAYS)
    assert set(found.note) == {"out of memory"} and found.median_s.isna().all()


def test_the_switch_for_tf32_is_as_it_was_after_every_way():
    before = torch.backends.cuda.matmul.allow_tf32
    model = models.transformer(16, 1, CPU, torch.float32)
    for name in training.WAYS:
        training.Step(name, model, torch.randn(1, 8, 16))()
        assert torch.backends.cuda.matmul.allow_tf32 == before


def test_gradients_are_counted_by_what_became_of_them():
    exact = torch.tensor([1.0, 1e-5, 1e-9, 2.0, 0.0, 1.0], dtype=torch.float64)
    found = torch.tensor([1.0, 1e-5, 0.0, float("inf"), 0.0, float("nan")])
    told = gradients.counted(found, exact, torch.float16)
    assert told["gradients"] == 5, "what is 0 in float64 is not counted"
    assert (told["underflow"], told["subnormal"], told["overflow"]) == (1, 1, 2)
    assert told["error"] is None
    scaled = gradients.counted(exact.float() * 1024, exact, torch.float16, 1024.0)
    assert scaled["subnormal"] == 1 and scaled["error"] < 1e-6
    halved = gradients.counted(exact.float() / 2, exact, torch.float32)
    assert halved["error"] == pytest.approx(0.5)


def test_small_gradients_vanish_in_fp16_alone_and_a_loss_scale_brings_them_back():
    found = precision.gradients(device="cpu", width=32, tokens=32)
    small = found[found.op == "gradients small"].set_index("variant")
    assert small.underflow["fp16"] > small.gradients["fp16"] / 4
    for way in ("bf16", "fp32", "fp16, scaled"):
        assert small.underflow[way] < small.gradients[way] / 100, way
    large = found[found.op == "gradients large"].set_index("variant")
    assert large.loss_scale["fp16, scaled"] < gradients.FIRST_SCALE
    assert (large.overflow == 0).all()
    beyond = found[found.op == "overflow"].set_index("variant")
    assert beyond.overflow["fp16"] > 0 == beyond.overflow["bf16"] == beyond.overflow["fp32"]
    assert beyond.largest_weight["fp16"] < torch.finfo(torch.float16).max


def test_sizes_that_differ_stay_different_when_they_are_made_small():
    assert sizes.multiples((256, 1024, 2048), 1 / 1000, 16) == (16, 32, 48)
    assert sizes.multiples((8192, 16384, 4096), 1.0, 16) == (8192, 16384, 4096)
    assert sizes.multiples((1024, 8192), 0.5, 16) == (512, 4096)


def test_a_format_is_held_against_the_wider_one():
    assert calculations.over_the_wider(narrow=8e14, wide=4e14) == pytest.approx(2.0)


def test_one_cell_without_times_is_a_row():
    timed = pd.DataFrame([{"variant": "a", "median_s": 1.0}])
    absent = pd.DataFrame([{"variant": "b", "note": "another process computes there"}])
    both = precision._joined([absent, timed])
    assert list(both.variant) == ["b", "a"] and both.median_s.notna().sum() == 1
