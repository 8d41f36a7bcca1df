"""Made-up recordings of waits, copies and the Never list, on a machine that tests know."""

from pathlib import Path
from typing import Any

import numpy as np

from anatomy.chapters.never import requirements as never_requirements
from anatomy.chapters.sync_points import transfers
from anatomy.chapters.sync_points.lines import CANDIDATES, EXPLICIT, QUEUES
from anatomy.chapters.sync_points.requirements import COPIED, COUNTS, ELEMENTS, copy_op
from anatomy.chapters.sync_points.synchronizations import EACH, LATE, NO_WAIT
from anatomy.table import intervals
from tests.fakes import synthetic

# Lines that return at once although their kind waits, and what the debug mode never sees.
FREE = ("event.record()", "event.query()", "pinned.to(gpu, non_blocking=True)")
FREE += ("small.to(gpu, non_blocking=True)", 't.to("cpu", non_blocking=True)')
UNSEEN = ("torch.cuda.synchronize()", "large.to(gpu, non_blocking=True)")
# Seconds: a launch and the wait for it, and bytes per second of a kernel and of the bus.
LAUNCH_S, WAIT_S, BUS_BYTES_PER_S = 3e-6, 15e-6, {True: 50e9, False: 10e9}


@synthetic.makes("synchronizations.detected")
def detected(root: Path, **params: Any) -> Path:
    """A recording of `synchronizations.detected`: the debug mode misses what is `UNSEEN`."""
    rows = []
    for variant, (kind, _) in CANDIDATES.items():
        waits = kind not in (QUEUES, "asks about the tensor") and variant not in FREE
        seen = waits and variant not in UNSEEN and kind != EXPLICIT
        rows.append(
            {"variant": variant, "kind": kind, "debug_mode_says": "waits" if seen else "nothing"}
            | {"warned": int(seen), "waits": waits, "agree": waits == seen, "note": None}
        )
    return synthetic.record(root, "synchronizations.detected", rows, **params)


def _over_control(rows: list[dict], uses: dict[str, float], name: str) -> list[dict]:
    """Rows with what one use takes more than the control."""
    base = np.asarray(rows[0]["blocks_s"])
    for row in rows:
        if count := uses.get(row["variant"]):
            each = intervals.median_interval((np.asarray(row["blocks_s"]) - base) / count)
            row |= {
                f"{name}_s": each.median,
                f"{name}_low_s": each.low,
                f"{name}_high_s": each.high,
            }
            row |= {"uses": count} if name == "use" else {}
    return rows


@synthetic.makes("synchronizations.costs")
def costs(root: Path, **params: Any) -> Path:
    """A recording of `synchronizations.costs`: a wait costs what the host can't run ahead."""
    waits = {"t.item()": 5.0, "bool(t.any())": 8.0, "t.cpu()": 6.0, "t.nonzero()": 9.0}
    waits |= {"str(t), as print does": 60.0}
    rows = synthetic.compared("readback", "host_enqueue", LAUNCH_S, waits, control="add")
    for count in COUNTS:
        for elements in ELEMENTS:
            host, gpu = count * LAUNCH_S, count * 8 * elements / synthetic.BYTES_PER_S
            base = max(host, gpu)
            # What the GPU had queued before it waits for the host hides the rest.
            each = base + (WAIT_S if host >= gpu else min(0.1 * WAIT_S, host))
            table = synthetic.compared(
                f"step {count} x {elements}",
                "step_wall",
                base,
                {EACH: each / base, LATE: 1.0},
                control=NO_WAIT,
                elements=elements,
                kernels_each=count,
                bound_by="host" if host >= gpu else "GPU",
                bytes=8 * count * elements,
                limit="copy",
            )
            rows += _over_control(table, {EACH: 1, LATE: 1}, "wait")
    return synthetic.record(root, "synchronizations.costs", rows, **params)


