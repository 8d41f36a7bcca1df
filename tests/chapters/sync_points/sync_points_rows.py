"""Made-up recordings of sync points, on a machine that tests know."""

from pathlib import Path
from typing import Any

import numpy as np

from anatomy.chapters.sync_points import requirements, sync_points
from anatomy.chapters.sync_points.lines import ITEM, SYNC
from anatomy.chapters.sync_points.trace import RUNS
from anatomy.table import intervals
from tests.fakes import synthetic

FLOPS_PER_S, STREAM_S = 900e12, 6e-9
# Seconds: a launch by the host, the shortest kernel, and the way back from the GPU to the host.
LAUNCH_S, LEAST_S, BACK_S = 5e-6, 2e-6, 12e-6
# What each line takes of the host with nothing to wait for, and whether it waits.
LINES = {
    SYNC: (3e-6, True),
    ITEM: (14e-6, True),
    "print(t)": (180e-6, True),
    "t.cpu()": (16e-6, True),
    "if t.any()": (22e-6, True),
    "t.nonzero()": (30e-6, True),
    "t[mask]": (40e-6, True),
    "to(device)": (13e-6, True),
    "to(device), non_blocking": (7e-6, False),
    "to(device), pinned": (13e-6, True),
    "to(device), pinned, non_blocking": (8e-6, False),
}
PARTS = {
    "copy 16 bytes, queued": 4e-6,
    "copy 16 bytes, waited for": 12e-6,
    "print(number)": 1e-6,
    "print(t), t on the host": 60e-6,
    "print(t.item())": 16e-6,
    "t.cpu().numpy()": 17e-6,
}
NO_NUMPY = (
    "TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the "
    "tensor to host memory first."
)


def kernel_s(side: int) -> float:
    """How long the product of a side takes on this machine."""
    return LEAST_S + side * STREAM_S + 2 * side**3 / FLOPS_PER_S


def with_wait(rows: list[dict], divided_by: int = 1) -> list[dict]:
    """Rows with what each takes more than the control, block by block."""
    base = np.asarray(rows[0]["blocks_s"])
    for row in rows:
        row |= dict.fromkeys(("wait_s", "wait_low_s", "wait_high_s"))
        if row["role"] == "variant":
            more = intervals.median_interval((np.asarray(row["blocks_s"]) - base) / divided_by)
            row |= {"wait_s": more.median, "wait_low_s": more.low, "wait_high_s": more.high}
    return rows


@synthetic.makes("sync_points.bench")
def bench(root: Path, edit=None, **params: Any) -> Path:
    """A recording of `sync_points.bench`: a wait costs the way back, whatever it waits for.

    `edit` is given the rows before they are saved.
    """
    own = {name: seconds for name, (seconds, _) in LINES.items()} | PARTS
    relative = {name: seconds / LAUNCH_S for name, seconds in own.items()}
    rows = synthetic.compared(
        "idle", "host_enqueue", LAUNCH_S, relative, control="queue one kernel", pending=False
    )
    for row in rows:
        row["operation"] = row["variant"]
    for side in requirements.SIDES:
        kernel = kernel_s(side)
        rows += synthetic.compared(
            f"product {side}", "gpu_warm", kernel, {}, control="product", side=side, kernel_s=kernel
        )
        waits = {"queue, synchronize": BACK_S, "queue, item": BACK_S + 4e-6}
        behind = {name: (LAUNCH_S + kernel + more) / LAUNCH_S for name, more in waits.items()}
        rows += with_wait(
            synthetic.compared(
                f"behind {side}",
                "host_enqueue",
                LAUNCH_S,
                behind,
                control="queue",
                side=side,
                kernel_s=kernel,
            )
        )
        async_s = max(LAUNCH_S, kernel)
        times = {
            name: LAUNCH_S + kernel + BACK_S + seconds if waits else max(LAUNCH_S + seconds, kernel)
            for name, (seconds, waits) in LINES.items()
        }
        loop = synthetic.compared(
            f"loop {side}",
            "step_wall",
            async_s,
            {name: seconds / async_s for name, seconds in times.items()},
            control=sync_points.ASYNC,
            side=side,
            kernel_s=kernel,
            pending=True,
            bound_by="host" if 0.9 * async_s <= LAUNCH_S else "GPU",
        )
        for row in with_wait(loop):
            row["operation"] = row["variant"]
            row["predicted_s"] = sync_points.predicted(row["variant"], kernel, LAUNCH_S, own)
            if row["predicted_s"]:
                row["residual_share"] = row["median_s"] / row["predicted_s"] - 1
            row["gap_s"] = row["median_s"] - kernel
            row["gap_low_s"], row["gap_high_s"] = row["low_s"] - kernel, row["high_s"] - kernel
            if row["role"] == "variant":
                row["wait_share"] = 1 - 1 / row["ratio"]
                row["wait_share_low"] = 1 - 1 / row["ratio_low"]
                row["wait_share_high"] = 1 - 1 / row["ratio_high"]
        rows += loop
    rows.append(
        {"op": "loop", "variant": "t.numpy()", "operation": "t.numpy()", "role": "variant"}
        | {"quantity": "step_wall", "note": NO_NUMPY, "raised": "TypeError"}
    )
    if edit:
        edit(rows)
        rows = synthetic.as_said(rows)
    return synthetic.record(root, "sync_points.bench", rows, **params)


