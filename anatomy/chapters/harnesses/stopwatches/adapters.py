"""Each harness behind one form: a callable in, the figures it reports out. Every one is called as
its documentation says, with its own knob set to the budget."""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from statistics import fmean, median
from typing import Any, NamedTuple

from anatomy.chapters.harnesses.stopwatches.workloads import Call
from anatomy.comparison import compare
from anatomy.measure.stopwatch import Stopwatch

WARM_UP_SHARE = 0.2  # do_bench's own ratio: 25 ms of warm-up to 100 ms of measuring
REPLAY_SHARE = 1 / 15  # ten of do_bench_cudagraph's 20 ms leave a third of 0.3 s for its capture
AUTORANGE_SHARE = 0.5  # Timer looks for a long enough block for as long as it then measures
PILOT = 10  # calls with which inductor's benchmarker is asked how long an iteration takes
INDUCTOR_WARM_UPS = 100  # its default number of cache flushes before the first measured call
FOREVER_MS = 10**9

Row = dict[str, Any]  # of a figure: `variant`, who reports it, `median_s`, `samples`, and more
Figures = list[Row]  # of one run, which may have two


class Harness(NamedTuple):
    """A harness as the protocol runs it."""

    name: str
    quantity: str  # the time that it reports; it is compared with nothing else
    run: Callable[[Call], Figures]
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
        Harness("blocked_autorange", "step_wall", partial(_timer, "blocked", "min", budget_s)),
        Harness("adaptive_autorange", "step_wall", partial(_timer, "adaptive", "max", budget_s)),
    ]


def ours(watch: Stopwatch, budget_s: float, quantity: str, call: Call) -> Figures:
    """The figure of `compare` with one variant and its duplicate, its interval and its blocks."""
    own, again = _rows(watch, budget_s, quantity, {"it": call})
    return [_compared(own, own, again)]


def pair(watch: Stopwatch, budget_s: float, quantity: str, plain: Call, other: Call) -> Figures:
    """How `compare` holds one callable against another, with the blocks of the first."""
    first, second, again = _rows(watch, budget_s, quantity, {"a": plain, "b": other})
    both = zip(second["blocks_s"], first["blocks_s"], strict=True)
    ratios = [float(f"{above / below:.5g}") for above, below in both]
    kept = {name: second[name] for name in ("ratio", "ratio_low", "ratio_high", "verdict")}
    return [_compared(second, first, again) | kept | {"block_ratios": ratios}]


def _compared(shown: Row, first: Row, again: Row) -> Row:
    """What is kept of one row of a comparison, with the blocks of its control and the duplicate."""
    kept = {name: shown[name] for name in ("median_s", "low_s", "high_s", "samples", "wide")}
    blocks = [*first["blocks_s"], *again["blocks_s"]]
    return {"variant": "compare", "noise_floor": again["noise_floor"], "blocks": blocks} | kept


def _rows(watch: Stopwatch, budget_s: float, quantity: str, calls: dict[str, Call]) -> Figures:
    """A comparison that measures for the whole of `budget_s`, narrow or not, without settling,
    since the settle load has just run, and without a profile."""
    how = {"budget_s": budget_s, "precision": 0.0, "settle_cap_s": 0.0, "profile": False}
    found = compare(calls, quantity=quantity, device=watch.device, watch=watch, **how)
    return found.table.to_dict("records")


def _do_bench(budget_s: float, call: Call) -> Figures:
    from triton.testing import do_bench

    warm_up_ms, rep_ms = (share * budget_s * 1e3 for share in (WARM_UP_SHARE, 1 - WARM_UP_SHARE))
    found = do_bench(call, warmup=warm_up_ms, rep=rep_ms, return_mode="all")
    # One run gives both figures: they differ in nothing but the last line of do_bench.
    middles = {"do_bench mean": fmean(found), "do_bench median": median(found)}
    return [_figure(name, ms * 1e-3, len(found)) for name, ms in middles.items()]


def _cudagraph(budget_s: float, call: Call) -> Figures:
    from triton.testing import do_bench_cudagraph

    found = do_bench_cudagraph(call, rep=REPLAY_SHARE * budget_s * 1e3, return_mode="all")
    return [_figure("do_bench_cudagraph", fmean(found) * 1e-3, len(found))]


def _inductor(watch: Stopwatch, budget_s: float) -> Callable[[Call], Figures]:
    """Inductor's benchmarker; how many iterations fill the budget is asked outside of it."""
    iterations: dict[Call, int] = {}

    def run(call: Call) -> Figures:
        from torch._inductor.runtime.benchmarking import InductorBenchmarker

        benchmarker = InductorBenchmarker()

        def bench(warm_ups: int, count: int) -> float:
            how = {"memory_warmup_iters": warm_ups, "benchmark_iters": count}
            return benchmarker.benchmark_gpu(call, max_benchmark_duration=FOREVER_MS, **how)

        if call not in iterations:
            short, long = partial(bench, 0, 1), partial(bench, 0, PILOT)
            watch.wall([short])
            each_s = max(watch.wall([long]) - watch.wall([short]), 1e-5) / (PILOT - 1)
            fixed_s = watch.wall([partial(bench, INDUCTOR_WARM_UPS, 1)])
            iterations[call] = max(1, int((budget_s - fixed_s) / each_s))
        count = iterations[call]
        return [_figure("inductor", bench(INDUCTOR_WARM_UPS, count) * 1e-3, count)]

    return run


def _timer(way: str, end: str, budget_s: float, call: Call) -> Figures:
    """One of Timer's two ways, and whether the least or the most of its time can be set."""
    from torch.utils.benchmark import Timer

    run = getattr(Timer("call()", globals={"call": call}), f"{way}_autorange")
    found = run(**{f"{end}_run_time": AUTORANGE_SHARE * budget_s})
    return [_figure(f"{way}_autorange", found.median, len(found.times) * found.number_per_run)]


def _figure(name: str, seconds: float, samples: int) -> Row:
    return {"variant": name, "median_s": seconds, "samples": samples}
