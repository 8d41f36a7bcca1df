"""Made-up comparisons of harnesses whose spreads, biases and error rates the tests know: as tables,
and one of them as recordings."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anatomy.chapters.harnesses.contest.standings import ESTIMATES, REFERENCE, RIVALS
from tests.fakes import synthetic

TIME_S = 100e-6
ONE = {"W1": TIME_S}
TEN = {f"W{number}": TIME_S for number in range(1, 11)}
QUANTITY = {rival: quantity for quantity, rivals in RIVALS.items() for rival in rivals}
ALL = {"compare": 0.01} | dict.fromkeys(QUANTITY, 0.04)
SEED = 11

# Those of the recordings.
WORKLOADS = {"W1 add 1 element": 2e-6, "W5 softmax": 58e-6, "W8 matmul 8192": 1.6e-3}
SPREADS = {
    "compare": 0.01,
    "do_bench mean": 0.06,
    "do_bench median": 0.04,
    "inductor": 0.02,
    "do_bench_cudagraph": 0.015,
    "blocked_autorange": 0.05,
    "adaptive_autorange": 0.08,
}
BIASES = {"do_bench mean": 0.05, "inductor": -0.03}


def figures(
    spreads: Mapping[str, float] = ALL,
    times: Mapping[str, float] = TEN,
    biases: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """Six processes of three replicates. The 18 figures of a cell are evenly spaced over the
    spread of their harness around the time of their workload, in a drawn order."""
    generator = np.random.default_rng(SEED)
    runs = [(process, replicate) for process in range(6) for replicate in range(3)]
    rows = []
    for op, time_s in times.items():
        for name, spread in spreads.items():
            for quantity in RIVALS if name == "compare" else [QUANTITY[name]]:
                steps = generator.permutation(np.linspace(-0.5, 0.5, len(runs)))
                for (process, replicate), step in zip(runs, steps, strict=True):
                    figure = time_s * (1 + (biases or {}).get(name, 0.0)) * (1 + spread * step)
                    rows.append(
                        {
                            "part": "estimate", "process": process, "op": op, "quantity": quantity,
                            "variant": name, "replicate": replicate, "median_s": figure,
                            "low_s": figure * 0.99, "high_s": figure * 1.01, "rest_s": time_s,
                            "cost_s": 0.31,
                        }
                    )  # fmt: skip
    return pd.DataFrame(rows)


def pairs(part: str, ratios, *, verdict: str, op: str = "E1", floor: float = 0.002) -> pd.DataFrame:
    """One comparison for each process and ratio, with its blocks around that ratio."""
    generator = np.random.default_rng(SEED)
    return pd.DataFrame(
        {
            "part": part, "process": process, "op": op, "quantity": "gpu_cold",
            "variant": "compare", "replicate": replicate, "median_s": TIME_S, "ratio": ratio,
            "ratio_low": ratio - 0.001, "ratio_high": ratio + 0.001, "noise_floor": floor,
            "verdict": verdict, "cost_s": 0.3,
            "block_ratios": list(ratio * np.exp(0.002 * generator.standard_normal(24))),
        }
        for process in range(6)
        for replicate, ratio in enumerate(ratios)
    )  # fmt: skip


def long_runs(
    steps: Sequence[float], op: str = "W1", time_s: float = TIME_S, width: float = 0.01
) -> pd.DataFrame:
    """In each process six successive figures, `steps` away from `time_s`, as shares of it."""
    return pd.DataFrame(
        {
            "part": "long", "process": process, "op": op, "quantity": quantity,
            "variant": "compare", "replicate": index, "median_s": time_s * (1 + step),
            "low_s": time_s * (1 + step - width), "high_s": time_s * (1 + step + width),
            "rest_s": time_s,
        }
        for process in range(6)
        for quantity in ("gpu_cold", "gpu_warm")
        for index, step in enumerate(steps)
    )  # fmt: skip


def others(part: str, *more: Mapping[str, Any]) -> pd.DataFrame:
    """Rows of a part that is not the estimates', of processes 0, 1 and so on."""
    row = {"part": part, "op": "E2", "quantity": "gpu_cold", "variant": "compare"}
    return pd.DataFrame([row | {"process": number} | each for number, each in enumerate(more)])


