"""Comparisons that the measuring room is asked for on a virtual GPU, so that its way of making them
shows in their traces.

With `scenarios_beside` these go through every branch of the room, which a test holds. What
each adds to the others stands in its name. They are short: a comparison takes a fifth of a second
of virtual time unless it is the budget that is asked about.
"""

import sys
from collections.abc import Callable
from types import SimpleNamespace
from unittest import mock

from anatomy.table.errors import MeasurementError
from tests.fakes.fake_driver import FIRST
from tests.fakes.fake_gpu import LAUNCH_GAP_S
from tests.measure.method.traced_gpu import TracedGpu
from tests.measure.method.traces import compared, counted, scenario

SHORT_S, LONG_S = 20e-6, 3e-3


def raising(counter: int, at: set[int], gpu: TracedGpu) -> Callable:
    """What a call does for a throttle counter to rise when it is called the n-th time."""

    def heat(made):
        if made.calls in at:
            kind, value = gpu.nvml.counters[FIRST][counter]
            gpu.nvml.counters[FIRST][counter] = (kind, value + 1000)

    return heat


def wobbling(gpu: TracedGpu, seconds: float, every: int = 1) -> Callable:
    """What a call does for its kernel to be late by up to so much, anew at each `every` calls."""

    def wobble(made):
        gpu.gap_s = LAUNCH_GAP_S + seconds * (made.calls // every * 7919 % 101) / 101

    return wobble


# Each quantity, on calls that are short, long, many kernels, late on the host, or waiting for it.


def short_and_composed(gpu: TracedGpu, quantity: str) -> dict:
    """A comparison of a short call with one of three kernels."""
    calls = {"a": gpu.callable(SHORT_S), "b": gpu.callable(30e-6, kernels=3)}
    return compared(gpu, calls, quantity=quantity, profile=True)


@scenario()
def short_and_composed_calls_cold(gpu):
    return short_and_composed(gpu, "gpu_cold")


@scenario()
def short_and_composed_calls_warm(gpu):
    return short_and_composed(gpu, "gpu_warm")


@scenario()
def short_and_composed_calls_enqueued(gpu):
    return short_and_composed(gpu, "host_enqueue")


@scenario()
def short_and_composed_calls_waited_for(gpu):
    return short_and_composed(gpu, "step_wall")


@scenario()
def wall_batches_of_calls_of_every_length(gpu):
    calls = {f"{seconds:g}": gpu.callable(seconds) for seconds in (7e-4, 1.5e-3, 5e-3, 9e-3)}
    return compared(gpu, calls, quantity="step_wall")


@scenario()
def long_calls_of_which_one_waits_in_every_quantity(gpu):
    calls = {"a": gpu.callable(LONG_S), "b": gpu.callable(LONG_S, syncs=True)}
    return [
        compared(gpu, calls, quantity=quantity)
        for quantity in ("gpu_cold", "gpu_warm", "host_enqueue", "step_wall")
    ]


@scenario()
def a_third_variant_and_another_control(gpu):
    calls = {name: gpu.callable(SHORT_S * (2 + index)) for index, name in enumerate("abc")}
    return compared(gpu, calls, control="b", quantity="gpu_warm", seed=7)


@scenario()
def hundreds_of_kernels_fill_the_queue(gpu):
    return compared(gpu, {"chain": gpu.callable(500e-6, kernels=300)})


@scenario()
def batches_that_a_slow_host_queues_fill_it_too(gpu):
    return compared(gpu, {"a": gpu.callable(5e-6, host_s=100e-6)}, quantity="gpu_warm")


@scenario()
def calls_over_several_sets_of_buffers(gpu):
    calls = {"a": [gpu.callable(SHORT_S) for _ in range(3)], "b": gpu.callable(SHORT_S)}
    return compared(gpu, calls)


@scenario()
def a_call_of_a_fifth_of_a_second(gpu):
    return [
        compared(gpu, {"slow": gpu.callable(0.2)}, quantity=quantity, budget_s=3.0)
        for quantity in ("gpu_cold", "gpu_warm", "step_wall")
    ]


@scenario()
def a_slow_host_whose_dispatch_does_not_fit_behind_its_first_estimate(gpu):
    def slower(made):
        gpu.launch_s = 2e-6 if made.calls < 40 else 50e-6

    return compared(gpu, {"a": gpu.callable(SHORT_S, each=slower)})


@scenario()
def a_host_whose_dispatch_can_not_be_hidden(gpu):
    def slower(made):
        gpu.launch_s = 2e-6 if made.calls < 40 else 2e-3

    return compared(gpu, {"a": gpu.callable(SHORT_S, each=slower)}, budget_s=2.0)


# How many blocks there are, and which count.


@scenario()
def blocks_go_on_until_they_are_narrow(gpu):
    def calm(made):
        wobbling(gpu, 30e-6 if made.calls < 3500 else 0.0, 40)(made)

    return compared(gpu, {"a": gpu.callable(300e-6, each=calm)}, budget_s=9.0)


@scenario()
def blocks_that_never_become_narrow_end_at_the_last_look(gpu):
    call = gpu.callable(100e-6, each=wobbling(gpu, 6e-6, 40))
    return compared(gpu, {"a": call}, quantity="gpu_warm", budget_s=9.0)


@scenario()
def a_figure_out_of_reach(gpu):
    call = gpu.callable(100e-6, each=wobbling(gpu, 80e-6, 40))
    return compared(gpu, {"a": call}, quantity="gpu_warm", budget_s=9.0)


@scenario()
def as_many_calls_in_batches_as_are_asked_for(gpu):
    call = gpu.callable(100e-6)
    return compared(gpu, {"a": call}, quantity="gpu_warm", iters=400, budget_s=9.0)


@scenario()
def a_budget_that_looks_at_no_width_is_spent(gpu):
    call = gpu.callable(LONG_S, each=wobbling(gpu, 90e-6))
    return compared(gpu, {"a": call}, precision=0.0, budget_s=0.25)


@scenario()
def a_budget_too_small_for_the_first_look_ends_after_three_blocks(gpu):
    return compared(gpu, {"a": gpu.callable(0.2)}, budget_s=2.8)


@scenario()
def as_many_samples_as_are_asked_for(gpu):
    call = gpu.callable(LONG_S)
    return compared(gpu, {"a": call}, iters=120, budget_s=0.3, keep_samples=True)


@scenario()
def samples_of_the_hosts_time_have_a_tail(gpu):
    gpu.stalls, gpu.stall_s = [1.1 + 5e-3 * n for n in range(300)], 40e-6
    call = gpu.callable(SHORT_S, each=lambda made: gpu.spend(made.calls * 7919 % 101 * 50e-9))
    return counted(compared(gpu, {"a": call}, quantity="host_enqueue", iters=200), warnings=1)


@scenario()
def each_cause_costs_the_block_it_falls_into(gpu):
    calls = {}
    for counter, name in enumerate(("cap", "boost", "software", "hardware", "brake")):
        calls[name] = gpu.callable(1e-3, each=raising(counter, {60, 75}, gpu))
    return compared(gpu, calls, budget_s=2.0)


@scenario()
def a_graph_that_is_compiled_costs_its_block(gpu):
    compiled = {"unique_graphs": 3}

    def compile_anew(made):
        compiled["unique_graphs"] += made.calls == 60

    dynamo = SimpleNamespace(counters={"stats": compiled})
    with mock.patch.dict(sys.modules, {"torch._dynamo.utils": dynamo}):
        return compared(gpu, {"a": gpu.callable(1e-3, each=compile_anew)})


@scenario()
def the_allocator_and_a_visitor_cost_theirs(gpu):
    own = gpu.nvml.processes[FIRST]

    def disturb(made):
        gpu.device_allocs += made.calls == 60
        gpu.ooms += made.calls == 70
        gpu.nvml.processes[FIRST] = [*own, 1] if 80 <= made.calls < 85 else own

    return compared(gpu, {"a": gpu.callable(1e-3, each=disturb)}, budget_s=2.0)


@scenario(raises=MeasurementError)
def a_visitor_who_stays_ends_it(gpu):
    def come(made):
        if made.calls == 60:
            gpu.nvml.processes[FIRST].append(1)

    return compared(gpu, {"a": gpu.callable(1e-3, each=come)}, iters=2400)


@scenario(raises=MeasurementError)
def blocks_that_are_all_disturbed_end_it(gpu):
    return compared(gpu, {"a": gpu.callable(1e-3, each=raising(3, set(range(9999)), gpu))})


@scenario(raises=MeasurementError)
def slow_blocks_that_are_all_disturbed_end_it_sooner(gpu):
    call = gpu.callable(0.3, each=raising(3, set(range(9999)), gpu))
    return compared(gpu, {"a": call}, budget_s=0.1)


@scenario()
def one_disturbed_block_ends_nothing_though_its_budget_is_spent(gpu):
    return compared(gpu, {"a": gpu.callable(0.3, each=raising(3, {13}, gpu))}, budget_s=1e-3)


@scenario(raises=ValueError)
def a_call_that_raises_in_the_blocks(gpu):
    def boom(made):
        if made.calls == 60:
            raise ValueError

    return compared(gpu, {"a": gpu.callable(1e-3, each=boom)})


@scenario()
def a_card_without_nvml(gpu):
    gpu.nvml.silent.add("nvmlInit")
    return compared(gpu, {"a": gpu.callable(1e-3), "b": gpu.callable(2e-3)})


@scenario()
def a_card_without_one_counter_and_one_reading(gpu):
    gpu.nvml.silent |= {"power_brake", "nvmlDeviceGetPowerUsage"}
    return compared(gpu, {"a": gpu.callable(1e-3)})