@synthetic.makes("transfers.to_device")
def to_device(root: Path, **params: Any) -> Path:
    """A recording of `transfers.to_device`: what is pinned and non_blocking does not wait."""
    rows = []
    for direction in transfers.DIRECTIONS:
        for size in COPIED:
            for quantity in ("host_enqueue", "step_wall")[: 2 if size == COPIED[-1] else 1]:
                times = {}
                for way, (pinned, free) in transfers.WAYS.items():
                    there = LAUNCH_S + size / BUS_BYTES_PER_S[pinned]
                    at_once = pinned and free and quantity == "host_enqueue"
                    times[way] = LAUNCH_S if at_once else there
                first, *others = times
                slower = {way: times[way] / times[first] for way in others}
                op = copy_op(direction, size)
                for row in synthetic.compared(op, quantity, times[first], slower, control=first):
                    pinned, free = transfers.WAYS[row["variant"].removesuffix(" (again)")]
                    row |= {"direction": direction, "bytes": size, "pinned": pinned}
                    row |= {"non_blocking": free, "waits": not (pinned and free)}
                    row["enqueue_s"] = row["median_s"]
                    rows.append(row)
    slower = {"pinned, two streams": 0.6, "pageable, one stream": 1.5}
    slower |= {"pageable, two streams": 1.5, "the product alone": 0.5}
    rows += synthetic.compared(
        "beside a product", "step_wall", 3e-3, slower, control="pinned, one stream"
    )
    return synthetic.record(root, "transfers.to_device", rows, **params)


@synthetic.makes("transfers.hazard")
def hazard(root: Path, **params: Any) -> Path:
    """A recording of `transfers.hazard`: what is pinned and non_blocking goes wrong."""
    rows = [
        {"variant": name, "before": -1.0, "copied": 1.0, "read": 1.0, "later": 1.0, "stale": False}
        for name in transfers.HAZARDS
    ]
    rows[1] |= {"read": -1.0, "stale": True}
    return synthetic.record(root, "transfers.hazard", rows, **params)


@synthetic.makes("never.costs")
def never_costs(root: Path, **params: Any) -> Path:
    """A recording of `never.costs`: each entry costs, but a log beside a long step, and weights."""
    rows = []
    for what in ("product", "training step", "another shape"):
        told = {"op": f"first calls, {what}", "role": "variant", "quantity": "step_wall"}
        first = [1e-3 * (50.0 if number == 1 else 1.0) for number in range(1, 21)]
        for number, seconds in enumerate(first, start=1):
            one = {"variant": f"call {number}", "call": number, "median_s": seconds, "samples": 1}
            rows.append(told | one | {"blocks_s": [seconds], "over_warm": seconds / 1e-3})
        mean = sum(first) / len(first)
        warm = {"variant": "warm", "median_s": 1e-3, "low_s": 0.999e-3, "high_s": 1.001e-3}
        warm |= {"mean_first_s": mean, "mean_over_warm": mean / 1e-3, "over_warm": 1.0}
        warm["blocks_s"] = [0.999e-3] * 7 + [1e-3] * 6 + [1.001e-3] * 7
        rows.append(told | warm | {"samples": 20})
    for elements in never_requirements.TRAVELLING:
        table = synthetic.compared(
            f"ping-pong {elements}",
            "step_wall",
            2e-5,
            {"by way of the CPU": 4.0},
            control="stay on the GPU",
            elements=elements,
        )
        rows += _over_control(table, {"by way of the CPU": 1}, "use")
    loops = {"loop over the tensor": 100.0, "loop with .item()": 300.0}
    loops |= {".tolist(), then a loop": 2.0}
    table = synthetic.compared(
        "loop over elements", "step_wall", 2e-5, loops, control="one expression", elements=256
    )
    rows += _over_control(table, dict.fromkeys(loops, 256), "use")
    for width, tokens in never_requirements.LOGGED:
        slow = 1.2 if width < 1000 else 1.0
        table = synthetic.compared(
            f"logging C={width} T={tokens}",
            "step_wall",
            1e-3,
            {"each step": slow, "each 50 steps": 1.0},
            control="no log",
            width=width,
            tokens=tokens,
        )
        rows += _over_control(table, {"each step": 1}, "use")
    first = {"xavier": 1.0, "normal, 0.02": 1.0, "all equal": 0.9, "zeros": 0.85}
    rows += synthetic.compared("initialization", "gpu_warm", 2e-3, first, control="default")
    needs = "needs several GPUs: it is measured with the pages on distributed training"
    rows.append({"op": "DataParallel", "variant": "DataParallel", "note": needs})
    return synthetic.record(root, "never.costs", rows, **params)
