"""Made-up recordings of the ladder without gradients, over sizes, and of its compiler.

Graphs pay where a step waits for its host, FP8 where its products are long.
"""

from pathlib import Path
from typing import Any

from tests.fakes import synthetic

# Way -> number format, time over rung 0's in the forward pass and in decoding, seconds of the first
# calls.
WAYS = {
    "0 fp32": ("fp32", 1.0, 1.0, 0.1),
    "1 amp bf16": ("bf16", 0.3, 1.6, 0.2),
    "1 amp fp16": ("fp16", 0.31, 1.6, 0.2),
    "1 tf32": ("tf32", 0.5, 1.0, 0.1),
    "2 amp bf16": ("bf16", 0.2, 1.4, 0.2),
    "3 default": ("bf16", 0.15, 0.9, 3.0),
    "3 reduce-overhead": ("bf16", 0.14, 0.5, 3.5),
    "4 current": ("fp8", 0.13, None, 1.0),
    "5 bf16": ("bf16", 0.12, 0.2, 3.1),
    "5 fp8": ("fp8", 0.08, 0.15, 3.6),
    "5 fp8 delayed": ("fp8", 0.07, 0.14, 3.8),
    "5 bf16 without a graph": ("bf16", 0.13, 0.7, 3.0),
    "5 fp8 without a graph": ("fp8", 0.10, 0.8, 3.5),
    "5 fp8 delayed without a graph": ("fp8", 0.09, 0.8, 3.7),
}
SCRIPTS = ("0_baseline", "1_cublas", "2_sdpa", "3_compile", "4_transformer_engine", "5_fastest")
GRAPHS = ("3 reduce-overhead", "5 bf16", "5 fp8", "5 fp8 delayed")
ERRORS = {"fp32": 0.0, "tf32": 3e-4, "fp16": 6e-4, "bf16": 5e-3, "fp8": 6e-2}
ITEM_BYTES = {"fp32": 4, "tf32": 4, "fp16": 4, "bf16": 4, "fp8": 1}
SHARES = {"product_s": 0.5, "attention_s": 0.2, "pointwise_s": 0.25, "other_s": 0.05}
NO_CACHE = "NotImplementedError: Transformer Engine keeps keys and values in a form of its own."
# (width, batch) -> time over compiled bf16, by way.
CELLS = {
    (1024, 1): {
        "5 fp8 without a graph": 1.5,
        "4 current": 1.4,
        "5 bf16": 0.4,
        "5 fp8": 0.45,
        "5 fp8 delayed": 0.40,
    },
    (4096, 1): {
        "5 fp8 without a graph": 1.2,
        "4 current": 1.1,
        "5 bf16": 0.6,
        "5 fp8": 0.5,
        "5 fp8 delayed": 0.45,
    },
    (1024, 8): {
        "5 fp8 without a graph": 1.3,
        "4 current": 1.2,
        "5 bf16": 0.7,
        "5 fp8": 0.75,
        "5 fp8 delayed": 0.70,
    },
    (2048, 8): {
        "5 fp8 without a graph": 0.9,
        "4 current": 0.95,
        "5 bf16": 0.95,
        "5 fp8": 0.8,
        "5 fp8 delayed": 0.75,
    },
    (4096, 8): {
        "5 fp8 without a graph": 0.7,
        "4 current": 0.75,
        "5 bf16": 0.98,
        "5 fp8": 0.65,
        "5 fp8 delayed": 0.60,
    },
}


@synthetic.makes("ladder.inference")
def inference(root: Path, **params: Any) -> Path:
    """A recording of `ladder.inference`."""
    return synthetic.record(root, "ladder.inference", _forward("forward", 1, 0.02), **params)


@synthetic.makes("ladder.decoding")
def decoding(root: Path, **params: Any) -> Path:
    """A recording of `ladder.decoding`."""
    return synthetic.record(root, "ladder.decoding", _forward("decoding", 2, 8e-4), **params)


