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
    builders = workloads.workloads(device, 1.0)
    made = {op: builders[op]() for op in SOME}
    for call in made.values():
        stopwatch_for("cuda:0").wall([call] * 3)
    return made


@pytest.mark.parametrize("op", SOME)
@pytest.mark.parametrize("name", NAMES)
def test_a_harness_gives_a_figure(name, op, calls):
    watch = stopwatch_for("cuda:0")
    harness = {each.name: each for each in adapters.harnesses(watch, BUDGET_S)}[name]
    assert harness.missing is None
    for figure in harness.run(calls[op]):
        assert math.isfinite(figure["median_s"]) and figure["median_s"] > 0
        assert figure["samples"] >= 1


@pytest.mark.parametrize("op", SOME)
@pytest.mark.parametrize("way", [cupti.cold, cupti.warm])
def test_the_record_of_kernels_is_whole(way, op, calls):
    found = way(calls[op], stopwatch_for("cuda:0"))
    assert len(found) >= cupti.LEAST_CALLS and min(found) > 0
    # A flush that counts as a part of the call, or a kernel that does not, would be seen.
    assert median(found) < 4e-6 if op.startswith("W1 ") else median(found) > 10e-6


@pytest.mark.parametrize("op", workloads.workloads(torch.device("cpu"), 1.0))
def test_a_workload_gives_the_same_answer_again(op):
    call = workloads.workloads(torch.device("cuda", 0), 1.0)[op]()
    first = call().clone()
    assert first.isfinite().all()
    torch.testing.assert_close(call(), first)


@pytest.mark.parametrize("name", workloads.effects(torch.device("cpu"), 1.0))
def test_the_effect_is_there(name):
    watch = stopwatch_for("cuda:0")
    plain, more = workloads.effects(torch.device("cuda", 0), 1.0)[name]()
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
