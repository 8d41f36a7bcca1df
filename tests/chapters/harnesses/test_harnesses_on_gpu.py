"""Every public harness and every workload on a real GPU: that they run, not how fast."""

import math
from statistics import median

import pytest
import torch

from anatomy.chapters.harnesses.stopwatches import adapters, cupti, workloads
from anatomy.measure import stopwatch_for

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")

BUDGET_S = 0.05
# One kernel shorter than the clock, one chain bound by its launches, and one with a backward pass.
SOME = ("W1 add 1 element", "W6 eager chain", "W10 training step")
NAMES = [
    *("compare gpu_cold", "compare gpu_warm", "compare step_wall"),
    *("do_bench", "inductor", "do_bench_cudagraph", "blocked_autorange", "adaptive_autorange"),
]


@pytest.fixture(scope="module")
def calls():
    device = torch.device("cuda", 0)
    made = {op: build(device, 1.0) for op, build in workloads.WORKLOADS.items() if op in SOME}
    for call in made.values():
        stopwatch_for("cuda:0").wall([call] * 3)
    return made


@pytest.mark.parametrize("op", SOME)
@pytest.mark.parametrize("name", NAMES)
def test_a_harness_gives_a_figure(name, op, calls):
    watch = stopwatch_for("cuda:0")
    harness = {each.name: each for each in adapters.harnesses(watch, BUDGET_S)}[name]
    assert harness.missing is None
    for figure in harness.run(calls[op]).values():
        assert math.isfinite(figure.seconds) and figure.seconds > 0 and figure.samples >= 1


@pytest.mark.parametrize("op", SOME)
@pytest.mark.parametrize("way", [cupti.cold, cupti.warm])
def test_the_record_of_kernels_is_whole(way, op, calls):
    found = way(calls[op], stopwatch_for("cuda:0"))
    assert 0 < found.busy_s <= 1.5 * found.seconds
    assert found.kernels_per_call == 1 if op.startswith("W1 ") else found.kernels_per_call >= 3
    assert len(found.values) >= cupti.LEAST_CALLS


@pytest.mark.parametrize("op", workloads.WORKLOADS)
def test_a_workload_gives_the_same_answer_again(op):
    call = workloads.WORKLOADS[op](torch.device("cuda", 0), 1.0)
    first = call().clone()
    assert first.isfinite().all()
    torch.testing.assert_close(call(), first)


@pytest.mark.parametrize("name", workloads.EFFECTS)
def test_the_effect_is_there(name):
    watch = stopwatch_for("cuda:0")
    plain, more = workloads.EFFECTS[name](torch.device("cuda", 0), 1.0)
    for _ in range(5):  # a clock that still climbs would favour whichever comes second
        watch.wall([plain, more] * 100)
    ratios = []
    for turn in range(10):
        took = {}
        for call in (plain, more) if turn % 2 else (more, plain):
            took[call], leaked = watch.batch([call] * 20, hold_s=1e-3)
            assert not leaked
        ratios.append(took[more] / took[plain])
    assert median(ratios) == pytest.approx(workloads.EFFECT, abs=0.005)
