"""What stands beside the blocks of a comparison, on a virtual GPU: what the clock itself costs, the
host's clock, what comes before and after, the census, and the stopwatch for long calls.
"""

import os
import sys
from tempfile import TemporaryDirectory
from unittest import mock

import torch

from anatomy.measure import account, cache, census, stopwatch_for
from anatomy.measure.comparison import settle
from anatomy.table.errors import BadParameter, DisagreementError, MeasurementError
from tests.fakes.fake_driver import FIRST
from tests.fakes.fake_gpu import LAUNCH_GAP_S
from tests.measure.method.scenarios import LONG_S, SHORT_S, wobbling
from tests.measure.method.traces import compared, counted, scenario

# What the clock itself costs.


@scenario(step_s=32e-9, jitter_s=0.1e-6)
def events_that_count_in_steps(gpu):
    found = account("cuda:0")["method"]
    return found, compared(gpu, {"a": gpu.callable(2e-6)}, budget_s=0.1)


@scenario(jitter_s=0.3e-6)
def events_whose_spans_all_differ(gpu):
    return account("cuda:0")["method"]


@scenario(profiler="blind")
def a_profiler_that_sees_nothing(gpu):
    told = account("cuda:0")
    return told["method"], len(told["warnings"]), compared(gpu, {"a": gpu.callable(1e-3)})


@scenario(profiler=RuntimeError("CUPTI is held by another tool"))
def a_profiler_that_is_taken(gpu):
    told = account("cuda:0")
    calls = {"a": gpu.callable(1e-3)}
    return told["method"], len(told["warnings"]), compared(gpu, calls, profile=True)


@scenario(launch_s=40e-6)
def a_host_that_needs_longer_sleeps(gpu):
    told = account("cuda:0")
    call = gpu.callable(SHORT_S, host_s=50e-6)
    return told["method"], len(told["warnings"]), compared(gpu, {"a": call})


@scenario(launch_s=2e-3)
def a_host_too_slow_to_be_hidden(gpu):
    told = account("cuda:0")
    return told["method"], len(told["warnings"]), stopwatch_for("cuda:0").clock_now()


@scenario(l2_bytes=16 * 2**20, true_l2_bytes=256 * 2**20)
def a_flush_that_leaves_the_cache_full(gpu):
    told = account("cuda:0")
    return told["method"], len(told["warnings"])


@scenario(l2_bytes=0)
def a_card_that_does_not_say_how_large_its_cache_is(gpu):
    device = torch.device("cuda", 0)
    sets = [cache.rotation(n, device) for n in (0, 1, 8 * 2**20 - 1, 8 * 2**20, 2**26, 2**30)]
    return account("cuda")["method"], sets


# The host's clock.


@scenario(host_caches=("48K\n", "2048K", "512", "105M\n"))
def a_cpu_in_every_quantity(gpu):
    calls = {"a": gpu.callable(0.0, kernels=0, host_s=SHORT_S)}
    calls["b"] = gpu.callable(0.0, kernels=0, host_s=30e-6)
    found = [
        compared(gpu, calls, quantity=quantity, device="cpu", profile=True)
        for quantity in ("gpu_cold", "gpu_warm", "host_enqueue", "step_wall")
    ]
    return account("cpu")["method"], found, stopwatch_for("cpu").conditions()


@scenario(host_caches=())
def a_cpu_whose_cache_is_not_known(gpu):
    with mock.patch.dict(sys.modules, {"resource": None}):
        calls = {"a": [gpu.callable(0.0, kernels=0, host_s=1e-3)] * 2}
        return account("cpu")["method"], compared(gpu, calls, device="cpu")


@scenario(host_caches=("2G",))
def a_cpu_whose_core_is_shared(gpu):
    gpu.stalls = [1.0 + 0.02 * n for n in range(500)]
    call = gpu.callable(0.0, kernels=0, host_s=1e-3)
    return counted(compared(gpu, {"a": call}, device="cpu"), warnings=1)


# Before and after the blocks.


@scenario()
def settling_takes_as_many_calls_as_it_needs(gpu):
    watch = stopwatch_for("cuda:0")

    def warm_up(made):
        gpu.gap_s = LAUNCH_GAP_S + max(0.0, 40e-6 - 0.01e-6 * made.calls)

    lengths = [settle(watch, {"a": [gpu.callable(s)]}, 1.0) for s in (2e-6, 1e-3, 0.3)]
    return (
        lengths,
        settle(watch, {"a": [gpu.callable(SHORT_S, each=warm_up)]}),
        watch.warnings == [],
    )


@scenario()
def settling_is_no_part_of_the_budget(gpu):
    call = gpu.callable(LONG_S, each=wobbling(gpu, 90e-6))
    return compared(gpu, {"a": call}, settle_cap_s=None, precision=0.0, budget_s=0.25)


@scenario()
def settling_gives_up(gpu):
    drift = gpu.callable(5e-3, each=lambda made: gpu.spend(made.calls * 1e-3))
    calls = {"a": drift, "b": gpu.callable(SHORT_S)}
    return counted(compared(gpu, calls, settle_cap_s=None, profile=True), warnings=1)


