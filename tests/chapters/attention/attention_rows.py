"""Made-up recordings of attention: powers of the length, and choices, that the tests know."""

from pathlib import Path
from typing import Any

from anatomy.table import formulas
from tests.fakes import synthetic

SEQUENCES = (128, 512, 2048, 8192, 32768)
HEADS, WIDTH = 8, 64
# Time over that of `manual`, at every length and in both directions.
RATIOS = {"math": 1.2, "efficient": 0.6, "flash": 1 / 3, "cudnn": 0.3, "default": 0.3}
KERNELS = {
    "manual": ["nvjet_toy_qk", "elementwise_toy_mul", "softmax_toy_forward", "nvjet_toy_pv"],
    "math": ["gemm_toy_qk", "softmax_toy_forward", "where_toy", "gemm_toy_pv"],
    "efficient": ["fmha_cutlassF_toy"],
    "flash": ["pytorch_flash::flash_fwd_toy"],
    "cudnn": ["cudnn_generated_fort_native_sdpa_toy", "Memset (Device)"],
    "default": ["cudnn_generated_fort_native_sdpa_toy", "Memset (Device)"],
}
WITHOUT_FLASH = "not supported on sm_90: q, k and v must be of another format"
TOO_LARGE = "would need about 160 GiB, more than half of the 139 GiB that are free"


@synthetic.makes("attention.backends")
def backends(root: Path, **params: Any) -> Path:
    """A recording of `attention.backends`; in fp32 there is no flash and no cuDNN."""
    dtype, rows = params.get("dtype", "bf16"), []
    absent = ("flash", "cudnn") if dtype == "fp32" else ()
    for sequence in SEQUENCES:
        for direction in ("forward", "forward and backward"):
            rows += _cell(sequence, direction, dtype, absent)
    return synthetic.record(root, "attention.backends", rows, **params)


def _cell(sequence: int, direction: str, dtype: str, absent: tuple[str, ...]) -> list[dict]:
    backward, item = direction != "forward", synthetic.ITEM_BYTES[dtype]
    work = formulas.attention_flops(HEADS, sequence, WIDTH, backward=backward)
    op = f"{direction} N={sequence}"
    refused = dict.fromkeys(absent, WITHOUT_FLASH)
    if backward and sequence == SEQUENCES[-1]:
        refused["math"] = TOO_LARGE
    rows = synthetic.compared(
        op,
        "step_wall",
        4e-5 + work / 5e13,
        {name: ratio for name, ratio in RATIOS.items() if name not in refused},
        control="manual",
        seed=sequence,
        flops=work,
        bytes=formulas.attention_bytes(HEADS, sequence, WIDTH, item, backward=backward),
        limit=f"matmul {dtype}",
    )
    for row in rows:
        name = row["variant"].removesuffix(" (again)")
        again = row["role"] == "again"
        linear = (4 if backward else 1) * HEADS * sequence * (WIDTH * item + 4)
        scores = (3 if backward else 2) * HEADS * sequence**2 * item if name in _WRITTEN else 0
        row |= {
            "backend": name,
            "kernels": None if again else KERNELS[name] * (3 if backward else 1),
            "kernels_per_call": len(KERNELS[name]) * (3 if backward else 1),
            "busy_s": 0.8 * row["median_s"],
            "chosen": ("efficient" if absent else "cudnn") if name == "default" else None,
            "chosen_by": "its kernels" if name == "default" else None,
            "peak_bytes": None if again else linear + scores,
        }
    told = {"op": op, "role": "variant", "quantity": "step_wall", "device": "cuda"}
    rows += [
        told | {"variant": name, "backend": name, "note": why} for name, why in refused.items()
    ]
    return [row | {"sequence": sequence, "direction": direction} for row in rows]


_WRITTEN = ("manual", "math")


@synthetic.makes("attention.choices")
def choices(root: Path, **params: Any) -> Path:
    """A recording of `attention.choices`."""
    plain = {"dtype": "bf16", "head_width": WIDTH, "queries": 1024, "gradients": False}
    plain |= {"causal": False, "mask": False, "math": "runs", "efficient": "runs"}
    rows = [
        plain | {"variant": "plain", "chosen": "cudnn", "flash": "runs", "cudnn": "runs"},
        plain
        | {"variant": "with gradients", "gradients": True, "chosen": "cudnn"}
        | {"flash": "runs", "cudnn": "runs"},
        plain
        | {"variant": "causal", "causal": True, "chosen": "cudnn"}
        | {"flash": "runs", "cudnn": "runs"},
        plain
        | {"variant": "with a mask", "mask": True, "chosen": "cudnn"}
        | {"flash": "not supported on sm_90: it takes no mask", "cudnn": "runs"},
        plain
        | {"variant": "fp32", "dtype": "fp32", "chosen": "efficient"}
        | {"flash": WITHOUT_FLASH, "cudnn": WITHOUT_FLASH},
    ]
    rows += [
        plain
        | {"variant": f"heads of {width}", "head_width": width, "chosen": "efficient"}
        | {"flash": "runs", "cudnn": "runs"}
        for width in (60, 128, 256, 320)
    ]
    one = {"variant": "one query", "queries": 1, "chosen": "flash"}
    rows.append(plain | one | {"flash": "runs", "cudnn": "runs"})
    return synthetic.record(root, "attention.choices", rows, **params)
