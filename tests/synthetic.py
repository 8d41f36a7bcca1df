"""Synthetic recordings of a machine that does not exist, for tests of everything that reads.

The times follow from a rule that the tests know; the noise is drawn from a fixed seed. They are
saved by `recording.save`, so they pass the same checks as real ones, and they go into a temporary
folder, never under recordings/.
"""

from pathlib import Path
from typing import Any

import numpy as np

from anatomy import counts, intervals, recording, signatures
from anatomy.codehash import code_hash

MACHINE = "toy-gpu"
BLOCKS = 24
FLOPS_PER_S = {"fp16": 800e12, "bf16": 790e12, "tf32": 400e12, "fp32": 50e12}
BYTES_PER_S = 4e12
ITEM_BYTES = {"fp16": 2, "bf16": 2, "tf32": 4, "fp32": 4}
# Time of a variant over the control's, by operation; the rule that the tests rely on.
SLOWDOWN = {
    "transposed_view": {"matmul": 1.0, "layer_norm": 2.5, "layer_norm_chain": 1.0},
    "sliced_offset_view": {"matmul": 2.0, "layer_norm": 1.05, "layer_norm_chain": 1.1},
    "as_strided_view": {"matmul": 0.65, "layer_norm": 0.8, "layer_norm_chain": 0.6},
    "transposed_contig_copy": {"matmul": 1.0, "layer_norm": 1.0, "layer_norm_chain": 1.0},
    "contiguous_half": {"matmul": 0.5, "layer_norm": 0.5, "layer_norm_chain": 0.5},
}
KERNELS = {
    "matmul": ["sm90_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize128x128x64_warpgroupsize1x1x1"],
    "layer_norm": [
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::Half, float>"
        "(int, float, c10::Half const*, c10::Half const*, c10::Half const*, float*, float*)"
    ],
    "layer_norm_chain": [
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<c10::Half>>(...)",
        "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl>(int, ...)",
        "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl>(int, ...)",
    ],
}


def record(root: Path, name: str, rows: list[dict], **params: Any) -> Path:
    """Save rows as the recording of one call on the toy machine."""
    wanted = signatures.signature(name).bind(**params)
    hashed = code_hash(name, wanted)
    floors = {
        f"{row['op']} {row['quantity']}": row["noise_floor"]
        for row in rows
        if row.get("noise_floor") is not None
    }
    reading = {
        "sm_clock_mhz": 1755,
        "memory_clock_mhz": 3201,
        "power_w": 402.5,
        "temperature_c": 41,
    }
    return recording.save(
        {
            "experiment": name,
            "params": wanted,
            "machine": {
                "slug": MACHINE,
                "gpu": "Toy GPU",
                "count": 1,
                "capability": "9.0",
                "sm_count": 4,
                "memory_bytes": 2**33,
                "l2_bytes": 2**22,
                "card": "0123456789ab",
                "driver": "580.1",
                "cpu": "Toy CPU",
            },
            "software": {"python": "3.12.1", "torch": "2.13.0+cu130", "cuda": "13.0"},
            "method": {"blocks": BLOCKS},
            "code": {
                "hash": hashed.hash,
                "files": list(hashed.files),
                "commit": "0123456789abcdef",
                "dirty": False,
            },
            "started_at": "2026-11-21T10:00:00+00:00",
            "seconds": 12.5,
            "conditions": {"before": reading, "after": reading | {"power_w": 655.0}},
            "noise_floor": floors,
            "rows": rows,
            "warnings": [],
        },
        root,
    )


def compared(
    op: str,
    quantity: str,
    base_s: float,
    slowdowns: dict[str, float],
    *,
    control: str = "contiguous",
    against: dict[str, str] | None = None,
    seed: int = 0,
    **common: Any,
) -> list[dict]:
    """Rows as `compare` makes them: interleaved blocks around `base_s` times a slowdown."""
    noise = np.random.default_rng(seed)
    drift = 1 + 0.01 * noise.standard_normal(BLOCKS)
    names = [control, *slowdowns, f"{control} (again)"]
    factors = [1.0, *slowdowns.values(), 1.0]
    blocks = {
        name: base_s * factor * drift * (1 + 0.002 * noise.standard_normal(BLOCKS))
        for name, factor in zip(names, factors, strict=True)
    }
    floor = intervals.noise_floor(
        intervals.ratio_interval(blocks[f"{control} (again)"], blocks[control])
    )
    rows = []
    for name in names:
        middle = intervals.median_interval(blocks[name])
        facing = (against or {}).get(name, control)
        row = {
            "op": op,
            "variant": name,
            "role": "control" if name == control else "again" if "again" in name else "variant",
            "control": None if name == control else facing,
            "quantity": quantity,
            "median_s": middle.median,
            "low_s": middle.low,
            "high_s": middle.high,
            "samples": 10 * BLOCKS,
            "blocks_s": [float(f"{value:.6g}") for value in blocks[name]],
            "noise_floor": floor,
            "ratio": None,
            "verdict": "control",
            "throttle": "power-limited" if op == "matmul" else "none",
            "regime": "kernel-bound",
            "wide": False,
            "launch_inclusive": False,
            "sm_clock_mhz": 1700.0 + 5 * len(rows),
            "power_w": 640.0,
            "temperature_c": 44.0,
            "note": None,
        } | common
        if name != control:
            ratio = intervals.ratio_interval(blocks[name], blocks[facing])
            row |= {"ratio": ratio.median, "ratio_low": ratio.low, "ratio_high": ratio.high}
            row["verdict"] = (
                "again" if row["role"] == "again" else intervals.verdict(ratio, floor, processes=3)
            )
        rows.append(row)
    return rows


