"""One large matrix product alone after a rest, and the same for seconds without one. A card at its
power cap lowers its clock, so that what a single call reaches an hour of them does not."""

import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import torch

from anatomy.measure.stopwatch import Stopwatch
from anatomy.numerics import agreement
from anatomy.table import formulas

ALONE, IN_A_ROW = "after a rest", "in a row"
RESTS, REST_S = 12, 0.25  # products that come after a rest each, and how long it is
# Products are timed in windows of this, long against a launch and a reading of the card's clocks.
WINDOW_S = 0.05
HOLD_S = 1e-3  # of sleep on the device that hides the launch of a product alone


def products(op: str, side: int, seconds: float, watch: Stopwatch) -> Iterator[dict[str, Any]]:
    """A row of the products that had a rest, and one for each window of those that had none."""
    a, b = (torch.randn(side, side, device=watch.device).to(torch.float16) for _ in range(2))
    y = torch.empty_like(a)

    def call() -> torch.Tensor:
        return torch.mm(a, b, out=y)

    agreement.check({op: call}, {op: lambda: a.double() @ b.double()}, None)
    known = {"op": op, "role": "variant", "quantity": "gpu_warm", "device": watch.device.type}
    known |= {"flops": formulas.matmul_flops(side, side, side), "limit": "matmul fp16"}

    def row(variant: str, after_s: float, taken: list[float], method: str) -> dict[str, Any]:
        seen = watch.conditions() or {}
        return known | {
            "variant": variant,
            "after_s": after_s,
            "median_s": median(taken),
            "blocks_s": taken,
            "samples": len(taken),
            "method": method,
            "sm_clock_mhz": seen.get("sm_clock_mhz"),
            "power_w": seen.get("power_w"),
        }

    alone = []
    for _ in range(RESTS):
        watch.drain()
        time.sleep(REST_S)
        (span,), _ = watch.spans([call], cold=False, hold_s=HOLD_S)
        alone.append(max(span - watch.calibration.clock_s, 1e-9))
    yield row(ALONE, 0.0, alone, f"event pair around each product, {REST_S:g} s after the last")

    calls = max(1, round(WINDOW_S / median(alone)))
    begun = watch.now()
    while watch.now() - begun < seconds:
        total, _ = watch.batch([call] * calls, hold_s=0.0)
        after_s = watch.now() - begun
        yield row(IN_A_ROW, after_s, [total / calls], f"event pair around {calls} in a row")
