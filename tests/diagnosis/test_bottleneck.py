"""The bottleneck classifier: made-up steps whose answer is known, and what is missing from them."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch.autograd import DeviceType
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from anatomy.diagnosis import bottleneck, op_counts, profiles, steps
from anatomy.diagnosis.bottleneck import CAUSES, Quantities, judge, savings, three_kinds
from anatomy.judge.limits import Ceiling, Ceilings
from anatomy.table.errors import BadParameter, MeasurementError

MS = 1e-3
# A step of one large product: the GPU works all the time, and the host hardly at all.
PRODUCT = Quantities(
    period_s=1.6 * MS,
    enqueue_s=0.02 * MS,
    input_s=0.0,
    wait_s=0.0,
    transfer_wait_s=0.0,
    synchronizes=False,
    busy_s=1.59 * MS,
    copy_s=0.0,
    communication_s=0.0,
    kernels=1.0,
    compute_s=1.4 * MS,
    memory_s=0.1 * MS,
)
STEPS = {
    "compute": PRODUCT,
    "memory": replace(PRODUCT, compute_s=0.0, memory_s=1.5 * MS),
    "latency": replace(PRODUCT, compute_s=0.1 * MS, memory_s=0.2 * MS),
    # 200 kernels of 2 us, each asked for in 5 us.
    "launch": replace(
        PRODUCT, period_s=MS, enqueue_s=MS, busy_s=0.4 * MS, kernels=200.0, memory_s=0.01 * MS
    ),
    # 30 rounds of a kernel of 20 us, and a value read after each.
    "sync": replace(
        PRODUCT,
        period_s=1.4 * MS,
        enqueue_s=1.4 * MS,
        wait_s=1.15 * MS,
        synchronizes=True,
        busy_s=0.65 * MS,
        kernels=60.0,
        compute_s=0.0,
        memory_s=0.5 * MS,
    ),
    "input": replace(PRODUCT, period_s=11 * MS, input_s=9.5 * MS),
    "communication": replace(
        PRODUCT, period_s=2 * MS, busy_s=1.98 * MS, communication_s=1.5 * MS, compute_s=0.4 * MS
    ),
}


@pytest.mark.parametrize("cause", STEPS)
def test_each_cause_is_named_with_numbers_and_advice(cause):
    found = judge(STEPS[cause])
    assert found.cause == cause, found
    assert found.second != cause and all(told.endswith((".", ".)")) for told in found.evidence)
    assert any(character.isdigit() for told in found.evidence for character in told)
    assert found.advice == bottleneck.ADVICE[cause]
    assert all(0 <= share <= 1 for share in found.savings.values())


def test_every_cause_has_advice():
    assert set(bottleneck.ADVICE) == set(CAUSES)


def test_a_wait_for_a_long_kernel_is_not_what_holds_it_back():
    waits = replace(PRODUCT, enqueue_s=1.6 * MS, wait_s=1.55 * MS, synchronizes=True)
    assert judge(waits).cause == "compute"


def test_a_batch_copied_from_the_host_is_input_and_no_wait():
    copied = replace(
        PRODUCT,
        period_s=25 * MS,
        enqueue_s=25 * MS,
        transfer_wait_s=24 * MS,
        wait_s=0.3 * MS,
        busy_s=24.5 * MS,
        copy_s=24 * MS,
        synchronizes=True,
    )
    assert judge(copied).cause == "input"
    late = replace(copied, transfer_wait_s=1 * MS, wait_s=23 * MS)  # pinned, and waited for
    assert judge(late).cause == "input"


def test_loading_inside_of_the_step_is_input_because_launching_does_not_explain_it():
    inside = replace(PRODUCT, period_s=11 * MS, enqueue_s=11 * MS)
    found = judge(inside)
    assert found.cause == "input"
    assert any("more than launching explains" in told for told in found.evidence)


def test_a_rival_is_named_and_said_to_be_in_doubt():
    near = replace(PRODUCT, compute_s=0.9 * MS, memory_s=0.85 * MS)
    found = judge(near)
    assert (found.cause, found.second, found.certain) == ("compute", "memory", False)
    assert judge(PRODUCT).certain and judge(PRODUCT).second is None


def test_host_and_gpu_in_balance_are_told_as_such():
    even = replace(PRODUCT, enqueue_s=1.55 * MS, kernels=300.0)
    found = judge(even)
    assert not found.certain and found.cause == "compute"
    assert any("equally long" in told for told in found.evidence)


def test_more_than_the_bandwidth_is_the_cache():
    cached = replace(PRODUCT, compute_s=0.0, memory_s=3 * MS)
    found = judge(cached)
    assert found.cause == "memory" and any("cache" in told for told in found.evidence)


@pytest.mark.parametrize("nothing", [None, math.nan, math.inf, -1.0])
def test_what_is_missing_takes_the_certainty_with_it(nothing):
    assert judge(replace(PRODUCT, period_s=nothing)).cause == "unknown"
    blind = replace(PRODUCT, busy_s=nothing, enqueue_s=1.6 * MS)
    assert judge(blind).cause == "launch" and not judge(blind).certain
    assert judge(replace(blind, synchronizes=True)).cause == "sync"
    assert judge(replace(blind, synchronizes=None)).cause == "unknown"
    assert judge(replace(blind, enqueue_s=0.1 * MS)).cause == "unknown"
    uncounted = replace(PRODUCT, compute_s=nothing, memory_s=nothing)
    assert judge(uncounted).cause == "unknown" and not judge(uncounted).certain
    half = replace(PRODUCT, compute_s=nothing, memory_s=1.5 * MS)
    assert judge(half).cause == "memory" and not judge(half).certain
    assert judge(replace(PRODUCT, kernels=nothing)).cause == "unknown"


def test_nothing_at_all_is_unknown_on_every_device():
    for device in ("cuda", "cpu"):
        found = judge(Quantities(device=device))
        assert (found.cause, found.certain) == ("unknown", False)
    alone = judge(Quantities(device="cpu", period_s=MS, input_s=0.8 * MS))
    assert (alone.cause, alone.certain) == ("input", True)
    assert judge(Quantities(device="cpu", period_s=MS, input_s=0.1 * MS)).cause == "unknown"


def test_what_a_cause_costs_is_what_is_left_without_it():
    saved = savings(STEPS["launch"])
    assert saved["launch"] == pytest.approx(0.6) and saved["kernels"] == pytest.approx(0.0)
    assert saved["sync"] == saved["input"] == saved["communication"] == 0.0
    waits = savings(STEPS["sync"])
    assert waits["sync"] == pytest.approx(1 - 0.65 / 1.4)


def test_the_three_kinds_know_no_other():
    named = {cause: three_kinds(step) for cause, step in STEPS.items()}
    assert named["compute"] == "compute" and named["memory"] == "memory"
    assert named["launch"] == "launch" and named["input"] == bottleneck.NONE_OF_THREE
    assert named["communication"] == "compute" and named["latency"] == "compute"
    copying = replace(PRODUCT, copy_s=1.5 * MS, memory_s=0.01 * MS)
    assert three_kinds(copying) == bottleneck.NONE_OF_THREE, "a copy is no kernel"
    assert three_kinds(Quantities()) == bottleneck.NONE_OF_THREE


# What is counted.

X = torch.randn(64, 32)
W = torch.randn(32, 32)


def trained():
    w = W.clone().requires_grad_()
    F.conv1d((X @ w).view(1, 64, 32), torch.ones(8, 64, 3)).sum().backward()


@pytest.mark.parametrize("call", [lambda: X @ W, lambda: F.linear(X, W), trained])
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.inference_mode])
def test_operations_are_those_of_pytorchs_counter(call, mode):
    if mode is torch.inference_mode and call is trained:
        pytest.skip("inference mode has no backward pass")
    with mode():
        with FlopCounterMode(display=False) as counter:
            call()
        assert op_counts.count(call).total_flops == counter.get_total_flops() > 0


@pytest.mark.parametrize(
    ("call", "passes"),
    [  # X is read or written so many times
        (lambda: X + 1, 2),
        (lambda: X + X, 2),
        (lambda: X.add_(0), 2),
        (lambda: torch.add(X, 1, out=torch.empty_like(X)), 2),
        (lambda: torch.empty_like(X).copy_(X), 2),
        (lambda: X.zero_(), 1),
        (lambda: X.t(), 0),
        (lambda: X[:, :16], 0),
        (lambda: torch.empty_like(X), 0),
        (lambda: torch._foreach_add_([X], 0), 2),
    ],
)
def test_bytes_are_those_of_each_operator(call, passes):
    assert op_counts.count(call).bytes == passes * X.numel() * 4


def test_a_lookup_reads_the_rows_it_is_asked_for_and_an_expanded_tensor_is_small():
    rows = torch.tensor([1, 5])
    assert op_counts.count(lambda: F.embedding(rows, X)).bytes == 2 * 2 * 32 * 4 + 2 * 8
    line = torch.randn(1, 32)
    wide = line.expand(64, 32)
    assert op_counts.count(lambda: torch.neg(wide)).bytes == 64 * 32 * 4 + 32 * 4


def test_what_refuses_to_be_counted_says_why():
    def refuses():
        raise ValueError("no")

    assert op_counts.count(refuses).failed == "ValueError: no"
    assert op_counts.count(lambda: X + 1, "cuda").bytes == 0, "the host's memory is not the GPU's"


def test_least_times_need_the_ceilings_of_the_format():
    counted = op_counts.Counted(bytes=100)
    counted.flops["bf16"] = 50
    known = {"copy": Ceiling("copy", 10.0, "B/s", "measured", "here")}
    known["matmul bf16"] = Ceiling("matmul bf16", 5.0, "FLOP/s", "measured", "here")
    least, told = steps._least_times(counted, Ceilings("toy", known))
    assert least == {"memory_s": 10.0, "compute_s": 10.0} and not told
    counted.flops["float64"] = 1
    least, told = steps._least_times(counted, Ceilings("toy", known))
    assert least == {"memory_s": 10.0} and "float64" in told
    assert "can't be told apart" in steps._least_times(counted, None)[1]


# What a profile says.


def event(name, begin_us, end_us, device=DeviceType.CPU):
    return SimpleNamespace(
        name=name,
        device_type=device,
        time_range=SimpleNamespace(start=begin_us, end=end_us),
        self_cpu_time_total=end_us - begin_us,
    )


def on_gpu(name, begin_us, end_us):
    return event(name, begin_us, end_us, DeviceType.CUDA)


def test_a_profile_is_read_by_its_marks():
    events = [
        event("aten::item", -50, -10),  # before the first marked step
        on_gpu("gemm", -40, -20),
        event(profiles.STEP, 0, 100),
        event(profiles.INPUT, 0, 30),
        event("cudaStreamSynchronize", 5, 25),  # a part of getting the input
        event("aten::item", 50, 80),
        event("cudaMemcpyAsync", 55, 60),
        event("cudaStreamSynchronize", 60, 79),  # inside of item: counted once
        event("cudaMemcpyAsync", 82, 83),  # only queued
        event("Optimizer.step#SGD.step", 85, 95),
        on_gpu("Optimizer.step#SGD.step", 40, 95),
        on_gpu(profiles.STEP, 0, 100),
        on_gpu("gemm", 40, 60),
        event("triton_poi_fused_add_0", 84, 85),
        on_gpu("triton_poi_fused_add_0", 90, 94),  # named as the host's call of it, and work
        on_gpu("Memcpy HtoD (Pageable -> Device)", 60, 70),
        on_gpu("ncclDevKernel_AllReduce", 65, 90),
        event(profiles.STEP, 200, 300),
        event("cudaMemcpyAsync", 210, 290),  # a copy that holds the host
        event("cudaDeviceSynchronize", 310, 400),  # the wait that the profile itself adds
    ]
    found = profiles.read(events, steps=2, window_s=400e-6)
    assert [name for _, _, name in found.device] == [
        "gemm", "Memcpy HtoD (Pageable -> Device)", "ncclDevKernel_AllReduce",
        "triton_poi_fused_add_0",
    ]  # fmt: skip
    assert found.wait_s == pytest.approx(30e-6)
    assert found.transfer_s == pytest.approx(80e-6)
    assert found.waits == {"aten::item": 1, "cudaMemcpyAsync": 1}, "one wait is told once"
    # Half as long as under the profiler.
    told = steps._quantities_of_profile(found, period_s=100e-6)
    assert told["busy_s"] == pytest.approx(27e-6)
    assert told["copy_s"] == pytest.approx(2.5e-6), "the rest of the copy is beside a collective"
    assert told["communication_s"] == pytest.approx(10e-6)
    assert told["kernels"] == 2.0
    assert told["wait_s"] == pytest.approx(30e-6 * 100 / 400)
    assert told["profiled_s"] == pytest.approx(200e-6)
    assert profiles.read(events[:2], 2, 1.0).steps == 0


def test_a_wait_has_the_name_of_the_operator_that_waits():
    events = [
        event(profiles.STEP, 0, 100),
        event("aten::nonzero", 10, 50),
        event("aten::to", 12, 20),
        event("cudaStreamSynchronize", 30, 45),
        event("aten::add", 52, 55),
        event("cudaDeviceSynchronize", 60, 90),  # called by the reader
    ]
    found = profiles.read(events, steps=1, window_s=100e-6)
    assert found.waits == {"aten::nonzero": 1, "cudaDeviceSynchronize": 1}
    assert found.wait_s == pytest.approx(45e-6)


def test_where_launches_and_waits_meet_the_waits_go_first():
    mixed = replace(STEPS["launch"], wait_s=0.12 * MS, synchronizes=True)
    found = judge(mixed)
    assert (found.cause, found.second) == ("launch", "sync")
    assert found.advice.startswith("First take out what makes the host wait")
    assert judge(STEPS["launch"]).advice == bottleneck.ADVICE["launch"]


def test_a_wait_of_the_input_alone_is_told_as_such():
    told = judge(replace(STEPS["input"], synchronizes=True)).evidence
    assert "It waits for the GPU only while it gets the input." in told
    unseen = judge(replace(STEPS["input"], synchronizes=True, wait_s=None)).evidence
    assert "The step makes the host wait; for how long was not seen." in unseen


def test_a_cpu_says_where_more_can_be_told():
    found = steps.diagnose(lambda: X + 1, device="cpu", settle_cap_s=0, block_s=1e-4)
    assert found.verdict.cause == "unknown" and "--device cuda:0" in found.verdict.advice
    assert "in doubt" not in str(found)


# What a step on this machine is called.


def test_a_slow_iterator_is_named_on_a_cpu_and_begins_anew():
    def batches():
        for _ in range(3):
            yield torch.randn(400, 400).sort(dim=1).values

    found = steps.diagnose(
        lambda x: x[:1] + 1, inputs=batches, device="cpu", settle_cap_s=0, block_s=1e-4
    )
    assert found.verdict.cause == "input" and found.device == "cpu"
    text = str(found)
    assert "bottleneck: input" in text and "try next:" in text and "operators" in text
    told = found.as_dict()
    assert told["cause"] == "input" and told["period_low_s"] <= told["period_s"]
    assert told["shares"]["input_share"] > 0.5


def test_batches_that_can_not_be_had_are_refused():
    quick = {"device": "cpu", "settle_cap_s": 0, "block_s": 1e-4}
    with pytest.raises(BadParameter, match="inputs is a int; give batches"):
        steps.diagnose(lambda x: x, inputs=3, **quick)
    with pytest.raises(MeasurementError, match="batches ended, and beginning anew gave none"):
        steps.diagnose(lambda x: x, inputs=iter([X]), **quick)


def test_the_front_door_has_it():
    import anatomy
    from anatomy.diagnosis import readers

    assert anatomy.diagnose is readers.diagnose and "diagnose" in dir(anatomy)
