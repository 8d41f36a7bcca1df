"""Made-up recordings of measuring: what each way adds, and samples with a drift and noise."""

from pathlib import Path
from typing import Any

import numpy as np

from tests.fakes import synthetic

# Time of each way over the careful one's, by operation.
WAYS = {
    "GEMM": {
        "perf_counter, no wait": 0.05,
        "perf_counter, a wait a call": 1.1,
        "perf_counter, one wait": 1.02,
        "events, one call": 1.04,
        "events, many calls": 1.01,
    },
    "addition": {
        "perf_counter, no wait": 3.0,
        "perf_counter, a wait a call": 8.0,
        "perf_counter, one wait": 2.5,
        "events, one call": 4.0,
        "events, many calls": 2.5,
    },
    "copy": {"back to back": 0.6},
    "values": {"zeros": 0.8},
}
CONTROLS = {"copy": "cache flushed", "values": "random"}
# Of the samples: a slow drift as a share of the whole run, and noise.
DRIFT, NOISE, SAMPLES = 0.2, 0.01, 960


@synthetic.makes("timing.ways")
def ways(root: Path, **params: Any) -> Path:
    """A recording of `timing.ways`."""
    rows = []
    for op, slower in WAYS.items():
        quantity = "gpu_cold" if op == "copy" else "gpu_warm"
        control = CONTROLS.get(op, "events behind a sleep")
        moved = {"bytes": 2**24} if op == "copy" else {}
        rows += synthetic.compared(op, quantity, 2e-4, slower, control=control, **moved)
    for row in rows:
        row["launch_inclusive"] = row["op"] not in CONTROLS and row["role"] == "variant"
    return synthetic.record(root, "timing.ways", rows, **params)


@synthetic.makes("timing.equals")
def equals(root: Path, **params: Any) -> Path:
    """A recording of `timing.equals`, with samples as they are kept."""
    noise, rows = np.random.default_rng(0), []
    for op, quantity in {"GEMM": "gpu_warm", "addition": "step_wall"}.items():
        along = 1 + DRIFT * np.arange(SAMPLES) / SAMPLES
        taken = 1e-3 * along * np.exp(NOISE * noise.standard_normal(SAMPLES))
        told = {"op": op, "role": "variant", "quantity": quantity, "device": "cuda"}
        kept = [float(f"{each:.5g}") for each in taken]
        rows.append(told | {"variant": "samples", "samples_s": kept, "samples": SAMPLES})
        named = ("one sample each", "one after the other", "in turn")
        rows += [told | {"variant": name, "blocks": None} for name in named]
        rows += [told | {"variant": f"{n} blocks", "blocks": n} for n in (6, 12, 24, 48, 96)]
    return synthetic.record(root, "timing.equals", rows, **params)
