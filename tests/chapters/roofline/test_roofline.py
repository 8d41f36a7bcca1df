"""The roofline's three days: what is counted, what is measured at toy size, and what is said."""

import runpy

import pytest
import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from anatomy import claims
from anatomy.chapters.roofline import (
    calculations,
    calls,
    counts,
    figures,
    operations,
    requirements,
    roofs,
)
from anatomy.chapters.roofline.first_layer import in_one_call, layer
from anatomy.figures.curriculum import calculations as calculated
from anatomy.judge import limits
from anatomy.record import recording, showing
from anatomy.record.declare import load
from anatomy.record.requirements import Capacity
from anatomy.table.errors import UnknownName
from tests.chapters.limits.ceilings_rows import CACHE
from tests.fakes import synthetic
from tests.fakes.fake_stopwatch import made_up_time
from tests.parts import cuda_on_cpu

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page of the toy machine, with the recordings of all three days."""
    root = tmp_path_factory.mktemp("roofline")
    for name in ("roofline.first_layer", "roofline.intensity", "roofline.operations",
                 "limits.ceilings", "limits.bandwidth"):  # fmt: skip
        synthetic.MAKERS[name](root)
    return synthetic.showing(root)


# ---- What is counted.


@pytest.mark.parametrize(
    ("name", "flops", "moved"),
    [
        ("relu", 2**18, 8 * 2**18),  # 0.125 operations a byte
        ("sum", 2**18, 4 * 2**18),
        ("softmax", 5 * 2**18, 8 * 2**18),
        ("layer_norm", 8 * 2**18, 8 * 2**18 + 2 * 4 * 4096),
        ("cross_entropy", 4 * 2**18, 4 * 2**18 + 8 * 8 + 4),
        ("sort", 0, 16 * 2**15),
        ("AdamW, foreach", 14 * 2**18, 28 * 2**18),
        ("matmul, fp32", 2 * 32**3, 3 * 4 * 32**2),
        ("matmul, bf16", 2 * 64**3, 3 * 2 * 64**2),
        ("matmul, fp8", 2 * 64**3, 2 * 64**2 + 2 * 64**2),
        ("matrix × vector", 2 * 704**2, 2 * (704**2 + 2 * 704)),
        ("attention", 4 * 32**2 * 128, 4 * 2 * 32 * 128),
    ],
)
def test_operations_and_least_bytes_are_those_of_the_formula(name, flops, moved):
    found = {each.name: each for each in counts.operations(counts.sizes(2**16, 1e-6))}[name]
    assert (found.flops, found.bytes) == (flops, moved)


def test_products_and_attention_count_as_pytorch_counts_them():
    s = counts.sizes(2**16, 1e-6)
    for each in counts.operations(s):
        if each.op.startswith(("matmul", "attention")) and each.dtype != "fp8":
            call, _ = calls.MAKERS[each.op](s, CPU)[each.name]
            with FlopCounterMode(display=False) as counter, torch.no_grad():
                call()
            # PyTorch counts a matrix times a vector as nothing.
            assert counter.get_total_flops() in (each.flops, 0), each.name
            assert counter.get_total_flops() or each.name in ("matrix × vector", "attention")


def test_fused_attention_does_more_on_its_way_back_than_the_mathematics_needs():
    """What the reading of `fusion-keeps-flops` says, by PyTorch's own formulas."""
    from torch.utils import flop_counter

    shape = (1, 2, 64, 32)
    forward = flop_counter.sdpa_flop_count(shape, shape, shape)
    assert flop_counter.sdpa_backward_flop_count(shape, shape, shape, shape) == 2.5 * forward


def test_there_are_over_twenty_and_each_meets_a_roof_that_is_known():
    found = list(counts.operations(counts.sizes(60 * 2**20, 1.0)))
    assert len(found) == len({each.name for each in found}) >= 20
    assert {each.roof for each in found} <= set(limits.known_names())
    assert {each.op for each in found} == set(calls.MAKERS)
    beyond = [e for e in found if e.op in ("elementwise", "reductions", "optimizer")]
    assert all(each.bytes >= 4 * 60 * 2**20 for each in beyond)


# ---- What is measured.