def truths(
    seconds: float | None = None, times: Mapping[str, float] = TEN, width: float = 0.0, **more: Any
) -> pd.DataFrame:
    """Three processes of the reference, whose median is right, with rounds within `width`; if that
    is 0, the first takes half of the time and the last the double."""
    return pd.DataFrame(
        {
            "process": process, "op": op, "quantity": quantity, "variant": "CUPTI",
            "median_s": off * (seconds or time_s), "low_s": (1 - width) * off * (seconds or time_s),
            "high_s": (1 + width) * off * (seconds or time_s),
        }
        for process, off in enumerate((1.0, 1.0, 1.0) if width else (0.5, 1.0, 2.0))
        for op, time_s in times.items()
        for quantity in RIVALS
    ).assign(**more)  # fmt: skip


def record(root: Path, **processes: int) -> None:
    """Save a comparison on the toy machine, of so many processes of each experiment."""
    for make in (reference, estimates):
        for process in range(processes.get(make.__name__, 6 if make is estimates else 3)):
            make(root, process=process)


@synthetic.makes(REFERENCE)
def reference(root: Path, **params: Any) -> Path:
    """A recording of `harnesses.reference`."""
    found = truths(times=WORKLOADS, width=0.002).query("process == 0")
    rounds = [list(each) for each in zip(found.low_s, found.median_s, found.high_s, strict=True)]
    return synthetic.record(root, REFERENCE, _rows(found.assign(rounds_s=rounds)), **params)


@synthetic.makes(ESTIMATES)
def estimates(root: Path, **params: Any) -> Path:
    """A recording of `harnesses.estimates`."""
    table = _whole()
    rows = _rows(table[table.process == params["process"]])
    return synthetic.record(root, ESTIMATES, rows, **params)


@cache
def _whole() -> pd.DataFrame:
    steps = np.linspace(-0.001, 0.001, 6)
    return pd.concat(
        [
            figures(SPREADS, WORKLOADS, BIASES),
            *(long_runs(steps, op, time_s, 0.003) for op, time_s in WORKLOADS.items()),
            *(pairs("pair", [1.0], verdict="undecided", op=op) for op in WORKLOADS),
            pairs("effect", [1.02] * 3, verdict="undecided"),
            others("effect", *[{"variant": "do_bench mean", "ratio": 1.015}] * 6),
            others("overhead", *[{"cost_s": 0.4, "wide": False}] * 6),
        ]
    )


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """A process's rows, each with the columns that it has."""
    rows = table.drop(columns="process").to_dict("records")
    return [{name: each for name, each in row.items() if each == each} for row in rows]


@synthetic.makes("worked_example.kernel")
def example(root: Path, **params: Any) -> Path:
    """A recording of `worked_example.kernel` whose blocks are those of its samples."""
    rows = []
    for quantity, time_s in (("gpu_cold", 58e-6), ("gpu_warm", 43e-6)):
        generator = np.random.default_rng(5)
        found = synthetic.compared(
            "softmax", quantity, time_s, {"2% more rows": 1.019}, control="softmax", limit="copy",
            bytes=2**26,
        )  # fmt: skip
        for row in found:
            noise = 0.004 * generator.standard_normal((synthetic.BLOCKS, 9))
            noise[:, 4] = 0.0  # the median of each block stays what the row says
            noise[:, :4], noise[:, 5:] = -abs(noise[:, :4]), abs(noise[:, 5:])
            samples = np.array(row["blocks_s"])[:, None] * (1 + noise)
            row["samples_s"] = [float(f"{sample:.6g}") for sample in samples.ravel()]
        rows += found
    return synthetic.record(root, "worked_example.kernel", rows, **params)
