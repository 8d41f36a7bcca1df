"""`diagnose` from end to end on a card in virtual time, with steps of known answer.

Host and device have a clock each, so what a host that waits, or launches slowly, does to the
period is what it would do on a real card.
"""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from torch.autograd import DeviceType

from anatomy.diagnosis import op_counts, profiles, steps
from tests.fakes import fake_gpu
from tests.fakes.fake_gpu import FakeGpu

LAUNCH_S = 5e-6
# The host's price of reading one value, beside the wait for the kernel.
READ_S = 10e-6


@pytest.fixture
def gpu(monkeypatch):
    """A card whose profiler sees the host's marks and waits too."""
    fake_gpu.forget()
    card = FakeGpu(launch_s=LAUNCH_S).install(monkeypatch)
    host = []

    @contextmanager
    def marked(name):
        began = card.host_s
        yield
        host.append((began, card.host_s, name))

    @contextmanager
    def profile(activities):
        host.clear()
        first = len(card.kernels)
        yield SimpleNamespace(events=lambda: events(host, card.kernels[first:]))

    def events(on_host, on_device):
        return [
            SimpleNamespace(
                name=name,
                device_type=kind,
                time_range=SimpleNamespace(start=begin * 1e6, end=end * 1e6),
                self_cpu_time_total=(end - begin) * 1e6,
            )
            for kind, spans in ((DeviceType.CPU, on_host), (DeviceType.CUDA, on_device))
            for begin, end, name in spans
        ]

    monkeypatch.setattr(profiles, "profile", profile)
    for module in (profiles, steps):
        monkeypatch.setattr(module, "record_function", marked)
    card.marked = marked
    yield card
    fake_gpu.forget()


@pytest.fixture
def diagnosed(gpu, monkeypatch):
    """Diagnose a step whose operations and bytes are told: `diagnosed(step, bytes_=...)`."""

    def run(step, *, flops=0, bytes_=0, **options):
        counted = op_counts.Counted(bytes=bytes_)
        counted.flops["bf16"] = flops
        monkeypatch.setattr(op_counts, "count", lambda call, kind: counted)
        return steps.diagnose(step, device="cuda:0", settle_cap_s=0, block_s=2e-3, **options)

    return run


def waits_for(gpu, name="cudaStreamSynchronize"):
    """The host waits until the card has done all that it was asked for."""
    with gpu.marked(name):
        gpu.wait(gpu.ends["current"])
        gpu.spend(READ_S)


# Work of a kernel of 1 ms that is near a limit of the card: its peak of bf16, or its bandwidth.
PRODUCT, COPY = {"flops": 6e11, "bytes_": 1e8}, {"flops": 0, "bytes_": 3e9}


def test_one_long_kernel_is_what_it_is_near_to(gpu, diagnosed):
    found = diagnosed(lambda: gpu.launch(1e-3), **PRODUCT)
    assert found.verdict.cause == "compute" and found.verdict.certain
    assert found.period.median == pytest.approx(1e-3, rel=0.05)
    assert found.quantities.synchronizes is False and found.device == "NVIDIA H200"
    assert found.kernels == (("kernel", 1.0, 1.0),)
    assert diagnosed(lambda: gpu.launch(1e-3), **COPY).verdict.cause == "memory"
    assert diagnosed(lambda: gpu.launch(1e-3), bytes_=1000).verdict.cause == "latency"


def test_many_short_kernels_are_launches(gpu, diagnosed):
    def step():
        for _ in range(100):
            gpu.launch(2e-6)

    found = diagnosed(step, bytes_=1000)
    assert found.verdict.cause == "launch" and found.verdict.certain
    shares = found.quantities.shares()
    assert shares["enqueue_share"] > 0.95 and shares["idle_share"] == pytest.approx(0.6, abs=0.1)


def test_a_wait_after_every_kernel_is_a_wait(gpu, diagnosed):
    def step():
        for _ in range(30):
            gpu.launch(20e-6)
            waits_for(gpu)

    found = diagnosed(step, bytes_=1000)
    assert found.verdict.cause == "sync", found
    assert found.quantities.synchronizes and found.waits == (("cudaStreamSynchronize", 30.0),)
    assert found.verdict.savings["sync"] == pytest.approx(1 - 20 / 36, abs=0.08)


def test_a_wait_for_one_long_kernel_costs_nothing(gpu, diagnosed):
    def step():
        gpu.launch(1e-3)
        waits_for(gpu, "aten::item")

    assert diagnosed(step, **PRODUCT).verdict.cause == "compute"


def test_a_slow_iterator_is_input_and_what_it_waits_for_is_its_own(gpu, diagnosed):
    def batches():
        while True:
            gpu.spend(5e-3)
            gpu.launch(1e-4)
            waits_for(gpu)  # a copy to the card, made while the batch is
            yield 1

    found = diagnosed(lambda batch: gpu.launch(1e-3), inputs=batches, **PRODUCT)
    assert found.verdict.cause == "input"
    assert found.quantities.wait_s == 0 and found.quantities.input_s == pytest.approx(
        5.1e-3, rel=0.3
    )
    assert "Before it, getting the input takes" in str(found)


def test_work_of_the_host_inside_of_the_step_is_input(gpu, diagnosed):
    def step():
        gpu.spend(5e-3)
        gpu.launch(1e-3)

    assert diagnosed(step, **PRODUCT).verdict.cause == "input"


def test_collectives_that_nothing_hides_are_communication(gpu, diagnosed):
    def step():
        gpu.launch(1e-4)
        gpu.launch(1e-3, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL")

    assert diagnosed(step, flops=6e10, bytes_=1e7).verdict.cause == "communication"


def test_a_blind_profiler_leaves_the_host_alone_to_be_judged(gpu, diagnosed, monkeypatch):
    @contextmanager
    def blind(activities):
        raise RuntimeError("CUPTI is in use\nby another")
        yield

    monkeypatch.setattr(profiles, "profile", blind)

    def step():
        for _ in range(100):
            gpu.launch(2e-6)

    found = diagnosed(step)
    assert (found.verdict.cause, found.verdict.certain) == ("launch", False)
    assert "No profile could be taken: CUPTI is in use" in found.warnings
