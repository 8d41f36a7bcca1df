"""A made-up comparison of harnesses as recordings: spreads and biases that the tests know."""

from pathlib import Path
from typing import Any

import numpy as np

from anatomy.chapters.harnesses.contest import standings
from tests.fakes import synthetic

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
# Of the successive estimates of a long run; those of different processes spread by SPREADS.
OWN_NOISE = 0.002
BIASES = {"do_bench mean": 0.05, "inductor": -0.03}
QUANTITY = {rival: q for q, rivals in standings.RIVALS.items() for rival in rivals}


def record(root: Path, processes: int = standings.PROCESSES, references: int = 3) -> None:
    """Save a whole comparison on the toy machine."""
    for process in range(references):
        reference(root, process=process)
    for process in range(processes):
        estimates(root, process=process)


@synthetic.makes("harnesses.reference")
def reference(root: Path, **params: Any) -> Path:
    """A recording of `harnesses.reference`."""
    return synthetic.record(root, standings.REFERENCE, _reference(), **params)


@synthetic.makes("harnesses.estimates")
def estimates(root: Path, **params: Any) -> Path:
    """A recording of `harnesses.estimates`."""
    return synthetic.record(root, standings.ESTIMATES, _estimates(params["process"]), **params)


def _reference() -> list[dict[str, Any]]:
    return [
        {
            "op": op, "quantity": quantity, "variant": "CUPTI", "median_s": time_s,
            "low_s": 0.998 * time_s, "high_s": 1.002 * time_s, "samples": 120,
            "rounds_s": [0.998 * time_s, time_s, 1.002 * time_s],
        }
        for op, time_s in WORKLOADS.items()
        for quantity in standings.RIVALS
    ]  # fmt: skip


def _estimates(process: int) -> list[dict[str, Any]]:
    generator = np.random.default_rng(process)
    rows = []

    def add(part: str, op: str, quantity: str, variant: str, **more: Any) -> None:
        named = {"part": part, "op": op, "quantity": quantity, "variant": variant}
        rows.append(named | {"cost_s": 0.31, "replicate": 0} | more)

    for op, time_s in WORKLOADS.items():
        for name, spread in SPREADS.items():
            for quantity in standings.RIVALS if name == "compare" else [QUANTITY[name]]:
                for replicate in range(3):
                    off = (1 + BIASES.get(name, 0.0)) * (1 + spread * (generator.random() - 0.5))
                    figure = time_s * off
                    own = {"low_s": 0.99 * figure, "high_s": 1.01 * figure, "rest_s": time_s}
                    add("estimate", op, quantity, name, replicate=replicate, median_s=figure,
                        **own if name == "compare" else {})  # fmt: skip
            if name == "compare":
                _long(add, generator, op, time_s)
                _pair(add, generator, "pair", op, 1.0)
    for replicate in range(3):
        _pair(add, generator, "effect", "E1 copy 250 MiB", 1.02, replicate)
    add("effect", "E1 copy 250 MiB", "gpu_cold", "do_bench mean", ratio=1.015, median_s=1e-4)
    add("overhead", "E2 spin", "gpu_cold", "compare", cost_s=0.4, wide=False, median_s=1e-4)
    return rows


def _long(add, generator, op: str, time_s: float) -> None:
    for quantity in ("gpu_cold", "gpu_warm"):
        for replicate in range(6):
            figure = time_s * (1 + OWN_NOISE * (generator.random() - 0.5))
            add("long", op, quantity, "compare", replicate=replicate, median_s=figure,
                low_s=0.997 * figure, high_s=1.003 * figure, rest_s=time_s)  # fmt: skip


def _pair(add, generator, part: str, op: str, ratio: float, replicate: int = 0) -> None:
    blocks = ratio * np.exp(0.002 * generator.standard_normal(24))
    add(
        part, op, "gpu_cold", "compare", replicate=replicate, median_s=1e-4, noise_floor=0.002,
        ratio=ratio, ratio_low=ratio - 0.001, ratio_high=ratio + 0.001,
        verdict="undecided", block_ratios=[float(f"{each:.5g}") for each in blocks],
    )  # fmt: skip


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