def _forward(op: str, place: int, base_s: float) -> list[dict]:
    ratios = {way: told[place] for way, told in WAYS.items() if told[place] and way != "0 fp32"}
    rows = synthetic.compared(op, "step_wall", base_s, ratios, control="0 fp32", flops=10**9)
    for row in rows:
        way = row["variant"].removesuffix(" (again)")
        kind, setup_s = WAYS[way][0], WAYS[way][3]
        weights = 100_000_000 * (2 if "5 bf16" in way else ITEM_BYTES[kind])
        row |= _of(way) | {"products": kind, "setup_s": setup_s, "output_error": ERRORS[kind]}
        row |= {"weight_bytes": weights, "kv_bytes": 6 * 10**7 if op == "decoding" else 0}
        row |= {"limit": "read" if op == "decoding" else f"matmul {kind}", "backend": None}
        row |= {"bytes": weights + 6 * 10**7 if op == "decoding" else None}
        busy = row["median_s"] * (0.95 if way in GRAPHS else 0.5)
        row |= {name: share * busy for name, share in SHARES.items()} | {"busy_s": busy}
        row |= {"gap_s": row["median_s"] - busy, "kernels_per_call": 90, "kernels": None}
        row["kernel_seconds"] = [["triton_poi_fused_gelu_0", "pointwise", 8, 0.25 * busy]]
        saved = base_s - row["median_s"]
        row["uses"] = (
            setup_s / saved if row["role"] == "variant" and saved > 0.01 * base_s else None
        )
        row |= {"peak_bytes": None if way in GRAPHS else 2**30, "reserved_bytes": 2**32}
    first = [_first(f"{way}, first calls", told[3]) | _of(way) for way, told in WAYS.items()]
    absent = {"op": op, "variant": "4 current", "role": "variant", "quantity": "step_wall"}
    refused = [absent | _of("4 current") | {"note": NO_CACHE}] if op == "decoding" else []
    return [*rows, _first("compiler, first call", 1.5), *first, *refused]


def _of(way: str) -> dict:
    return {"rung": SCRIPTS[int(way[0])], "way": way[2:]}


def _first(name: str, seconds: float) -> dict:
    row = {"op": "first call", "variant": name, "role": "variant", "quantity": "step_wall"}
    return row | {"median_s": seconds, "samples": 1, "blocks_s": [seconds]}


@synthetic.makes("ladder.regimes")
def regimes(root: Path, **params: Any) -> Path:
    """A recording of `ladder.regimes`."""
    rows = []
    for seed, ((width, batch), ratios) in enumerate(CELLS.items()):
        table = synthetic.compared(
            f"training C={width} B={batch} T=1024",
            "step_wall",
            1e-3 * batch * (width / 1024) ** 2,
            ratios | {"5 bf16 without a graph": 0.97},
            control="3 default",
            seed=seed,
            width=width,
            batch=batch,
            sequence=1024,
            tokens=1024 * batch,
            layers=1,
        )
        rows += [row | _of(row["variant"]) for row in table]
    return synthetic.record(root, "ladder.regimes", rows, **params)


@synthetic.makes("ladder.graphs")
def graphs(root: Path, **params: Any) -> Path:
    """A recording of `ladder.graphs`."""
    ratios = {"3 default": 0.7, "3 reduce-overhead": 0.3}
    rows = _modes(ratios, "2 amp bf16", {"3 default": 34, "3 reduce-overhead": 34})
    for what in ("training step", "forward pass"):
        found = {"graphs": 1, "breaks": 0, "fullgraph": "compiles"}
        rows.append({"part": "breaks", "variant": what} | found)
    for direction, kernel, maker, count in (
        ("forward", "triton_per_fused_native_layer_norm_0", "Triton", 2),
        ("forward", "mm", "library", 4),
        ("backward", "mm", "library", 8),
    ):
        row = {"part": "code", "mode": "3 default", "direction": direction, "kernel": kernel}
        rows.append(row | {"made_by": maker, "count": count})
    rows.append(
        {"part": "code", "mode": "elementwise on a CPU", "device": "cpu", "made_by": "C++"}
        | {"kernel": "cpp_fused_add_gelu_mul_0", "count": 1, "direction": "inference"}
    )
    for kernel, kind, maker, count in (
        ("triton_per_fused_native_layer_norm_0", "pointwise", "Triton", 2),
        ("nvjet_tst_128x256_64x4_1x2_h_bz_TNT", "product", "library", 12),
    ):
        row = {"part": "kernel", "mode": "3 default", "kernel": kernel, "kind": kind}
        rows.append(row | {"made_by": maker, "count": count, "busy_s": 1e-4})
    return synthetic.record(root, "ladder.graphs", rows, **params)


@synthetic.makes("ladder.autotuned")
def autotuned(root: Path, **params: Any) -> Path:
    """A recording of `ladder.autotuned`."""
    ratios = {"3 reduce-overhead": 0.97, "3 max-autotune": 0.93}
    rows = _modes(ratios, "3 default", dict.fromkeys(("3 default", *ratios), 60))
    for row in rows:
        row["setup_s"] = 150.0 if "max-autotune" in row["variant"] else 4.0
    return synthetic.record(root, "ladder.autotuned", rows, **params)


def _modes(ratios: dict[str, float], control: str, code: dict[str, int]) -> list[dict]:
    op = "forward and backward"
    rows = synthetic.compared(op, "step_wall", 2e-3, ratios, control=control)
    for row in rows:
        way = row["variant"].removesuffix(" (again)")
        row |= {"part": "time", "setup_s": 3.0, "code_kernels": code.get(way)} | _of(way)
        row |= {"triton_kernels": code.get(way, 0) // 2, "triton_products": 0}
    return rows