@pytest.mark.parametrize("fmas", [1, 3, 16, 17, 64, 100, 1024])
def test_the_kernel_does_so_many_multiply_adds_on_each_element(fmas):
    x, y = torch.randn(1024), torch.full((1032,), 7.0)
    cuda_on_cpu.kernel("fma_chain")(1, operations.THREADS, (x, y, 256, fmas))
    expected = x.double()
    for _ in range(fmas):
        expected = expected * operations.FACTOR + operations.TERM
    torch.testing.assert_close(y[:1024].double(), expected, rtol=1e-4, atol=1e-4)
    assert (y[1024:] == 7.0).all()


def test_the_sweep_checks_each_number_of_fmas_and_counts_it(kernels_on_cpu):
    with made_up_time():
        found = operations.chained(4096, CPU, 6, 0.02)
    assert list(found.fmas) == [*requirements.FMAS, 1]
    assert (found.flops == 2 * found.fmas * 4096).all() and set(found.bytes) == {8 * 4096}
    assert found.error.max() < 1e-5


def test_an_operation_that_fails_says_why_and_those_beside_it_are_measured(monkeypatch):
    def broken(s, where):
        pairs = calls.elementwise(s, where)
        return pairs | {"exp": (lambda: torch.zeros(s.n), pairs["exp"][1])}

    monkeypatch.setattr(calls, "MAKERS", {"elementwise": broken})
    monkeypatch.setattr(operations, "counted", lambda s: [
        each for each in counts.operations(s) if each.op == "elementwise"])  # fmt: skip
    with made_up_time():
        found = load("roofline.operations")(device="cpu", scale=1e-6, iters=6, budget_s=0.02)
    wrong = found[found.note.notna()]
    assert list(wrong.variant) == ["exp"] and wrong.note.iloc[0].startswith("wrong result")
    timed = found[found.note.isna()]
    assert len(timed) == 3 and timed.median_s.notna().all()


def test_one_call_computes_the_layer():
    x, W, b = torch.randn(8, 16), torch.randn(16, 16), torch.randn(16)
    torch.testing.assert_close(in_one_call(x, W, b), layer(x, W, b))
    torch.testing.assert_close(layer(x, W, b), F.relu(F.linear(x, W.t(), b)))


def test_requirements_grow_with_the_cache_and_fit_a_small_card():
    for cache in (32, 48, 126):
        on = Capacity(int(7.3 * 2**30), (8, 9), cache * 2**20)
        needs = [*requirements.intensity(on, 1.0), *requirements.first_layer(on, 1.0)]
        assert not [each.op for each in needs if each.why_not(on)], cache


# ---- What follows on reading.


def test_the_ridge_is_found_where_it_was_made_and_only_from_both_sides(page):
    found = recording.find(page.root, synthetic.MACHINE, "roofline.intensity")
    control = next(row for row in found.rows if row["role"] == "control")
    assert control["ridge"] == pytest.approx(50e12 / 4e12, rel=0.01)
    assert control["ridge_low"] < 12.6 and control["ridge_high"] > 12.4
    assert roofs.ridge(found.rows[:5]) is None and roofs.ridge([]) is None


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("compiling-saves-kernels", "holds"),
        ("small-layer-waits-for-launches", "holds"),
        ("format-saves-more-than-fusion", "holds"),
        ("ridge-is-peak-over-bandwidth", "holds"),
        ("arithmetic-below-the-ridge-is-free", "holds"),
        ("arithmetic-above-the-ridge-is-paid", "holds"),
        ("relu-under-tensor-ridge", "fails"),
        ("relu-idles-compute", "inconclusive"),
        ("relu-reaches-bandwidth", "holds"),
        ("roofline-is-a-minimum", "holds in part"),
        ("functions-cost-their-bytes", "holds"),
        ("passes-cost-time", "holds"),
        ("always-further-left", "fails"),
        ("above-ridge-fewer-flops", "fails"),
    ],
)
def test_claims_find_what_was_made_up(page, name, word):
    result = claims.evaluate(page, name)
    assert result.word == word, result.evidence
    if name == "roofline-is-a-minimum":
        assert "multiply, in the L2" in result.condition


