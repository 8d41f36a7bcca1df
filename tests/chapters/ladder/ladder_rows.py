"""Made-up recordings of the ladder's training step, with all that its claims read.

Rung 3 makes a step slower where the model is wide, and one recipe of rung 4 is void. The kernels
have names as an H200 gives them.
"""

from pathlib import Path
from typing import Any

from anatomy.chapters.ladder import requirements, rungs
from anatomy.table import intervals
from tests.fakes import synthetic

FORWARD_BACKWARD, WITH_ADAMW = "forward and backward", "with AdamW"
# Way -> time over rung 0's.
RATIOS = {
    "1 amp bf16": 0.30,
    "1 amp fp16": 0.33,
    "1 tf32": 0.45,
    "2 amp bf16": 0.20,
    "3 default": 0.14,
    "3 reduce-overhead": 0.12,
    "4 current": 0.10,
    "4 delayed": 0.11,
    "4 bf16": 0.15,
    "4 current in a graph": 0.096,
    "4 delayed in a graph": 0.095,
    "5 bf16": 0.115,
    "5 fp8": 0.09,
    "5 fp8 delayed": 0.085,
    "5 bf16 without a graph": 0.13,
    "5 fp8 without a graph": 0.12,
    "5 fp8 delayed without a graph": 0.115,
}
# The same where the model is wide.
WIDE = {
    "3 default": 0.22,
    "3 reduce-overhead": 0.22,
    "5 bf16": 0.055,
    "5 fp8": 0.04,
    "5 fp8 delayed": 0.038,
}
VOID = {"4 block": "void: its gradients stray 0.4 from rung 0's; 0.25 is allowed"}
SETUP_S = {"0": 0.1, "1": 0.05, "2": 0.04, "3": 4.0, "4": 1.0, "5": 5.0}
# Rung -> kernels of a step.
KERNELS = {"0": 160, "1": 220, "2": 200, "3": 96, "4": 150, "5": 90}
PEAK_BYTES = {"0": 2**34, "1": 2**33, "2": 2**32, "3": 2**31, "4": 2**31, "5": 2**31}
PRODUCTS = {
    "fp32": "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(Params)",
    "bf16": "nvjet_tst_128x256_64x4_1x2_h_bz_TNT",
}
ATTENTION = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits>(Flash_fwd_params)"
TRITON = ("triton_per_fused__to_copy_add_native_layer_norm_0", "triton_poi_fused__to_copy_gelu_1")
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4>(int, float)"
CEILINGS = {"fp32": 45e12, "tf32": 400e12, "fp16": 760e12, "bf16": 760e12, "fp8": 1400e12}
RUNG_0_FLOPS_PER_S = 40e12


def kernel_seconds(label: str) -> list[list]:
    """[name, kind, launches, seconds] of a way's step."""
    rung = label[0]
    product = PRODUCTS["fp32" if rung == "0" else "bf16"]
    pointwise = TRITON if rung in "35" else (ELEMENTWISE,)
    attention = PRODUCTS["bf16"] if rung in "01" else ATTENTION
    return [
        [product, "product", 24, 2e-3],
        [attention, "attention", 4, 1e-3],
        *([name, "pointwise", 8, 5e-4] for name in pointwise),
    ]


