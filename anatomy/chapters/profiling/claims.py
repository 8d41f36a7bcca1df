"""What a profiler costs, and what a small training step leaves of a GPU."""

from anatomy.claims import Finding, Measured, Need, answer, claim
from anatomy.claims.table import Table, known
from anatomy.judge.comparisons import TIMES
from anatomy.table import units

OVERHEAD = Need("profiling.overhead")
SMALL, LARGE = "small step", "large step"
OFF, BOTH, STACKS = "no profiler", "CPU and GPU", "with_stack"
HARDLY = 1.05  # times longer: what is not felt
HALF = 0.5


@claim(OVERHEAD, topic="method")
def profilers_slow_the_host(overhead: Table) -> Finding:
    """A profiler that records Python's stacks, too, makes a host-bound step longer.

    The small step with stacks, over the same without a profiler."""
    ratio = overhead.ratio(STACKS, OFF, op=SMALL)
    return answer(ratio.says("slower"), f"The small step with stacks: {ratio.text}.", ratio)


@claim(OVERHEAD, topic="method")
def gpu_bound_steps_hardly_feel_it(overhead: Table) -> Finding:
    """A GPU-bound training step hardly feels a profiler of CPU and GPU.

    The large step takes at most 5 % longer under the profiler."""
    ratio = overhead.ratio(BOTH, OFF, op=LARGE)
    return answer(ratio.at_most(HARDLY), f"The large step: {ratio.text}.", ratio)


@claim(OVERHEAD, topic="method")
def stacks_cost_the_most(overhead: Table) -> Finding:
    """Python's stacks cost a profile more than all the rest of it.

    with_stack adds more to the small step than the profile of CPU and GPU without it."""
    stacks, both = (overhead.ratio(name, OFF, op=SMALL) for name in (STACKS, BOTH))
    over = overhead.ratio(STACKS, BOTH, op=SMALL)
    # More than doubling what the profile adds is a ratio of 2 - 1 / (its ratio) to it.
    bound = 2 - 1 / both.value
    said = f"With stacks {stacks.text}, without {both.text}."
    return answer(over.at_least(bound), said, over)


@claim(OVERHEAD, topic="launches")
def small_steps_leave_the_gpu_idle(overhead: Table) -> Finding:
    """In a small training step the GPU idles for more than half of the time.

    What the kernels of the small step leave of its time, without a profiler."""
    row = overhead.measured(OFF, op=SMALL)
    busy = known(row, "busy_s", "no kernels were recorded")
    ends = (1 - busy / row[end] for end in TIMES)
    idle = Measured(*ends, unit="share", floor=row.get("noise_floor") or 0.0)
    return answer(idle.at_least(HALF), f"Idle for {units.percent(idle.value)} of it.", idle)
