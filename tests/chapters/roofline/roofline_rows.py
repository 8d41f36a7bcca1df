"""Made-up recordings of the roofline's three days, on a toy machine whose roofs the tests know: its
ceilings are those of tests/chapters/limits, so that its ridge in fp32 is at 12.5 FLOP/B."""

from pathlib import Path
from typing import Any

from anatomy.chapters.roofline import counts, requirements
from anatomy.judge import limits
from tests.chapters.limits.ceilings_rows import CACHE, RATES
from tests.fakes import synthetic

PEAKS = synthetic.FLOPS_PER_S | {"fp8": 1400e12}
COPY = RATES["copy"][1]
CACHED = 1.2  # times the memory's rate, of what stays in the cache
# Time over the least, where an operation is not at its roof; and kernels, where it has several.
SLOW = {"sort": 20.0, "AdamW, foreach": 3.0, "cross_entropy": 3.2, "matmul, small": 12.0}
SLOW |= {"add, small": 100.0, "multiply, in the L2": 1 / CACHED}
KERNELS = {"AdamW, foreach": 14, "cross_entropy": 2}
# Seconds of the layer, by size and way; and of the CPU.
LAYER_S = {
    "small layer": {"eager fp32": 2e-5, "eager bf16": 2e-5, "compiled bf16": 2.4e-5,
                    "one call bf16": 9e-6},
    "large layer": {"eager fp32": 5.6e-3, "eager bf16": 5e-4, "compiled bf16": 4.2e-4,
                    "one call bf16": 3.8e-4},
}  # fmt: skip
ON_CPU_S = {"small layer": 4e-5, "large layer": 0.2}
LAYER_KERNELS = {"eager fp32": 3, "eager bf16": 3, "compiled bf16": 2, "one call bf16": 1}


@synthetic.makes("roofline.intensity")
def intensity(root: Path, **params: Any) -> Path:
    """A recording of `roofline.intensity`: bytes or operations, whichever take longer."""
    n = 2**26
    names = {requirements.fma_name(count): count for count in requirements.FMAS}
    own = {name: {"fmas": count, "flops": 2 * count * n} for name, count in names.items()}
    least = {name: max(8 * n / COPY, each["flops"] / PEAKS["fp32"]) for name, each in own.items()}
    work = {"bytes": 8 * n, "limit": "matmul fp32"}
    rows = synthetic.timed(requirements.CHAIN, "gpu_warm", least, own, **work)
    return synthetic.record(root, "roofline.intensity", rows, **params)


@synthetic.makes("roofline.operations")
def operations(root: Path, **params: Any) -> Path:
    """A recording of `roofline.operations`: most are at their roofs, some are known not to be."""
    groups: dict[str, list[counts.Operation]] = {}
    for each in counts.operations(counts.sizes(CACHE, 1.0)):
        groups.setdefault(each.op, []).append(each)
    rows = []
    for op, members in groups.items():
        seconds = {each.name: SLOW.get(each.name, 1.0) * least_s(each) for each in members}
        own = {each.name: each for each in members}
        for row in synthetic.timed(op, "gpu_warm", seconds):
            each = own[row["variant"].removesuffix(" (again)")]
            row |= {"flops": each.flops, "bytes": each.bytes, "limit": each.roof}
            row |= {"dtype": each.dtype, "extent": each.size, "beside": each.beside or None}
            several = KERNELS.get(each.name, 1)
            row["kernels_per_call"] = several + 1  # a fill is no kernel
            row["kernels"] = ["Memset (Device)", *(f"pass {n % 2}" for n in range(several))]
            if each.name == "add, small":
                row["enqueue_s"] = 2 * row["median_s"]
            rows.append(row)
    return synthetic.record(root, "roofline.operations", rows, **params)


def least_s(each: counts.Operation) -> float:
    """What its operations or its bytes take on the toy machine."""
    memory = RATES[each.roof][1] if each.roof in limits.DRAM else COPY
    return max(each.flops / PEAKS[each.dtype], each.bytes / memory)


@synthetic.makes("roofline.first_layer")
def first_layer(root: Path, **params: Any) -> Path:
    """A recording of `roofline.first_layer`: the host paces the small layer."""
    rows = []
    for op, seconds in LAYER_S.items():
        size, width = requirements.LAYERS[op]
        for row in synthetic.timed(op, "step_wall", seconds):
            way = row["variant"].removesuffix(" (again)")
            dtype = way.split()[-1]
            row |= {"dtype": dtype, "limit": f"matmul {dtype}", "flops": 2 * size * width**2}
            row |= {"kernels_per_call": LAYER_KERNELS[way], "device": "cuda"}
            busy = row["median_s"] * (0.2 if op == "small layer" else 0.98)
            row |= {"busy_s": busy, "enqueue_s": 1.9e-5}
            rows.append(row)
    for op, seconds in ON_CPU_S.items():
        name = f"{op}, {requirements.ON_CPU}"
        told = {"dtype": "fp32", "device": "cpu", "kernels_per_call": None}
        rows += synthetic.timed(name, "step_wall", {"eager fp32": seconds}, **told)
    return synthetic.record(root, "roofline.first_layer", rows, **params)