@scenario()
def outputs_that_are_kept_are_told(gpu):
    def keep(made):
        gpu.allocated += 2**16

    return counted(compared(gpu, {"a": gpu.callable(1e-3, each=keep)}, op="kept"), warnings=1)


@scenario()
def references_of_every_kind(gpu):
    calls = {name: gpu.callable(1e-3) for name in "ab"}
    exact = gpu.callable(1e-3)
    each = compared(gpu, calls, reference={"a": exact, "b": calls["a"]}, budget_s=0.05)
    return each, compared(gpu, calls, reference=exact, allowed={"b": 1e-9}, budget_s=0.05)


@scenario(raises=DisagreementError)
def a_wrong_answer(gpu):
    calls = {"a": gpu.callable(1e-3), "b": gpu.callable(1e-3)}
    calls["b"].made.result = 1.1
    return compared(gpu, calls)


@scenario(raises=DisagreementError)
def an_answer_that_changes(gpu):
    def drift(made):
        made.result = 1.0 if made.calls < 60 else 1.5

    return compared(gpu, {"a": gpu.callable(1e-3, each=drift)})


@scenario(raises=MeasurementError)
def work_on_a_side_stream(gpu):
    return compared(gpu, {"a": gpu.callable(1e-3, stream="side")})


@scenario()
def work_on_a_side_stream_that_the_host_waits_for(gpu):
    call = gpu.callable(1e-3, stream="side")
    return [
        compared(gpu, {"a": call}, quantity=quantity) for quantity in ("host_enqueue", "step_wall")
    ]


@scenario(raises=MeasurementError)
def work_that_no_event_sees(gpu):
    return compared(gpu, {"a": gpu.callable(0.0, kernels=0, host_s=5e-6)})


@scenario(raises=MeasurementError)
def work_that_stops_being_seen(gpu):
    def stop(made):
        gpu.gap_s = LAUNCH_GAP_S if made.calls < 40 else -2e-6

    return compared(gpu, {"a": gpu.callable(1e-6, each=stop)}, quantity="gpu_warm")


@scenario(raises=BadParameter)
def no_variant(gpu):
    return compared(gpu, {})


@scenario(raises=BadParameter)
def an_unknown_control(gpu):
    return compared(gpu, {"a": gpu.callable(1e-3)}, control="b")


@scenario(raises=BadParameter)
def an_unknown_quantity(gpu):
    return compared(gpu, {"a": gpu.callable(1e-3)}, quantity="time")


@scenario(raises=MeasurementError)
def company_before_it_begins(gpu):
    gpu.nvml.processes[FIRST].append(1)
    return compared(gpu, {"a": gpu.callable(1e-3)})


@scenario()
def company_that_is_allowed(gpu):
    gpu.nvml.processes[FIRST].append(1)
    asked = compared(gpu, {"a": gpu.callable(1e-3)}, allow_foreign=True)
    with mock.patch.dict(os.environ, {"ANATOMY_ALLOW_FOREIGN": "1"}):
        return asked, compared(gpu, {"a": gpu.callable(1e-3)})


# Kernels by name, and the clock for long calls.


@scenario()
def a_census_of_several_calls(gpu):
    calls = {"one": gpu.callable(1e-5), "three": gpu.callable(3e-5, kernels=3)}
    watch = stopwatch_for("cuda:0")
    found = census.take(calls, watch)
    figures = {name: [*vars(seen).values(), seen.gap_share] for name, seen in found.items()}
    again = compared(gpu, calls, profile=found)
    nothing = census.take({"idle": lambda: None}, watch)["idle"]
    whole = gpu._recorded
    gpu._recorded = lambda first: whole(first)[3:]
    return figures, again, nothing.gap_share, census.take(calls, watch)


@scenario(raises=RuntimeError)
def a_call_that_fails_under_the_profiler(gpu):
    def boom():
        raise RuntimeError

    return census.take({"a": boom}, stopwatch_for("cuda:0"))


@scenario()
def a_long_call_and_work_beside_it(gpu):
    watch = stopwatch_for("cuda:0")
    beside = [watch.leaves_work(gpu.callable(s, stream="side")) for s in (1e-3, 60e-3)]
    return beside, compared(gpu, {"long": gpu.callable(50e-3)}, watch=watch)


@scenario()
def blocks_take_turns_with_another_cards(gpu):
    with TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"ANATOMY_TURNS": folder}):
        return [
            compared(gpu, {"a": gpu.callable(SHORT_S)}, quantity=quantity)
            for quantity in ("gpu_warm", "host_enqueue", "step_wall")
        ]


@scenario()
def two_cards_in_turn(gpu):
    first, second = stopwatch_for("cuda:0"), stopwatch_for("cuda:1")
    call = gpu.callable(SHORT_S)
    spans = [watch.spans([call], cold=True, hold_s=1e-3) for watch in (first, second, first)]
    return spans, first.batch([call], hold_s=0.0), gpu.current_device