@synthetic.makes("sync_points.training_loop")
def training_loop(root: Path, slow: float = 2.4, **params: Any) -> Path:
    """A recording of `sync_points.training_loop`: `.item()` costs the small model `slow` times."""
    rows = []
    for size, host_s, gpu_s, each in (
        (requirements.SMALL, 2.0e-3, 0.9e-3, slow),
        (requirements.LARGE, 2.0e-3, 7.0e-3, 1.01),
    ):
        told = {"model": size.model, "width": size.width, "layers": size.layers}
        told |= {"tokens": size.batch * size.tokens}
        rows += synthetic.compared(
            f"one step, {size.model}", "host_enqueue", host_s, {}, control="one step", **told
        )
        step_s = max(host_s, gpu_s)
        table = synthetic.compared(
            size.model,
            "step_wall",
            25 * step_s,
            {"item each step": each, "mean each 25 steps": 1.0},
            control="no readback",
            bound_by="host" if host_s >= gpu_s else "GPU",
            steps_each=25,
            steps_timed=300,
            **told,
        )
        for row in with_wait(table, 25):
            row |= {"step_s": row["median_s"] / 25, "step_low_s": row["low_s"] / 25}
            row["step_high_s"] = row["high_s"] / 25
        rows += table
    return synthetic.record(root, "sync_points.training_loop", rows, **params)


def events(run: str, steps: int = 4, kernels_each: int = 4) -> list[dict]:
    """Events of one run: the host launches ahead, or waits at the end of each step."""
    rows, host, gpu, waits = [], 0.0, 4e-6, run == RUNS[1]

    def add(lane: str, kind: str, name: str, start: float, end: float) -> None:
        rows.append(
            {"run": run, "lane": lane, "kind": kind, "variant": name, "note": None}
            | {"start_s": round(start, 9), "end_s": round(end, 9)}
        )

    for _ in range(steps):
        for _ in range(kernels_each):
            add("PyTorch", "operator", "aten::mm", host, host + 8e-6)
            add("CPU", "launch", "cudaLaunchKernelExC", host + 3e-6, host + 7e-6)
            start = max(gpu, host + 8e-6)
            gpu = start + 28e-6
            add("GPU", "kernel", "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT", start, gpu)
            host += 9e-6
        if waits:
            add("CPU", "launch", "cudaMemcpyAsync", host, host + 5e-6)
            add("GPU", "copy", "Memcpy DtoH (Device -> Pageable)", gpu + 1e-6, gpu + 2.5e-6)
            gpu += 2.5e-6
            add("CPU", "wait", "cudaStreamSynchronize", host + 6e-6, gpu + 8e-6)
            host = gpu + 12e-6
    return rows


@synthetic.makes("sync_points.timeline")
def timeline(root: Path, **params: Any) -> Path:
    """A recording of `sync_points.timeline`."""
    rows = [event for run in RUNS for event in events(run)]
    return synthetic.record(root, "sync_points.timeline", rows, **params)


@synthetic.makes("sync_points.found")
def found(root: Path, **params: Any) -> Path:
    """A recording of `sync_points.found`."""
    lines = {
        20: ("x, y = x.to(device), y.to(device)", 16),
        22: ("if torch.isnan(loss):", 8),
        24: ("wrong = y[model(x).argmax(1) != y]", 8),
        28: ("losses.append(loss.item() + 0.0 * len(wrong))", 8),
    }
    rows = [
        {"loop": "careless", "variant": f"careless, line {line}", "line": line, "code": code}
        | {"warned": times, "batches": 8, "message": "called a synchronizing CUDA operation"}
        for line, (code, times) in lines.items()
    ]
    rows.append(
        {"loop": "careful", "variant": "careful, line 49", "line": 49, "batches": 8, "warned": 2}
        | {"code": "mean = total.item() / LOG_EVERY", "message": "called a synchronizing CUDA"}
    )
    return synthetic.record(root, "sync_points.found", rows, **params)
