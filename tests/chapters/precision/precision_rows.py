"""Made-up recordings of number formats: a card on which 16 bits gain what the tests know."""

from pathlib import Path
from typing import Any

from tests.fakes import synthetic

# Time over that of fp32, by way and tokens: few tokens gain nothing, many gain.
TIMES = {
    "tf32": {1024: 0.95, 8192: 0.5},
    "amp fp16": {1024: 1.2, 8192: 0.29},
    "amp bf16": {1024: 1.1, 8192: 0.28},
    "bf16": {1024: 0.9, 8192: 0.25},
}
BYTES = {  # of one cell: weights, gradients, optimizer, activations, copies, peak
    "fp32": (4e8, 4e8, 8e8, 2e9, 0, 2.6e9),
    "tf32": (4e8, 4e8, 8e8, 2e9, 0, 2.6e9),
    "amp fp16": (4e8, 4e8, 8e8, 1e9, 2e8, 1.8e9),
    "amp bf16": (4e8, 4e8, 8e8, 1e9, 2e8, 1.8e9),
    "bf16": (2e8, 2e8, 4e8, 1e9, 0, 1.3e9),
}
ERRORS = {"fp32": 1e-7, "tf32": 1e-3, "amp fp16": 1e-3, "amp bf16": 6e-3, "bf16": 2e-2}
FINFO = {  # largest, smallest normal, smallest subnormal, eps
    "fp32": (3.4028235e38, 1.1754944e-38, 1.4e-45, 2.0**-23),
    "bf16": (3.3895314e38, 1.1754944e-38, 9.2e-41, 2.0**-7),
    "fp16": (65504.0, 2.0**-14, 2.0**-24, 2.0**-10),
}
# Gradients that are 0, and relative error, by loss and way.
GRADIENTS = {
    "ordinary": {"bf16": (0, 4e-3), "fp16": (6, 5e-4), "fp16, scaled": (0, 5e-4)},
    "small": {"bf16": (0, 4e-3), "fp16": (7000, 0.6), "fp16, scaled": (6, 5e-4)},
    "large": {"bf16": (0, 4e-3), "fp16": (0, 5e-4), "fp16, scaled": (0, 5e-4)},
}
# Time over that of bf16, by side: FP8 quantised in each call loses where it is small.
SIDES = (256, 1024, 2048, 4096, 8192)
READY = {256: 1.0, 1024: 0.9, 2048: 0.7, 4096: 0.6, 8192: 0.5}
QUANTISED = {256: 4.0, 1024: 2.0, 2048: 1.2, 4096: 0.95, 8192: 0.7}


@synthetic.makes("precision.training")
def training(root: Path, **params: Any) -> Path:
    """A recording of `precision.training`."""
    rows = []
    names = ("weight", "gradient", "optimizer", "activation", "copy", "peak")
    for width in (256, 1024, 2048):
        for tokens in (1024, 8192):
            table = synthetic.compared(
                f"train C={width} T={tokens}",
                "step_wall",
                1e-9 * width * tokens,
                {name: times[tokens] for name, times in TIMES.items()},
                control="fp32",
                seed=width + tokens,
                limit="matmul fp32",
                width=width,
                tokens=tokens,
            )
            for row in table:
                way = row["variant"].removesuffix(" (again)")
                sizes = dict(zip(names, BYTES[way], strict=True))
                row |= {f"{name}_bytes": int(size) for name, size in sizes.items()}
                stays = sizes["weight"] + sizes["optimizer"]
                row |= {"total_peak_bytes": int(stays + sizes["peak"])}
                row |= {"error": ERRORS[way], "loss_error": ERRORS[way] / 10}
                row |= {"gradient_error": ERRORS[way]}
            rows += table
    waits = {"amp fp16, default AdamW": 2.0, "amp bf16, fused AdamW": 0.8}
    rows += synthetic.compared(
        "host C=1024 T=8192",
        "host_enqueue",
        4e-3,
        waits | {"amp fp16, fused AdamW": 0.9},
        control="amp bf16, default AdamW",
        against={"amp fp16, fused AdamW": "amp bf16, fused AdamW"},
        width=1024,
        tokens=8192,
    )
    return synthetic.record(root, "precision.training", rows, **params)


