"""Made-up recordings of CUDA graphs: a launch costs the host so much, a kernel the GPU so much."""

from pathlib import Path
from typing import Any

from tests.fakes import synthetic

# Host's seconds for a launch, and a kernel's own; a loop goes at the pace of the slower one.
LAUNCH_S, REPLAY_S = 4e-6, 6e-6
KERNELS_S = {
    ("pointwise", 2**10): 1e-6,
    ("pointwise", 2**20): 2e-6,
    ("pointwise", 2**23): 8e-6,
    ("pointwise", 2**29): 5e-4,
    ("products", 256): 2e-6,
    ("products", 4096): 2e-4,
}
STEPS_S = {(128, 1024): 2e-6, (2048, 4096): 6e-5}
CAPTURE_S, POOL_BYTES, EAGER_BYTES = 5e-3, 2**26, 2**28
COPIED, GRAPH = "graph, input copied", "graph"


def _cell(
    op: str, kernel_s: float, count: int, quantities: tuple[str, ...] = ("step_wall",), **told: Any
) -> list[dict]:
    rows = []
    for quantity in quantities:
        eager, graph = count * max(LAUNCH_S, kernel_s), REPLAY_S + count * kernel_s
        if quantity == "host_enqueue":
            eager, graph = count * LAUNCH_S, REPLAY_S
        if quantity == "gpu_warm" or kernel_s > LAUNCH_S:
            eager = graph = count * kernel_s
        slower = {GRAPH: graph / eager, COPIED: (graph + LAUNCH_S) / eager}
        table = synthetic.compared(op, quantity, eager, slower, control="eager")
        for row in table:
            graphs = row["role"] == "variant"
            row |= {"kernel_s": kernel_s, "kernels": None, "kernels_per_call": count} | told
            row |= {"enqueue_s": REPLAY_S if graphs else count * LAUNCH_S}
            row |= {"peak_bytes": 0 if graphs else EAGER_BYTES}
            row |= {"reserved_bytes": EAGER_BYTES + (POOL_BYTES if graphs else 0)}
            row |= dict.fromkeys(("replays", "replays_low", "replays_high"))
            row |= {"pool_bytes": POOL_BYTES, "capture_s": CAPTURE_S} if graphs else {}
            if graphs and row["verdict"] == "faster" and quantity == "step_wall":
                uses = CAPTURE_S / (eager - row["median_s"])
                row |= {"replays": uses, "replays_low": 0.9 * uses, "replays_high": 1.1 * uses}
        rows += table
    first = {"op": f"first call {op}", "variant": GRAPH, "role": "variant", "samples": 1}
    first |= {"quantity": "step_wall", "median_s": CAPTURE_S, "blocks_s": [CAPTURE_S]}
    return [*rows, first | {"kernel_s": kernel_s} | told]


@synthetic.makes("graph_capture.map")
def chains(root: Path, **params: Any) -> Path:
    """A recording of `graph_capture.map`: a graph pays where a launch is longer than a kernel."""
    rows = []
    for (work, size), kernel_s in KERNELS_S.items():
        count = size if work == "pointwise" else size * size
        ends = work == "pointwise" and size in (2**10, 2**29)
        quantities = ("step_wall", "host_enqueue", "gpu_warm") if ends else ("step_wall",)
        told = {"work": work, "elements": count, "links": 20}
        rows += _cell(f"{work} {size}", kernel_s, 20, quantities, **told)
    return synthetic.record(root, "graph_capture.map", rows, **params)


@synthetic.makes("graph_capture.training")
def training(root: Path, **params: Any) -> Path:
    """A recording of `graph_capture.training`."""
    rows = []
    for (width, tokens), kernel_s in STEPS_S.items():
        told = {"work": "training", "width": width, "tokens": tokens, "layers": 2}
        rows += _cell(f"training C={width} tokens={tokens}", kernel_s, 90, **told)
    return synthetic.record(root, "graph_capture.training", rows, **params)


@synthetic.makes("graph_capture.pools")
def pools(root: Path, **params: Any) -> Path:
    """A recording of `graph_capture.pools`: one pool is as large as its largest graph."""
    rows = []
    for count in (1, 2, 3, 4):
        held = {"eager": POOL_BYTES, "own pools": count * POOL_BYTES, "one pool": POOL_BYTES}
        for way, bytes_ in held.items():
            name = f"{count} graph{'s' if count > 1 else ''}, {way}"
            row = {"op": "memory", "variant": f"{count} eager" if way == "eager" else name}
            row |= {"role": "control" if way == "eager" else "variant", "graphs": count, "way": way}
            rows.append(row | {"pool_bytes": bytes_, "output_bytes": 2**22})
    return synthetic.record(root, "graph_capture.pools", rows, **params)
