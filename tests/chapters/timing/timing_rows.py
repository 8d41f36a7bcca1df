"""Made-up recordings of measuring: what each way adds, and samples with a drift and noise."""

from pathlib import Path
from typing import Any

import numpy as np

from anatomy.chapters.timing.timing import COUNTS, LAUNCHING, NAMED, QUANTITIES
from tests.fakes import synthetic

# Time of each way over the control's, by operation.
SLOWER = {"GEMM": (0.05, 1.1, 1.02, 1.04, 1.01), "addition": (3.0, 8.0, 2.5, 4.0, 2.5)}
SLOWER |= {"copy": (0.6,), "values": (0.8,)}
# Of the samples: a slow drift as a share of the whole run, and noise.
DRIFT, NOISE, SAMPLES = 0.2, 0.01, 960


@synthetic.makes("timing.ways")
def ways(root: Path, **params: Any) -> Path:
    """A recording of `timing.ways`."""
    rows = []
    for op, (control, *others) in NAMED.items():
        slower = dict(zip(others, SLOWER[op], strict=True))
        own = {"quantity": "gpu_cold", "bytes": 2**24} if op == "copy" else {"quantity": "gpu_warm"}
        rows += synthetic.compared(op, base_s=2e-4, slowdowns=slower, control=control, **own)
    for row in rows:
        row["launch_inclusive"] = row["variant"] in LAUNCHING
    return synthetic.record(root, "timing.ways", rows, **params)


@synthetic.makes("timing.equals")
def equals(root: Path, **params: Any) -> Path:
    """A recording of `timing.equals`, with samples as they are kept."""
    noise, rows = np.random.default_rng(0), []
    for op, quantity in QUANTITIES.items():
        along = 1 + DRIFT * np.arange(SAMPLES) / SAMPLES
        taken = 1e-3 * along * np.exp(NOISE * noise.standard_normal(SAMPLES))
        told = {"op": op, "role": "variant", "quantity": quantity, "device": "cuda"}
        own = [told | {"variant": name, "blocks": count} for name, count in COUNTS.items()]
        own[0] |= {"samples_s": [float(f"{each:.5g}") for each in taken], "samples": SAMPLES}
        rows += own
    return synthetic.record(root, "timing.equals", rows, **params)