@synthetic.makes("precision.gradients")
def gradients(root: Path, **params: Any) -> Path:
    """A recording of `precision.gradients`."""
    names = ("largest", "smallest_normal", "smallest_subnormal", "eps")
    rows = [
        {"op": "finfo", "variant": name, "bits": 32 if name == "fp32" else 16}
        | dict(zip(names, values, strict=True))
        for name, values in FINFO.items()
    ]
    for loss, ways in GRADIENTS.items():
        for way, (zero, error) in (
            {"fp32": (0, 2e-7)} | ways | {"bf16, scaled": ways["bf16"]}
        ).items():
            rows.append(
                {
                    "op": f"gradients {loss}",
                    "loss": loss,
                    "loss_factor": 1.0,
                    "variant": way,
                    "loss_scale": 65536.0 if "scaled" in way else 1.0,
                    "gradients": 10000,
                    "underflow": zero,
                    "underflow_share": zero / 10000,
                    "subnormal": zero,
                    "overflow": 0,
                    "error": error,
                    "typical": 1e-3,
                }
            )
    for name in FINFO:
        wrong = 17 if name == "fp16" else 0
        rows.append(
            {
                "op": "overflow",
                "variant": name,
                "outputs": 1024,
                "overflow": wrong,
                "largest_output": 131008.0,
                "largest_weight": 12000.0,
                "largest": FINFO[name][0],
                "error": None if wrong else 1e-3,
            }
        )
    return synthetic.record(root, "precision.gradients", rows, **params)


@synthetic.makes("precision.fp8")
def fp8(root: Path, **params: Any) -> Path:
    """A recording of `precision.fp8`: quantising pays from 4096 on, compiled from 2048 on."""
    rows = []
    for side in (*SIDES, None):
        m, n, k = (side,) * 3 if side else (8192, 16384, 4096)
        size = side or 8192
        shape = {"m": m, "n": n, "k": k, "side": side, "shape": "square" if side else "mlp"}
        for quantity in ("step_wall", "gpu_warm"):
            table = synthetic.compared(
                f"linear {m} x {n} x {k}",
                quantity,
                1e-9 * size * size / 100,
                {
                    "fp8, factors ready": READY[size],
                    "fp8, quantised": QUANTISED[size],
                    "fp8, quantised, compiled": 0.8 * QUANTISED[size],
                },
                control="bf16",
                seed=size,
                limit="matmul fp8",
                flops=2 * m * n * k,
                **shape,
            )
            for row in table:
                eight = "fp8" in row["variant"]
                row |= {"error": 0.037 if eight else 2e-3}
                row |= {"kernel_error": 2e-3}
            rows += table
        first = {"op": "first call", "variant": f"linear {m} x {n} x {k}, fp8, quantised, compiled"}
        first |= {"role": "variant", "quantity": "step_wall", "samples": 1, "median_s": 1.5}
        rows.append(first | {"blocks_s": [1.5]} | shape)
    rows += synthetic.compared(
        "mlp C=4096 T=8192",
        "step_wall",
        1e-3,
        {"bf16, compiled": 0.9, "fp8, quantised": 0.95, "fp8, quantised, compiled": 0.6},
        control="bf16",
        against={"fp8, quantised, compiled": "bf16, compiled"},
        limit="matmul fp8",
        error=0.05,
        m=8192,
        n=16384,
        k=4096,
        shape="mlp",
    )
    return synthetic.record(root, "precision.fp8", rows, **params)


@synthetic.makes("precision.inference")
def inference(root: Path, **params: Any) -> Path:
    """A recording of `precision.inference`: fp16 is as fast as bf16 and closer to float64."""
    rows = []
    for width in (1024, 2048):
        for tokens in (1024, 8192):
            table = synthetic.compared(
                f"forward C={width} T={tokens}",
                "gpu_warm",
                1e-10 * width * tokens,
                {"fp16": 1.0},
                control="bf16",
                seed=width + tokens,
                limit="matmul bf16",
                width=width,
                tokens=tokens,
            )
            for row in table:
                row |= {"error": 4e-4 if row["variant"] == "fp16" else 3e-3}
            rows += table
    return synthetic.record(root, "precision.inference", rows, **params)
