"""Made-up recordings of checkpointing and accumulation, by a cost model that the tests know.

A layer keeps 16 numbers a token and channel, its boundary one. A step takes three passes; what is
run again is added, a whole pass at the most. Nothing here is measured.
"""

from pathlib import Path
from typing import Any

from tests.fakes import synthetic

# Granularity -> (what is run again, as a share of a pass; what is kept, as a share of everything).
WAYS = {
    "every layer": (0.8, 0.1),
    "every second layer": (0.4, 0.55),
    "first half": (0.4, 0.55),
    "halves of a layer": (0.9, 0.12),
    "segments": (0.9, 0.3),
    "whole model": (1.0, 1.0),
    "selective": (0.15, 0.6),
}
# Width, layers, sequences and tokens of each; the last is bound by its weights.
CELLS = (
    (2048, 2, 8, 1024),
    (2048, 4, 8, 1024),
    (2048, 8, 8, 1024),
    (1024, 4, 8, 1024),
    (2048, 4, 1, 128),
)
BATCHES = ((32, 1024), (32, 256), (32, 64))


@synthetic.makes("checkpointing.frontier")
def frontier(root: Path, **params: Any) -> Path:
    """A recording of `checkpointing.frontier`: layer by layer is the best way to its memory."""
    rows = []
    for seed, (width, depth, batch, sequence) in enumerate(CELLS):
        tokens = batch * sequence
        weights = depth * 24 * width**2
        kept = depth * 32 * width * tokens
        base_s = depth * 1e-3 * (width / 1024) ** 2
        table = synthetic.compared(
            f"train C={width} L={depth} T={batch}x{sequence}", "step_wall", base_s,
            {name: 1 + again / 3 for name, (again, _) in WAYS.items()},
            control="none", seed=seed, flops=72 * depth * tokens * width**2, limit="matmul bf16",
        )  # fmt: skip
        for row in table:
            name = row["variant"].removesuffix(" (again)")
            again, share = WAYS.get(name, (0.0, 1.0))
            peak = int(share * kept) + weights // 2
            control = kept + weights // 2
            row |= {"granularity": name, "width": width, "depth": depth, "tokens": tokens}
            row |= {"peak_bytes": peak, "total_peak_bytes": peak + weights, "dtype": "bf16"}
            row |= {"activation_bytes": int(share * kept), "reserved_bytes": 2 * peak + weights}
            row |= {"memory_ratio": peak / control, "activation_ratio": share}
            row |= {"total_memory_ratio": (peak + weights) / (control + weights)}
            row |= {"enqueue_s": 0.3 * base_s, "product_ratio": 1 + again / 3}
            row |= {"run_flops": int(row["flops"] * (1 + again / 3))}
        rows += table
    return synthetic.record(root, "checkpointing.frontier", rows, **params)


@synthetic.makes("checkpointing.traps")
def traps(root: Path, **params: Any) -> Path:
    """A recording of `checkpointing.traps`."""
    rows = [
        {"variant": name, "forwards": 2, "gradient_error": error, "gradients_missing": missing}
        | {"updates": updates, "updates_without": updates and 1, "raised": raised}
        for name, error, missing, updates, raised in (
            ("plain", 0.0, 0, None, None),
            ("dropout", 0.0, 0, None, None),
            ("dropout, state not kept", 0.9, 0, None, None),
            ("batch norm", 0.0, 0, 2, None),
            ("reentrant", 0.0, 0, None, None),
            ("reentrant, input without gradient", None, 4, None, "RuntimeError"),
            ("reentrant, autograd.grad", None, 4, None, "RuntimeError"),
            ("autograd.grad", 0.0, 0, None, None),
        )
    ]
    return synthetic.record(root, "checkpointing.traps", rows, **params)


@synthetic.makes("accumulation.gradients")
def gradients(root: Path, **params: Any) -> Path:
    """A recording of `accumulation.gradients`: exact for equal lengths, or weighted by tokens."""
    rows = []
    for lengths, off in (("equal", 0.0), ("mixed", 0.1), ("sorted", 0.3)):
        for dtype, rounding in (("fp64", 0.0), ("fp32", 1e-7), ("bf16", 4e-3)):
            place = {"dtype": dtype, "lengths": lengths, "rounding": rounding, "cosine": 1.0}
            place |= {"allowed": 2 * rounding + 1e-12, "least_tokens": 64, "most_tokens": 128}
            ways = [("full batch", 1, 0.0)]
            for steps in (2, 4, 8):
                ways += [("loss / steps", steps, off), ("weighted by tokens", steps, 0.0)]
                ways += [("mean loss", steps, steps - 1.0)]
            for variant, steps, error in ways:
                error = error or rounding * (steps > 1)
                rows.append(
                    {"variant": variant, "steps": steps} | place | {"gradient_error": error}
                )
    return synthetic.record(root, "accumulation.gradients", rows, **params)


@synthetic.makes("accumulation.steps")
def steps(root: Path, **params: Any) -> Path:
    """A recording of `accumulation.steps`: cheap where micro-batches are still large."""
    rows = []
    for seed, (batch, length) in enumerate(BATCHES):
        tokens = batch * length
        slow = 0.01 if tokens > 8192 else 0.9  # of each further step
        counts = {"2 steps": 2, "4 steps": 4, "8 steps": 8}
        slower = {name: 1 + slow * (count - 1) for name, count in counts.items()}
        table = synthetic.compared(
            f"train {batch} sequences of {length}", "step_wall", 1e-6 * tokens,
            slower | {"every layer checkpointed": 1.25},
            control="full batch", seed=seed, limit="matmul bf16", flops=10**6 * tokens,
        )  # fmt: skip
        for row in table:
            name = row["variant"].removesuffix(" (again)")
            count = counts.get(name, 1)
            share = 0.2 if "checkpointed" in name else 1 / count
            row |= {"steps": count, "step_tokens": tokens // count, "tokens": tokens}
            row |= {
                "enqueue_s": 1e-3 * count,
                "width": 1024,
                "dtype": "bf16",
                "memory_ratio": share,
            }
            row |= {"peak_bytes": int(share * 2**17 * tokens), "reserved_bytes": 2**18 * tokens}
            row |= {"total_peak_bytes": int(share * 2**17 * tokens) + 2**27}
        rows += table
    return synthetic.record(root, "accumulation.steps", rows, **params)
