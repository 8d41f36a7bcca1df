"""Made-up recordings of profiled steps: a host that every option slows by its own factor."""

from pathlib import Path
from typing import Any

from anatomy.chapters.profiling.profiling import BOTH, OFF, PARTS
from anatomy.chapters.profiling.requirements import LARGE, SMALL
from tests.fakes import synthetic

SPACE = "at::native::(anonymous namespace)::"
KERNEL = f"void {SPACE}multi_tensor_apply_kernel<{SPACE}TensorListMetadata<2>, {SPACE}LerpFunctor"
STEP_S = {SMALL: 4e-3, LARGE: 20e-3}
BUSY_S = {SMALL: 1e-3, LARGE: 19e-3}
SLOWER = {SMALL: {"CPU": 1.5, "GPU": 1.2, BOTH: 1.8, "with_stack": 6.0}}
SLOWER |= {LARGE: {"CPU": 1.0, "GPU": 1.0, BOTH: 1.01, "with_stack": 1.4}}


@synthetic.makes("profiling.overhead")
def overhead(root: Path, **params: Any) -> Path:
    """A recording of `profiling.overhead`."""
    rows, more = [], {"record_shapes": 1.9, "profile_memory": 2.0}
    for op, ways in SLOWER.items():
        own = {"busy_s": BUSY_S[op], "event_count": 1200, "trace_bytes": 300_000}
        rows += synthetic.compared(op, "step_wall", STEP_S[op], ways | more, control=OFF, **own)
    return synthetic.record(root, "profiling.overhead", rows, **params)


@synthetic.makes("profiling.trace")
def trace(root: Path, **params: Any) -> Path:
    """A recording of `profiling.trace`: parts with an operator, its launch and its kernel."""
    rows = []
    for number, part in enumerate(PARTS):
        for lane, kind, name, *microseconds in [
            ("step", "part", part, 0, 90),
            ("PyTorch", "operator", "aten::mm", 1, 40),
            ("CPU", "launch", "cudaLaunchKernel", 10, 20),
            ("GPU", "kernel", "void gemm<int>(int)", 30, 60),
        ]:
            start, end = ((100 * number + each) * 1e-6 for each in microseconds)
            row = {"run": SMALL, "lane": lane, "kind": kind, "variant": name}
            rows.append(row | {"start_s": start, "end_s": end})
    return synthetic.record(root, "profiling.trace", rows, **params)


@synthetic.makes("profiling.averages")
def averages(root: Path, **params: Any) -> Path:
    """A recording of `profiling.averages`."""
    columns = "variant", "ran_on", "self_host_s", "total_host_s", "self_device_s", "total_device_s"
    rows = [
        ("aten::mm", "CPU", 300e-6, 600e-6, 90e-6, 90e-6),
        ("cudaLaunchKernel", "CPU", 500e-6, 1e-3, 0.0, 0.0),
        (f"{KERNEL}<float>>(int)", "GPU", 0.0, 0.0, 90e-6, 90e-6),
    ]
    rows = [dict(zip(columns, row, strict=True), calls_a_step=16.0) for row in rows]
    return synthetic.record(root, "profiling.averages", rows, **params)