@synthetic.makes("ladder.training")
def training(
    root: Path,
    width: int = 1024,
    layers: int = 2,
    batch: int = 0,
    sequence: int = 1024,
    **params: Any,
) -> Path:
    """A recording of `ladder.training`."""
    sequences = batch or requirements.batch_of(width)
    tokens = sequences * sequence
    work = 3 * layers * tokens * (24 * width**2 + 4 * width * sequence)
    rows = [row for products, rate in CEILINGS.items() for row in _ceiling(products, rate)]
    rows.append(
        {"op": "first call", "variant": "compiler, first call", "role": "variant"}
        | {"quantity": "step_wall", "median_s": 1.5, "samples": 1, "blocks_s": [1.5]}
        | {"gpu_code": "triton", "cpu_code": "cpp"}
    )
    for seed, op in enumerate((FORWARD_BACKWARD, WITH_ADAMW)):
        ratios = RATIOS | (WIDE if width >= 4096 else {})
        if op == WITH_ADAMW:
            ratios = {name: r for name, r in ratios.items() if rungs.BY_LABEL[name].adamw}
        base = work / RUNG_0_FLOPS_PER_S * (1.1 if seed else 1.0)
        table = synthetic.compared(
            op, "step_wall", base, ratios, control="0 fp32", seed=seed, flops=work
        )
        blocks = {row["variant"]: row["blocks_s"] for row in table}
        rows += [row | _told(row, blocks, op) for row in table]
        for label, why in VOID.items():
            if op == FORWARD_BACKWARD or rungs.BY_LABEL[label].adamw:
                told = {"op": op, "variant": label, "role": "variant", "quantity": "step_wall"}
                rows.append(told | rungs.BY_LABEL[label].columns | {"note": why})
    size = {"width": width, "layers": layers, "batch": sequences, "sequence": sequence}
    rows = [row | size for row in rows]
    asked = {"width": width, "layers": layers, "batch": batch, "sequence": sequence}
    return synthetic.record(root, "ladder.training", rows, **asked, **params)


def _told(row: dict, blocks: dict[str, list[float]], op: str) -> dict[str, Any]:
    label = row["variant"].removesuffix(" (again)")
    way, rung = rungs.BY_LABEL[label], label[0]
    first = op == FORWARD_BACKWARD
    busy = 0.9 * row["median_s"]
    told = way.columns | {
        "limit": f"matmul {way.products}",
        "loss_error": 0.0 if rung == "0" else 1e-4,
        "gradient_error": 0.0 if rung == "0" else 4e-3,
        "parameters": 25_174_016,
        "counted_flops": row["flops"],
        "recomputed_flops": 0,
        "counted_by": "FlopCounterMode",
        "backend": "written out" if rung in "01" else "flash",
        "backend_by": "its kernels",
        "setup_s": SETUP_S[rung],
        "graphs": 1 if rung in "35" else None,
        "share_of_ceiling": row["flops"] / row["median_s"] / CEILINGS[way.products],
        "peak_bytes": PEAK_BYTES[rung] if first and not way.graph else None,
        "total_peak_bytes": 2 * PEAK_BYTES[rung] if first and not way.graph else None,
        "reserved_bytes": 3 * PEAK_BYTES[rung] if first else None,
        "kernels_per_call": KERNELS[rung] if first else None,
        "kernel_seconds": kernel_seconds(label) if first else None,
        "busy_s": busy if first else None,
        "gap_s": row["median_s"] - busy if first else None,
        "enqueue_s": 0.5 * row["median_s"],
    }
    if way.delayed and not way.graph:
        told |= {"first_gradient_error": 1.0, "settled_at": 3}
    shares = {"product_s": 0.6, "attention_s": 0.2, "pointwise_s": 0.15, "other_s": 0.05}
    told |= {name: busy * share if first else None for name, share in shares.items()}
    before = way.rung.builds_on and way.rung.builds_on.label
    if row["role"] == "again" or before not in blocks:
        return told
    ratio = intervals.ratio_interval(row["blocks_s"], blocks[before])
    word = intervals.verdict(ratio, row["noise_floor"])
    told |= {"before": before, "verdict_before": word, "pays": word == "faster"}
    told |= {"ratio_before": ratio.median, "ratio_before_low": ratio.low}
    told |= {"ratio_before_high": ratio.high}
    if word == "faster":
        cost = max(0.0, SETUP_S[rung] - SETUP_S[before[0]])
        uses = intervals.break_even(cost, blocks[before], row["blocks_s"])
        told |= {"uses": uses.median, "uses_low": uses.low, "uses_high": uses.high}
    return told


def _ceiling(products: str, rate: float) -> list[dict]:
    """A comparison of two products of one number format."""
    work = 2 * 8192**3
    return synthetic.compared(
        f"ceiling {products}",
        "gpu_warm",
        work / rate,
        {"16384 x 8192 x 4096": 1.02, "4096 x 4096 x 16384": 1.03},
        control="8192 x 8192 x 8192",
        seed=7,
        flops=work,
        limit=f"matmul {products}",
        products=products,
    )
