"""Attention: the exact result is exact, what can't run says why, and verdicts follow the rows."""

import json
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from anatomy import claims
from anatomy.chapters.attention import attention, requirements
from anatomy.cli.text import report
from anatomy.machine import host
from anatomy.numerics import formats
from anatomy.parts import attention as attention_calls
from anatomy.parts.attention import Size
from anatomy.record import recording
from anatomy.table import formulas
from tests.chapters.attention import attention_rows
from tests.fakes import synthetic
from tests.fakes.fake_stopwatch import made_up_time
from tests.fakes.verdicts import verdict

CPU = torch.device("cpu")
SMALL = Size(heads=2, sequence=48, width=16, dtype="fp32")
GIB = 2**30


def sized(**changed) -> Size:
    return Size(**vars(SMALL) | changed)


# The experiment.


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("block", [2**26, 2 * 48 * 5])
def test_the_exact_result_is_autograds_in_float64_however_it_is_cut(causal, block, monkeypatch):
    monkeypatch.setattr(attention_calls, "BLOCK_SCORES", block)
    given = attention_calls.problem(sized(backward=True, causal=causal), CPU)
    wide = [x.detach().double().requires_grad_() for x in (given.q, given.k, given.v)]
    out = F.scaled_dot_product_attention(*wide, is_causal=causal)
    expected = (out, *torch.autograd.grad(out, wide, given.grad.double()))
    for found, wanted in zip(attention_calls.exact(given), expected, strict=True):
        torch.testing.assert_close(found, wanted.detach(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32"])
def test_every_way_that_runs_on_a_cpu_agrees_within_its_tolerance(dtype, backward):
    given = attention_calls.problem(sized(dtype=dtype, backward=backward, causal=True), CPU)
    with attention_calls.switches_kept() as ordinary:
        every, exact = attention_calls.calls(given, ordinary), attention_calls.exact(given)
        for name in ("manual", "math", "flash", "default"):
            assert attention_calls.why_not(name, every[name], exact) == "", name


def test_a_way_that_forgets_the_scale_is_not_timed():
    given = attention_calls.problem(SMALL, CPU)

    def unscaled():
        return (given.q @ given.k.mT).softmax(-1) @ given.v

    told = attention_calls.why_not("manual", unscaled, attention_calls.exact(given))
    assert told.startswith("not timed: manual strays from its reference by")


def test_factors_rounded_to_tf32_unasked_would_be_found_out():
    given = attention_calls.problem(sized(sequence=256, width=64), CPU)
    rounded = [(x.view(torch.int32) & ~0x1FFF).view(torch.float32) for x in (given.q, given.k)]

    def in_tf32():
        return F.scaled_dot_product_attention(*rounded, given.v)

    told = attention_calls.why_not("flash", in_tf32, attention_calls.exact(given))
    assert told.startswith("not timed: ")


def test_a_backend_that_runs_out_of_memory_says_no_more_than_that():
    def greedy():
        raise torch.OutOfMemoryError("Tried to allocate 9 GiB. Process 4711 has 3 GiB in use.")

    assert attention_calls.refusal("math", greedy, CPU) == "out of memory"


HEADED = [
    "Memory efficient kernel not used because: (Triggered internally at x.cpp:1.)",
    "Memory Efficient attention has been runtime disabled. (Triggered internally at x.cpp:2.)",
    "Flash attention kernel not used because: (Triggered internally at x.cpp:3.)",
    "Expected query, key and value to all be of dtype: {Half}. Got float. (Triggered internally at",
    "cuDNN attention kernel not used because: (Triggered internally at x.cpp:4.)",
    "cuDNN attention has been runtime disabled. (Triggered internally at x.cpp:5.)",
]


def test_pytorchs_reason_is_that_of_the_backend_and_names_no_place_in_its_source():
    told = attention_calls.reason_for("flash", HEADED)
    assert told == "Expected query, key and value to all be of dtype: {Half}. Got float"
    assert attention_calls.reason_for("cudnn", HEADED) == ""
    assert attention_calls.reason_for("manual", HEADED) == ""


def test_a_refused_backend_gives_the_reason_that_was_warned_of():
    import warnings

    def refused():
        for text in HEADED:
            warnings.warn(text, stacklevel=1)
        raise RuntimeError("No available kernel. Aborting execution.")

    told = attention_calls.refusal("flash", refused, CPU)
    assert told.startswith("not supported on cpu: Expected query, key and value")
    assert attention_calls.refusal("math", refused, CPU) == (
        "not supported on cpu: PyTorch has no such backend there"
    )


def test_the_switches_are_put_back_even_when_a_call_breaks():
    def state():
        return [asked() for _, asked in attention_calls.SWITCHES.values()]

    before = state()
    with pytest.raises(ZeroDivisionError), attention_calls.switches_kept():
        attention_calls.throw(dict.fromkeys(attention_calls.BACKENDS, False))
        assert state() == [False] * 4
        raise ZeroDivisionError
    assert state() == before


def test_the_default_is_what_was_on_before_whatever_ran_last():
    given = attention_calls.problem(SMALL, CPU)
    with attention_calls.switches_kept() as ordinary:
        every = attention_calls.calls(given, ordinary)
        every["math"]()
        every["default"]()
        assert {n: asked() for n, (_, asked) in attention_calls.SWITCHES.items()} == ordinary


def test_what_would_not_fit_is_a_row_that_says_so(monkeypatch):
    monkeypatch.setattr(host, "free_bytes", lambda where: 139 * GIB)
    long = Size(heads=8, sequence=32768, width=64, dtype="bf16")
    assert set(attention_calls.too_large(long, CPU)) == {"math"}
    back = Size(**vars(long) | {"backward": True})
    refused = attention_calls.too_large(back, CPU)
    assert set(refused) == {"math"}
    assert "more than half of the 139 GiB that are free" in refused["math"]
    more = Size(**vars(back) | {"heads": 16})
    assert set(attention_calls.too_large(more, CPU)) == {"manual", "math"}
    monkeypatch.setattr(host, "free_bytes", lambda where: 2**10)
    assert set(attention_calls.too_large(SMALL, CPU)) == set(attention_calls.WAYS)
    monkeypatch.setattr(host, "free_bytes", lambda where: None)
    assert attention_calls.too_large(long, CPU) == {}


def test_where_nothing_fits_there_are_reasons_and_no_tensors(monkeypatch):
    monkeypatch.setattr(host, "free_bytes", lambda where: 2**10)
    found = attention.backends(device="cpu", heads=2, head_width=16, longest=64)
    assert len(found) == 2 * 6 and found.note.str.startswith("needs ").all()
    assert set(found.direction) == set(requirements.DIRECTIONS) and found.median_s.isna().all()


@pytest.fixture
def quick():
    with made_up_time():
        yield {"device": "cpu", "heads": 2, "head_width": 16, "longest": 64, "iters": 6}


def test_without_attention_written_out_there_are_times_and_no_ratios(quick, monkeypatch):
    monkeypatch.setattr(requirements, "DIRECTIONS", ("forward",))
    monkeypatch.setattr(attention_calls, "too_large", lambda size, where: {"manual": "too large"})
    found = attention.backends(**quick).set_index("variant")
    assert found.loc["manual"].note == "too large"
    assert found.loc["math"].role == "control"
    others = found.loc[["flash", "default"]]
    assert others.median_s.notna().all()
    assert others[["ratio", "ratio_low", "ratio_high", "verdict", "control"]].isna().all(axis=None)


def test_on_a_cpu_two_backends_say_why_not_and_the_default_says_which(quick):
    found = attention.backends(dtype="fp32", **quick)
    refused = found[found.note.notna()]
    assert set(refused.variant) == {"efficient", "cudnn"}
    default = found[found.variant == "default"]
    assert set(default.chosen) == {"flash"} and set(default.chosen_by) == {"PyTorch's word"}
    assert found[found.variant != "default"].chosen.isna().all()
    assert set(found.sequence) == {64} and set(found.quantity) == {"step_wall"}


def test_a_causal_mask_is_timed_beside_at_two_lengths(quick, monkeypatch):
    monkeypatch.setattr(requirements, "SHORTEST", 4)
    monkeypatch.setattr(requirements, "lengths", lambda longest, full: [longest])
    found = attention.backends(dtype="fp32", **quick)
    masked = found[found.causal]
    assert set(found.direction) == {*requirements.DIRECTIONS} | set(masked.direction)
    assert set(masked.direction) == {f"{name}, causal" for name in requirements.DIRECTIONS}
    assert set(masked.sequence) == {16, 4} and set(found[~found.causal].sequence) == {64}
    assert set(masked[masked.median_s.notna()].variant) >= {"manual", "flash", "default"}
    every = attention.backends(dtype="fp32", causal=True, **quick)
    assert every.causal.all() and set(every.direction) == set(requirements.DIRECTIONS)


def test_a_way_that_disagrees_leaves_the_others_their_times(quick, monkeypatch):
    real = attention_calls.manual
    monkeypatch.setattr(requirements, "DIRECTIONS", ("forward",))
    monkeypatch.setattr(attention_calls, "manual", lambda given: 2 * real(given))
    found = attention.backends(dtype="fp32", **quick).set_index("variant")
    assert found.loc["manual"].note.startswith("not timed: manual strays")
    assert found.loc["flash"].median_s > 0


def test_the_default_is_known_by_its_kernels():
    kernels = {"flash": ["a"], "cudnn": ["b", "c"], "default": ["b", "c"]}
    table = pd.DataFrame({"variant": list(kernels), "kernels": list(kernels.values())})
    given = attention_calls.problem(SMALL, CPU)
    with attention_calls.switches_kept() as ordinary:
        told = attention.chosen_backend(table, given, ordinary)
        assert told == ("cudnn", "its kernels")
        doubtful = table.assign(kernels=[["b"], ["b"], ["b"]])
        told = attention.chosen_backend(doubtful, given, ordinary)
        assert told == ("flash", "PyTorch's word")


def test_a_pytorch_without_its_chooser_leaves_the_choice_open(monkeypatch):
    with attention_calls.switches_kept() as ordinary:
        assert attention_calls.choice(lambda: SimpleNamespace().missing, ordinary) is None
        assert attention_calls.choice(lambda: -1, ordinary) is None


def test_every_form_of_the_call_is_run_and_asked_about():
    found = attention.choices(device="cpu", heads=2, head_width=16, sequence=32)
    assert list(found.variant) == list(requirements.FORMS) and found.chosen.notna().all()
    assert set(found.math) == {"runs"}
    assert found.set_index("variant").loc["one query"].queries == 1
    assert found.cudnn.str.startswith("not supported on cpu: ").all()


# Counts.


@pytest.mark.parametrize("backward", [False, True])
def test_our_operation_count_is_pytorchs(backward):
    given = attention_calls.problem(sized(backward=backward), CPU)
    with attention_calls.switches_kept() as ordinary:
        call = attention_calls.calls(given, ordinary)["manual"]
        with FlopCounterMode(display=False) as counter:
            call()
    assert formulas.attention_flops(2, 48, 16, backward=backward) == counter.get_total_flops()


def test_a_causal_mask_leaves_a_half_and_half_the_diagonal():
    assert formulas.attention_flops(1, 4, 1, causal=True) == 4 * 10
    assert formulas.attention_flops(1, 4, 1, causal=True, backward=True) == 12 * 10


@pytest.mark.parametrize(("backward", "there"), [(False, 4), (True, 8)])
def test_bytes_are_those_of_what_goes_in_and_out(backward, there):
    given = attention_calls.problem(sized(backward=backward), CPU)
    each = given.q.numel() * formats.itemsize("fp32")
    assert formulas.attention_bytes(2, 48, 16, 4, backward=backward) == there * each


# The claims.


@pytest.fixture
def edited(tmp_path):
    """A function that saves the toy recording with changed rows, and gives a claim's verdict."""
    attention_rows.backends(tmp_path)
    (file,) = (tmp_path / synthetic.MACHINE / "attention.backends").glob("*.json")
    data = json.loads(file.read_text())

    def judge(name: str, change=lambda row: None) -> claims.Result:
        rows = [dict(row) for row in data["rows"]]
        for row in rows:
            change(row)
        recording.save(data | {"rows": synthetic.as_said(rows)}, tmp_path)
        return verdict(tmp_path, name)

    return judge


def faster(factor: float, where=lambda row: True):
    """A change that makes flash take `factor` of its time."""

    def change(row):
        if row["variant"] == "flash" and row.get("blocks_s") and where(row):
            row["blocks_s"] = [factor * seconds for seconds in row["blocks_s"]]

    return change


def test_flash_is_faster_by_two_to_four_or_not(edited):
    name = "flash-attention-is-faster"
    holds = edited(name)
    assert holds.word == claims.HOLDS and holds.deviation == 1
    assert "1 of 20 cases can't be measured: would need about" in holds.evidence
    more = edited(name, faster(0.4))
    assert more.word == claims.HOLDS and more.deviation > 1, "more than promised keeps a promise"
    assert edited(name, faster(2)).word == claims.FAILS
    short = edited(name, faster(3, lambda row: row["sequence"] == 128))
    assert short.word == claims.IN_PART and "except for N=128" in short.condition
    wide = edited(name, lambda row: row.update(noise_floor=0.9))
    assert wide.word == claims.INCONCLUSIVE


def test_without_flash_its_speed_and_memory_are_not_measurable(tmp_path, monkeypatch):
    monkeypatch.setattr(attention_rows, "_cell", _without(attention_rows._cell, "flash"))
    attention_rows.backends(tmp_path)
    speed = verdict(tmp_path, "flash-attention-is-faster")
    assert (speed.word, speed.evidence) == (claims.NOT_MEASURABLE, attention_rows.WITHOUT_FLASH)
    memory = verdict(tmp_path, "flash-attention-memory-linear")
    assert memory.word == claims.HOLDS and attention_rows.WITHOUT_FLASH in memory.evidence


def _without(real, name: str):
    return lambda sequence, direction, dtype, absent: real(sequence, direction, dtype, (name,))


def test_memory_is_linear_in_flash_and_quadratic_by_hand_or_not(edited):
    name = "flash-attention-memory-linear"
    holds = edited(name)
    assert holds.word == claims.HOLDS and "flash, forward, 1.0" in holds.evidence
    assert holds.measured.unit == "count" and holds.measured.low == pytest.approx(1, abs=1e-6)

    def squared(row):
        if row["variant"] == "flash":
            row["peak_bytes"] = row["sequence"] ** 2

    grown = edited(name, squared)
    assert grown.word == claims.IN_PART and "for manual" in grown.condition

    def constant(row):
        row["peak_bytes"] = row.get("peak_bytes") and 2**30

    assert edited(name, constant).word == claims.FAILS

    def bent(row):  # a curve that is no power is not called one
        if row.get("peak_bytes") and row["sequence"] == 32768:
            row["peak_bytes"] *= 2

    assert edited(name, bent).word == claims.INCONCLUSIVE


def test_a_line_through_two_lengths_decides_no_exponent(edited):
    def full(row):
        if row["sequence"] == 32768:
            row["peak_bytes"] = None

    result = edited("flash-attention-memory-linear", full)
    assert result.word == claims.INCONCLUSIVE and "by two lengths alone" in result.evidence


def test_the_short_end_does_not_decide_the_exponent(edited):
    def fixed_costs(row):
        if row["sequence"] < 2048:
            row["peak_bytes"] = row.get("peak_bytes") and 2**24

    assert edited("flash-attention-memory-linear", fixed_costs).word == claims.HOLDS


def test_without_an_account_of_memory_there_is_no_exponent(edited):
    result = edited("flash-attention-memory-linear", lambda row: row.update(peak_bytes=None))
    assert result.word == claims.NOT_MEASURABLE
    assert "fewer than two lengths" in result.evidence


def test_sdpa_is_one_kernel_where_the_census_says_so(edited):
    name = "sdpa-is-one-kernel"
    where = edited(name)
    assert where.word == claims.IN_PART and "except for math" in where.condition
    assert "math 4; efficient 1; flash 1; cudnn 1; default 1" in where.evidence

    def two(row):
        row["kernels"] = row.get("kernels") and ["a", "b"]

    assert edited(name, two).word == claims.FAILS

    def one(row):
        row["kernels"] = row.get("kernels") and ["a", "Memcpy DtoD (Device -> Device)"]

    assert edited(name, one).word == claims.HOLDS
    unlisted = edited(name, lambda row: row.update(kernels=None))
    assert unlisted.word == claims.NOT_MEASURABLE
    assert unlisted.evidence == "no kernels were listed"


def test_choices_have_no_times_and_are_printed_all_the_same(tmp_path):
    attention_rows.choices(tmp_path)
    found = synthetic.showing(root=tmp_path).find("attention.choices").recording
    masked = report(found).partition("[with a mask]")[2].partition("\n\n")[0]
    assert "chosen    : cudnn" in masked and "it takes no mask" in masked
