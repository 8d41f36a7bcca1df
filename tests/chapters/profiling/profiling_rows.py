"""Made-up recordings of profiled steps: a host that every option slows by its own factor."""

from pathlib import Path
from typing import Any

from anatomy.chapters.profiling.profiling import BOTH, OFF
from anatomy.chapters.profiling.requirements import LARGE, SMALL
from tests.fakes import synthetic

KERNEL = "void gemm()"
STEP_S = {SMALL: 4e-3, LARGE: 20e-3}
BUSY_S = {SMALL: 1e-3, LARGE: 19e-3}
SLOWER = {
    SMALL: {"CPU": 1.5, "GPU": 1.2, BOTH: 1.8, "record_shapes": 1.9, "with_stack": 6.0},
    LARGE: {"CPU": 1.0, "GPU": 1.0, BOTH: 1.01, "record_shapes": 1.01, "with_stack": 1.4},
}


@synthetic.makes("profiling.overhead")
def overhead(root: Path, **params: Any) -> Path:
    """A recording of `profiling.overhead`."""
    rows = []
    for op, ways in SLOWER.items():
        ways = ways | {"profile_memory": 2.0}
        own = synthetic.compared(op, "step_wall", STEP_S[op], ways, control=OFF)
        for row in own:
            off = row["variant"].startswith(OFF)
            row |= {"event_count": None if off else 1200, "trace_bytes": None if off else 300_000}
            row["busy_s"] = None if row["variant"] in ("CPU", f"{OFF} (again)") else BUSY_S[op]
        rows += own
    return synthetic.record(root, "profiling.overhead", rows, **params)


@synthetic.makes("profiling.trace")
def trace(root: Path, **params: Any) -> Path:
    """A recording of `profiling.trace`: parts with an operator, its launch and its kernel."""
    rows, at = [], 0.0
    for part in ("forward", "backward", "optimizer"):
        spans = [
            ("step", "part", part, 0, 90),
            ("PyTorch", "operator", "aten::mm", 1, 40),
            ("CPU", "launch", "cudaLaunchKernel", 10, 20),
            ("GPU", "kernel", "void gemm<int>(int)", 30, 60),
        ]
        for lane, kind, name, start, end in spans:
            row = {"run": SMALL, "lane": lane, "kind": kind, "variant": name, "note": None}
            rows.append(row | {"start_s": at + start * 1e-6, "end_s": at + end * 1e-6})
        at += 1e-4
    return synthetic.record(root, "profiling.trace", rows, **params)


@synthetic.makes("profiling.averages")
def averages(root: Path, **params: Any) -> Path:
    """A recording of `profiling.averages`."""
    names = {"aten::mm": ("CPU", 300), "cudaLaunchKernel": ("CPU", 500), KERNEL: ("GPU", 90)}
    rows = []
    for name, (side, micros) in names.items():
        own = micros * 1e-6
        row = {"variant": name, "ran_on": side, "calls_a_step": 16.0}
        host = side == "CPU"
        row |= {"self_host_s": own if host else 0.0, "total_host_s": 2 * own if host else 0.0}
        device = own if not host else 9e-5 if name == "aten::mm" else 0.0
        rows.append(row | {"self_device_s": device, "total_device_s": device})
    return synthetic.record(root, "profiling.averages", rows, **params)
