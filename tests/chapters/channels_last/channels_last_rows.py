"""Made-up recordings of channels_last: faster on tensor cores, slower without them."""

from pathlib import Path
from typing import Any

from tests.fakes import synthetic

# Time in channels_last over that in NCHW, by number format.
SLOWDOWN = {"fp32": 1.2, "tf32": 0.9, "fp16": 0.8, "bf16": 0.8}
CONVERTING = 0.05
LAST, CONVERTED = "channels_last", "channels_last, input converted"
KERNELS = {
    "fp32": ["implicit_convolve_sgemm"],
    "tf32": ["void cudnn::engines_precompiled::nchwToNhwcKernel<float>(...)", "sm80_tf32_nhwc"],
    "fp16": ["void cudnn::engines_precompiled::nchwToNhwcKernel<__half>(...)", "sm90_f16_nhwc"],
    "bf16": ["void cudnn::engines_precompiled::nchwToNhwcKernel<bf16>(...)", "sm90_bf16_nhwc"],
}


def _cell(op: str, quantity: str, dtype: str, **told: Any) -> list[dict]:
    factor = SLOWDOWN[dtype]
    slower = {LAST: factor, CONVERTED: factor + CONVERTING}
    rows = synthetic.compared(op, quantity, 1e-4, slower, control="NCHW", dtype=dtype, **told)
    for row in rows:
        native = row["variant"].startswith(LAST)
        row |= {"kernels": KERNELS[dtype][-1:] if native else KERNELS[dtype]}
        row |= {"kernels_per_call": len(row["kernels"])}
        row |= dict.fromkeys(("uses", "uses_low", "uses_high"))
        if row["variant"] == LAST and row["verdict"] == "faster":
            uses = CONVERTING / (1 - factor)
            row |= {"uses": uses, "uses_low": 0.9 * uses, "uses_high": 1.1 * uses}
    return rows


@synthetic.makes("channels_last.map")
def layers(root: Path, **params: Any) -> Path:
    """A recording of `channels_last.map`."""
    rows = []
    for channels in (3, 64, 256):
        for batch in (8, 64):
            for phase in ("inference", "training") if batch == 64 else ("inference",):
                for dtype in SLOWDOWN:
                    told = {"channels": channels, "batch": batch, "phase": phase}
                    told |= {"cudnn_benchmark": False, "direct_flops": 10**9}
                    op = f"C={channels} {phase} {dtype} N={batch}"
                    rows += _cell(op, "gpu_warm", dtype, **told)
        told = {"channels": channels, "batch": 64, "phase": "conversion", "dtype": "bf16"}
        ways = {"to channels_last": 1.5, "to NCHW": 1.5}
        rows += synthetic.compared(
            f"C={channels} conversion bf16 N=64", "gpu_warm", 1e-5, ways,
            control="copy", bytes=2**20, limit="copy", cudnn_benchmark=False, **told,
        )  # fmt: skip
    return synthetic.record(root, "channels_last.map", rows, **params)


@synthetic.makes("channels_last.network")
def network(root: Path, **params: Any) -> Path:
    """A recording of `channels_last.network`."""
    rows = []
    for batch in (8, 32, 128):
        for dtype in ("bf16",) if batch == 128 else ("fp32", "tf32", "bf16"):
            for phase in ("inference",) if batch == 8 else ("inference", "training"):
                for tuned in (False, True) if batch == 128 else (False,):
                    op = f"{phase} {dtype} N={batch}" + (", tuned" if tuned else "")
                    told = {"phase": phase, "batch": batch, "cudnn_benchmark": tuned}
                    told |= {"peak_bytes": 2**28, "reserved_bytes": 2**29}
                    rows += _cell(op, "step_wall", dtype, **told)
    return synthetic.record(root, "channels_last.network", rows, **params)
