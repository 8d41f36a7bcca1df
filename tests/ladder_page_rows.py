"""Made-up recordings of the ladder's training step, for the pages that show it.

Rung 3 makes a step slower where the model is wide, and one recipe of rung 4 can't run.
"""

from pathlib import Path
from typing import Any

import synthetic

FORWARD_BACKWARD, WITH_OPTIMIZER = "forward and backward", "with AdamW"
# Way -> rung's script, number format of its products, time over rung 0's, seconds of the first
# step, kernels of a step.
WAYS = {
    "0 fp32": ("0_baseline", "fp32", 1.0, 0.4, 320),
    "1 amp bf16": ("1_cublas", "bf16", 0.30, 0.3, 420),
    "1 amp fp16": ("1_cublas", "fp16", 0.31, 0.3, 424),
    "1 tf32": ("1_cublas", "tf32", 0.45, 0.2, 320),
    "2 amp bf16": ("2_sdpa", "bf16", 0.20, 0.2, 380),
    "3 default": ("3_compile", "bf16", 0.14, 12.0, 150),
    "3 reduce-overhead": ("3_compile", "bf16", 0.13, 13.0, 150),
    "4 current": ("4_transformer_engine", "fp8", 0.12, 1.1, 300),
    "4 delayed": ("4_transformer_engine", "fp8", 0.13, 1.2, 320),
    "4 bf16": ("4_transformer_engine", "bf16", 0.15, 1.0, 200),
    "5 bf16 without a graph": ("5_fastest", "bf16", 0.125, 13.0, 130),
    "5 fp8 without a graph": ("5_fastest", "fp8", 0.115, 17.0, 190),
    "5 bf16": ("5_fastest", "bf16", 0.115, 14.0, 130),
    "5 fp8": ("5_fastest", "fp8", 0.10, 18.0, 190),
}
BLOCK = ("4 block", "4_transformer_engine", "void: its loss strays 0.4 from rung 0's; 0.016 is")
ERRORS = {"fp32": (0.0, 0.0), "tf32": (1e-5, 4e-4), "fp16": (1e-5, 5e-4), "bf16": (8e-5, 4e-3)}
ERRORS["fp8"] = (6e-4, 5e-2)
GRAPHS = ("3 reduce-overhead", "5 bf16", "5 fp8")
# Shares of the busy time by kind of kernel: before and after attention is fused.
SHARES = {True: (0.35, 0.35, 0.27, 0.03), False: (0.62, 0.14, 0.22, 0.02)}
# What the card multiplies at best.
BF16_PER_S, FP8_PER_S = 760e12, 1400e12
RUNG_0_PER_S = 40e12


def flops_of(width: int, layers: int, batch: int, sequence: int) -> int:
    """Of the products of a training step."""
    return 3 * layers * batch * sequence * (24 * width**2 + 4 * width * sequence)


def training(
    root: Path,
    width: int = 1024,
    layers: int = 2,
    **params: Any,
) -> Path:
    """A recording of `ladder.training`."""
    size = {"width": width, "layers": layers, "batch": 8, "sequence": 1024}
    work = flops_of(**size)
    ratios = {way: told[2] for way, told in WAYS.items()}
    if width >= 4096:
        ratios |= {"3 default": 0.22, "5 bf16": 0.055, "5 fp8": 0.04}
    rows = [*_ceiling("bf16", BF16_PER_S), *_ceiling("fp8", FP8_PER_S)]
    rows.append(
        {"op": "first call", "variant": "compiler, first call", "role": "variant"}
        | {"quantity": "step_wall", "median_s": 1.5, "samples": 1, "blocks_s": [1.5]}
    )
    for seed, op in enumerate((FORWARD_BACKWARD, WITH_OPTIMIZER)):
        base = work / RUNG_0_PER_S * (1.1 if seed else 1.0)
        table = synthetic.compared(
            op,
            "step_wall",
            base,
            {way: ratio for way, ratio in ratios.items() if ratio != 1.0},
            control="0 fp32",
            seed=seed,
            flops=work,
        )
        rows += [row | _told(row, op, base) for row in table]
        rows.append(
            {"op": op, "variant": BLOCK[0], "role": "variant", "quantity": "step_wall"}
            | {"rung": BLOCK[1], "way": "block", "products": "fp8", "note": f"{BLOCK[2]} allowed"}
        )
    for row in rows:
        row |= size
    return synthetic.record(root, "ladder.training", rows, width=width, layers=layers, **params)


def _told(row: dict, op: str, base: float) -> dict[str, Any]:
    name = row["variant"].removesuffix(" (again)")
    rung, kind, _, setup, kernels = WAYS[name]
    loss, gradients = ERRORS[kind]
    busy = row["median_s"] * (0.97 if name in GRAPHS else 0.85)
    told = {
        "rung": rung,
        "way": name[2:],
        "limit": f"matmul {kind}",
        "products": kind,
        "loss_error": loss,
        "gradient_error": gradients,
        "parameters": 50_000_000,
        "counted_flops": row["flops"],
        "backend": None if rung in ("0_baseline", "1_cublas") else "flash",
        "setup_s": setup,
        "peak_bytes": None if name in GRAPHS else 2**33 if rung[0] in "01" else 2**32,
        "total_peak_bytes": None if name in GRAPHS else 2**34,
        "reserved_bytes": 2**35,
        "kernels_per_call": kernels,
    }
    saved = base - row["median_s"]
    pays = row["role"] == "variant" and saved > 0
    told["uses"] = setup / saved if pays else None
    told |= {"uses_low": 0.99 * setup / saved, "uses_high": 1.01 * setup / saved} if pays else {}
    best = {"bf16": BF16_PER_S, "fp8": FP8_PER_S}.get(kind)
    told["share_of_ceiling"] = row["flops"] / row["median_s"] / best if best else None
    if op == FORWARD_BACKWARD:
        shares = SHARES[rung in ("0_baseline", "1_cublas")]
        names = ("product_s", "attention_s", "pointwise_s", "other_s")
        told |= {n: busy * share for n, share in zip(names, shares, strict=True)}
        told |= {"busy_s": busy, "gap_s": row["median_s"] - busy}
        told["kernel_seconds"] = [
            ["nvjet_tst_128x256_64x4_1x2_h_bz_TNT", "product", 24, busy * shares[0]],
            ["void flash_fwd_kernel<bf16>(Flash_fwd_params)", "attention", 4, busy * shares[1]],
            ["triton_poi_fused_gelu_0", "pointwise", 8, busy * shares[2]],
        ]
    return told


def _ceiling(products: str, per_s: float) -> list[dict]:
    """Products of one number format, one of them the best that the card does."""
    sides = {"8192 x 4096 x 1024": 0.8, "8192 x 8192 x 8192": 1.0, "16384 x 8192 x 8192": 0.98}
    work = dict.fromkeys(sides, 2.0)
    for name in sides:
        for side in name.split(" x "):
            work[name] *= int(side)
    first, *others = sides
    base = work[first] / (per_s * sides[first])
    table = synthetic.compared(
        f"ceiling {products}",
        "gpu_warm",
        base,
        {name: work[name] / (per_s * sides[name]) / base for name in others},
        control=first,
        seed=7,
        limit=f"matmul {products}",
        products=products,
    )
    return [row | {"flops": work[row["variant"].removesuffix(" (again)")]} for row in table]