def test_what_keeps_an_operation_from_its_roof_is_told_by_evidence_first(page):
    found = recording.find(page.root, synthetic.MACHINE, "roofline.operations")
    ceilings = recording.ceilings(page.root, synthetic.MACHINE)
    told = {}
    for row in found.rows:
        share = roofs.least(row, ceilings).seconds / row["median_s"]
        told.setdefault(row["variant"], figures.reason(row, share, CACHE))
    assert told["relu"] == told["matmul, bf16"] == "at its roof"
    assert told["multiply, in the L2"] == "its bytes stay in the L2"
    assert told["add, small"].startswith("too short")
    assert told["AdamW, foreach"].startswith("14 kernels of 2 kinds; likely: each step")
    assert told["sort"].startswith("likely: a radix sort")


def test_figures_have_each_mark_once_and_a_row_for_each_operation(page):
    with showing.using(page):
        html, swept = figures.operations(caption="All."), figures.sweep(caption="All.")
    for each in counts.operations(counts.sizes(CACHE, 1.0)):
        assert f">{each.name} <" in html or f"<td>{each.name} " in html
    assert "1. relu; 2. multiply, in the L2; " in html
    assert "dashed: copy within the L2, 6.0 TB/s" in html and html.count("<svg") == 2
    assert "relu: 0.125 FLOP/B" in html and "of what copy allows" in html
    assert swept.count("<tr") == 1 + len(requirements.FMAS)
    some = html.partition("What keeps some from their roofs")[2]
    told = [some.index(f">{name} <") for name in figures.CAUSES]
    assert told == sorted(told)


def test_a_few_operations_are_drawn_with_their_shares_on_the_roofs_of_their_formats(page):
    with showing.using(page):
        html = figures.operations(["relu", "softmax", "matmul, bf16"])
        reads = figures.operations(["sum", "matmul, bf16"])
        with pytest.raises(UnknownName):
            figures.operations(["reluu"])
    assert "1. relu, " in html and "3. matmul, bf16, " in html
    assert ">fp32<" in html and ">bf16<" in html and ">fp8<" not in html and "<table" not in html
    assert "% of read" in reads and "% of " not in html  # the slope that is drawn is a copy's


# ---- What a learner works with.


@pytest.mark.parametrize(
    ("peak", "copy", "bf16", "ridge", "fmas", "in_bf16", "rows"),
    [(52e12, 4.0e12, 800e12, 13.0, 52, 26, 200), (30e12, 0.6e12, 60e12, 50.0, 200, 100, 100)],
)
def test_answers_of_exercises_follow_from_any_machines_constants(
    peak, copy, bf16, ridge, fmas, in_bf16, rows
):
    assert calculations.ridge(peak, copy) == ridge
    assert calculations.fmas_at_the_ridge(ridge) == fmas
    assert calculations.beyond_both(peak / 2, peak, peak) == 2  # 16 FLOP/B are over this ridge
    assert calculations.beyond_both(copy, peak=32 * copy, bandwidth=copy) == 16
    assert calculations.half_precision_fmas(ridge) == in_bf16
    assert calculations.decode_batch(bf16, copy) == rows
    assert calculations.layer_floor(bf16) == pytest.approx(2.74877906944e11 / bf16)
    assert calculations.small_layer_floor(bf16) == pytest.approx(8388608 / bf16)
    assert calculations.bias_and_relu(copy) == pytest.approx(2 * 2 * 2**26 / copy)
    assert calculations.softmax_floor(copy) == pytest.approx(2**28 / copy)
    assert calculations.adamw_floor(28e9, copy) == pytest.approx(28e9 / copy)
    assert calculations.cpu_over_gpu(0.2, 0.005) == 40
    assert calculations.operations_for_each_byte(64.4e12, 4.4e12) == 15
    assert calculated.DECLARED["cpu-over-gpu-least"].function(cpu=0.2, gpu=0.0061) == 33
    for name in ("saved-by-compiling", "saved-by-the-epilogue"):
        assert calculated.DECLARED[name].function(eager=5e-4, other=4e-4) == pytest.approx(1e-4)


def test_the_sweep_that_a_reader_runs_counts_as_the_page_does(capsys):
    sweep = runpy.run_path("snippets/days/day_06/sweep.py")
    x = torch.randn(8)
    torch.testing.assert_close(
        sweep["chain"](2)(x), (x * -0.9990234375 + 0.5) * -0.9990234375 + 0.5
    )
    sweep["main"](eager=True, elements=4096, counts=(1, 4))
    first, last = capsys.readouterr().out.splitlines()[-2:]
    assert first.split()[:2] == ["1", "0.25"] and last.split()[:2] == ["4", "1.00"]