def bench(root: Path, dtype: str = "fp16", size: int = 4096) -> Path:
    """A recording of `contiguity.bench` for square matrices."""
    rows, item = [], ITEM_BYTES[dtype]
    for number, op in enumerate(("matmul", "layer_norm", "layer_norm_chain")):
        moved = counts.layer_norm_bytes(size, size, item)
        work = counts.matmul_flops(size, size, size)
        passes = 6 if op == "layer_norm_chain" else 1
        base = work / FLOPS_PER_S[dtype] if op == "matmul" else passes * moved / BYTES_PER_S
        for quantity in ("gpu_warm", "gpu_cold"):
            rows += compared(
                op,
                quantity,
                base * (1.05 if quantity == "gpu_cold" else 1.0),
                {name: by_op[op] for name, by_op in SLOWDOWN.items()},
                against={"as_strided_view": "contiguous_half"},
                seed=number,
                flops=work if op == "matmul" else None,
                bytes=counts.matmul_bytes(size, size, size, item) if op == "matmul" else moved,
                limit=f"matmul {dtype}" if op == "matmul" else "copy",
                kernels=KERNELS[op],
                kernels_per_call=len(KERNELS[op]),
            )
    return record(root, "contiguity.bench", rows, dtype=dtype, m=size, n=size, k=size)


def layouts(root: Path, size: int = 4096) -> Path:
    """A recording of `tensor_layout.report`, which has no times."""
    strides = {"contiguous": [size, 1], "transposed_view": [1, size]}
    rows = [
        {
            "variant": name,
            "shape": [size, size],
            "strides": strides.get(name, [size, 1]),
            "storage_offset": int(name == "sliced_offset_view"),
            "offset_bytes": 2 * int(name == "sliced_offset_view"),
            "base_mod_128": 2 * int(name == "sliced_offset_view"),
            "is_contiguous": name in ("contiguous", "transposed_contig_copy"),
            "is_view": name not in ("contiguous", "transposed_contig_copy"),
        }
        for name in ("contiguous", "transposed_view", "sliced_offset_view", "as_strided_view")
    ]
    return record(root, "tensor_layout.report", rows, m=size, k=size)


def thresholds(root: Path, op: str = "matmul") -> Path:
    """A recording of `alignment.thresholds`: K costs below 16 bytes, nothing else does."""
    slowdowns = {
        f"{factor} {step} B": 2.0 if factor == "k" and step < 16 else 1.0
        for step in (2, 4, 8, 16, 32, 64, 128)
        for factor in ("base", "ld", "k")
    }
    size = 4096
    rows = compared(
        op,
        "gpu_cold",
        counts.matmul_flops(size, size, size) / FLOPS_PER_S["fp16"],
        slowdowns,
        control="aligned",
        flops=counts.matmul_flops(size, size, size),
        limit="matmul fp16",
    )
    for row in rows:
        factor, _, step = row["variant"].removesuffix(" B").partition(" ")
        swept = step.isdigit()
        row |= {
            "factor": factor if swept else "aligned",
            "alignment_bytes": int(step) if swept else None,
        }
    return record(root, "alignment.thresholds", rows, op=op)


def ceilings(root: Path) -> Path:
    """A recording of `limits.ceilings`: what the toy machine can do at most."""
    rows = []
    for name in ("copy", "read"):
        rows += compared(name, "gpu_cold", 2**31 / BYTES_PER_S, {}, bytes=2**31, limit=name)[:1]
    for dtype, peak in FLOPS_PER_S.items():
        work = counts.matmul_flops(8192, 8192, 8192)
        limit = f"matmul {dtype}"
        rows += compared(limit, "gpu_warm", work / peak, {}, flops=work, limit=limit)[:1]
    return record(root, "limits.ceilings", rows)


def everything(root: Path) -> Path:
    """All recordings that the tests' pages show."""
    for dtype in FLOPS_PER_S:
        for size in (2048, 4096, 8192):
            bench(root, dtype, size)
    layouts(root)
    for op in ("matmul", "layer_norm"):
        thresholds(root, op)
    if "limits.ceilings" in signatures.experiments():
        ceilings(root)
    return root
