"""Each harness behind one form: a callable in, the figures it reports out. Every one is called as
its documentation says, with its own knob set to the budget."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from statistics import fmean, median
from typing import Any

from anatomy.chapters.harnesses.stopwatches.workloads import Call
from anatomy.comparison import compare
from anatomy.measure.stopwatch import Stopwatch

WARM_UP_SHARE = 0.2  # do_bench's own ratio: 25 ms of warm-up to 100 ms of measuring
REPLAY_SHARE = 1 / 15  # ten of do_bench_cudagraph's 20 ms leave a third of 0.3 s for its capture
AUTORANGE_SHARE = 0.5  # Timer looks for a long enough block for as long as it then measures
PILOT = 10  # calls with which inductor's benchmarker is asked how long an iteration takes
INDUCTOR_WARM_UPS = 100  # its default number of cache flushes before the first measured call
FOREVER_MS = 10**9


@dataclass(frozen=True)
class Figure:
    """What a harness reported. Times in seconds; `more` are columns that only `compare` fills."""

    seconds: float
    samples: int
    low_s: float | None = None
    high_s: float | None = None
    more: dict[str, Any] = field(default_factory=dict)
    blocks_s: tuple[float, ...] = ()


@dataclass(frozen=True)
class Harness:
    """A harness as the protocol runs it."""

    name: str
    quantity: str  # the time that it reports; it is compared with nothing else
    run: Callable[[Call], dict[str, Figure]]  # gives figures by name: one run may have two
    missing: str | None = None  # why it can't run here


def harnesses(watch: Stopwatch, budget_s: float) -> list[Harness]:
    """All harnesses, ready for estimates of `budget_s` wall seconds each, warm-up included."""
    no_gpu = None if watch.device.type == "cuda" else f"needs CUDA; this is {watch.device.type}"
    no_triton = no_gpu or (None if find_spec("triton") else "triton is not installed")
    return [
        *(
            Harness(f"compare {quantity}", quantity, partial(ours, watch, budget_s, quantity))
            for quantity in ("gpu_cold", "gpu_warm", "step_wall")
        ),
        Harness("do_bench", "gpu_cold", partial(_do_bench, budget_s), no_triton),
        Harness("inductor", "gpu_cold", _inductor(watch, budget_s), no_gpu),
        Harness("do_bench_cudagraph", "gpu_warm", partial(_cudagraph, budget_s), no_triton),
        Harness("blocked_autorange", "step_wall", partial(_blocked, budget_s)),
        Harness("adaptive_autorange", "step_wall", partial(_adaptive, budget_s)),
    ]


def ours(watch: Stopwatch, budget_s: float, quantity: str, call: Call) -> dict[str, Figure]:
    """The figure of `compare` with one variant and its duplicate, and its interval."""
    own, again = quick(watch, budget_s, quantity, {"it": call})
    more = {"noise_floor": again["noise_floor"], "wide": own["wide"]}
    blocks = (*own["blocks_s"], *again["blocks_s"])
    figure = Figure(own["median_s"], own["samples"], own["low_s"], own["high_s"], more, blocks)
    return {"compare": figure}


def quick(watch: Stopwatch, budget_s: float, quantity: str, calls: dict[str, Call]) -> list[dict]:
    """The rows of a comparison that measures for the whole of `budget_s`, narrow or not, without
    settling, since the settle load has just run, and without a profile."""
    found = compare(
        calls,
        quantity=quantity,
        device=watch.device,
        budget_s=budget_s,
        precision=0.0,
        settle_cap_s=0.0,
        profile=False,
        watch=watch,
    )
    return found.table.to_dict("records")


def _do_bench(budget_s: float, call: Call) -> dict[str, Figure]:
    from triton.testing import do_bench

    budget_ms = budget_s * 1e3
    found = do_bench(
        call,
        warmup=WARM_UP_SHARE * budget_ms,
        rep=(1 - WARM_UP_SHARE) * budget_ms,
        return_mode="all",
    )
    # One run gives both figures: they differ in nothing but the last line of do_bench.
    return {
        "do_bench mean": Figure(fmean(found) * 1e-3, len(found)),
        "do_bench median": Figure(median(found) * 1e-3, len(found)),
    }


def _cudagraph(budget_s: float, call: Call) -> dict[str, Figure]:
    from triton.testing import do_bench_cudagraph

    found = do_bench_cudagraph(call, rep=REPLAY_SHARE * budget_s * 1e3, return_mode="all")
    return {"do_bench_cudagraph": Figure(fmean(found) * 1e-3, len(found))}


def _inductor(watch: Stopwatch, budget_s: float) -> Callable[[Call], dict[str, Figure]]:
    """Inductor's benchmarker; how many iterations fill the budget is asked outside of it."""
    iterations: dict[Call, int] = {}

    def run(call: Call) -> dict[str, Figure]:
        from torch._inductor.runtime.benchmarking import InductorBenchmarker

        benchmarker = InductorBenchmarker()
        if call not in iterations:
            pilot = partial(benchmarker.benchmark_gpu, call, memory_warmup_iters=0)
            short, long = partial(pilot, benchmark_iters=1), partial(pilot, benchmark_iters=PILOT)
            watch.wall([short])
            each_s = max(watch.wall([long]) - watch.wall([short]), 1e-5) / (PILOT - 1)
            fixed_s = watch.wall([partial(short, memory_warmup_iters=INDUCTOR_WARM_UPS)])
            iterations[call] = max(1, int((budget_s - fixed_s) / each_s))
        found_ms = benchmarker.benchmark_gpu(
            call,
            memory_warmup_iters=INDUCTOR_WARM_UPS,
            benchmark_iters=iterations[call],
            max_benchmark_duration=FOREVER_MS,
        )
        return {"inductor": Figure(found_ms * 1e-3, iterations[call])}

    return run


def _blocked(budget_s: float, call: Call) -> dict[str, Figure]:
    found = _timer(call).blocked_autorange(min_run_time=AUTORANGE_SHARE * budget_s)
    return {"blocked_autorange": _measured(found)}


def _adaptive(budget_s: float, call: Call) -> dict[str, Figure]:
    found = _timer(call).adaptive_autorange(max_run_time=AUTORANGE_SHARE * budget_s)
    return {"adaptive_autorange": _measured(found)}


def _timer(call: Call):
    from torch.utils.benchmark import Timer

    return Timer("call()", globals={"call": call})


def _measured(found) -> Figure:
    return Figure(found.median, len(found.times) * found.number_per_run)
