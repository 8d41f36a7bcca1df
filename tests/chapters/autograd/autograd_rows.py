"""Made-up recordings of the autograd graph: counts and times by rules that the tests know."""

from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.fakes import synthetic

WAYS = ("manual", "math", "efficient", "flash", "cudnn", "default")
PARTS = ("attention", "between the projections", "with the projections", "layer")
# Nodes of written-out and of fused attention in each part, and how many of them change a shape.
NODES = {"manual": (19, 25, 33, 46), "math": (20, 26, 34, 47), "fused": (1, 6, 14, 27)}
SHAPES = {"manual": (11, 16, 22, 28), "math": (11, 16, 22, 28), "fused": (0, 5, 11, 17)}
ENDS = (3, 1, 5, 13)
FUSED_NODE = "ScaledDotProductCudnnAttentionBackward0"
# How many times as fast fused attention is, by its length.
SPEEDUPS = {128: 1.0, 512: 3.0, 2048: 4.0, 8192: 9.0}
VIEWS, VIEW_S, EMPTY_S = (0, 32, 128, 512), 2e-6, 2e-5
SINGLE = {
    "view": 0,
    "transpose": 0,
    "unsqueeze": 0,
    "expand to the same": 0,
    "expand of a column": 2,
    "slice": 2,
    "select": 2,
    "unbind": 1,
    "clone": 0,
    "contiguous of a transpose": 0,
    "reshape of a transpose": 0,
}
LINES = {"x * 2": 1, "F.linear(x, weight, bias)": 2, "x.view(-1)": 1, "x.detach()": 0, "x > 0": 0}
GRADIENTS = ("input", "attention.qkv.weight", "attention.out.weight", "up.weight", "down.weight")


@synthetic.makes("autograd_graph.census")
def census(root: Path, **params: Any) -> Path:
    """A recording of `autograd_graph.census`."""
    rows = []
    for at, part in enumerate(PARTS):
        for way in WAYS:
            kind = way if way in NODES else "fused"
            nodes, shapes = NODES[kind][at], SHAPES[kind][at]
            rows.append(
                {"op": f"graph {part}", "variant": way, "scope": part, "nodes": nodes, "note": None}
                | {"shape_nodes": shapes, "copy_nodes": 4 if kind != "fused" else 0}
                | {"compute_nodes": nodes - shapes - (4 if kind != "fused" else 0)}
                | {"accumulate_nodes": ENDS[at], "node_names": f"ViewBackward0 {shapes}"}
                | {"fused_node": FUSED_NODE if kind == "fused" else None}
                | {"ran": None if way == "manual" else "math" if way == "math" else "cudnn"}
                | {"tree": "\n0 AddBackward0" if part == "layer" else None}
            )
    for way in WAYS:
        for name in GRADIENTS:
            rows.append(
                {"op": f"gradients {way}", "variant": name, "attention": way, "zeros": 0.0}
                | {"shape": [768, 768], "dtype": "fp16", "mean": 0.001, "deviation": 1.0}
                | {"largest": 5.0, "finite": True, "error": 5e-4}
            )
    for way in ("manual", "default"):
        for batch in (1, 2, 4):
            for sequence in (1, 64, 256):
                kind = "manual" if way == "manual" else "fused"
                nodes = NODES[kind][-1] - (3 if batch == 1 and way == "manual" else 0)
                rows.append(
                    {"op": "sizes", "variant": f"{way} B={batch} T={sequence}", "attention": way}
                    | {"batch": batch, "sequence": sequence, "nodes": nodes}
                    | {"shape_nodes": SHAPES[kind][-1], "accumulate_nodes": ENDS[-1]}
                    | {"signature": sha256(f"{way}{nodes}".encode()).hexdigest()[:12]}
                    | {"saved_bytes": 50000 * batch * sequence + 10 * batch * sequence**2}
                    | {"layer_flops": 42_000_000 * batch * sequence}
                )
    for dtype in ("fp16", "bf16", "fp32"):
        for mask in ("none", "causal", "given"):
            efficient = dtype == "fp32"
            name = "ScaledDotProductEfficientAttentionBackward0" if efficient else FUSED_NODE
            rows.append(
                {"op": "fused node", "variant": f"{dtype}, mask {mask}", "dtype": dtype}
                | {"mask": mask, "fused_node": name, "nodes": 1}
                | {"ran": "efficient" if efficient else "cudnn"}
            )
    for line, added in LINES.items():
        names = ", ".join(["ToyBackward0"] * added) or None
        rows.append(
            {"op": "operations", "variant": line, "nodes_added": added, "node_names": names}
        )
    for way in WAYS:
        found = FUSED_NODE if way not in NODES else "none"
        rows.append({"op": "check", "variant": way, "found": found})
    return synthetic.record(root, "autograd_graph.census", rows, **params)


# (name, kind, next, kernels, own bytes) of each node of a small graph, one for each way.
GRAPHS = {
    "manual": [
        ("AddBackward0", "compute", [1, 8], 0, 0),
        ("AddmmBackward0", "compute", [2, 3], 3, 4 * 2**20),
        ("AccumulateGrad", "accumulate", [], 0, 0),
        ("ViewBackward0", "shape", [4], 0, 0),
        ("BmmBackward0", "compute", [5, 7], 2, 2**20),
        ("SoftmaxBackward0", "compute", [6], 1, 2**19),
        ("UnbindBackward0", "shape", [8], 1, 0),
        ("CloneBackward0", "copy", [6], 0, 0),
        ("AccumulateGrad", "accumulate", [], 0, 0),
    ],
    "default": [
        ("AddBackward0", "compute", [1, 6], 0, 0),
        ("AddmmBackward0", "compute", [2, 3], 3, 4 * 2**20),
        ("AccumulateGrad", "accumulate", [], 0, 0),
        ("ViewBackward0", "shape", [4], 0, 0),
        (FUSED_NODE, "compute", [5], 3, 2**20),
        ("UnbindBackward0", "shape", [6], 1, 0),
        ("AccumulateGrad", "accumulate", [], 0, 0),
    ],
}


PART = {"manual": (4, 5, 7), "default": (4,)}


@synthetic.makes("autograd_graph.nodes")
def nodes(root: Path, **params: Any) -> Path:
    """A recording of `autograd_graph.nodes`."""
    rows = []
    for way, graph in GRAPHS.items():
        saved = sum(own for *_, own in graph)
        rows.append(
            {"op": "memory", "variant": way, "attention": way, "saved_tensors": 20, "note": None}
            | {"counted_bytes": 2 * saved, "distinct_bytes": saved + 2**20, "saved_bytes": saved}
            | {"allocator_bytes": saved + 2**16, "output_bytes": 2**16}
        )
        for number, (name, kind, following, kernels, own) in enumerate(graph):
            rows.append(
                {"op": way, "variant": f"{number} {name}", "attention": way, "node": number}
                | {"name": name, "kind": kind, "next": following, "held_bytes": own}
                | {"part": "attention" if number in PART[way] else "rest"}
                | {"own_bytes": own, "hands_on": kernels == 0, "runs_at": number}
                | {"holds": "self (2, 128, 768) float16" if own else None}
                | {"kernels": ["toy_kernel"] * kernels, "kernels_per_call": kernels}
                | {"device_s": 4e-6 * kernels, "host_s": 1e-5 + 1e-5 * kernels}
            )
    return synthetic.record(root, "autograd_graph.nodes", rows, **params)


@synthetic.makes("autograd_graph.costs")
def costs(root: Path, **params: Any) -> Path:
    """A recording of `autograd_graph.costs`."""
    rows = []
    for sequence, speedup in SPEEDUPS.items():
        for scope in ("attention", "layer"):
            if scope == "layer" and sequence > 2048:
                continue
            cell = synthetic.compared(
                f"{scope} T={sequence}",
                "step_wall",
                1e-4 * sequence / 128,
                {"math": 1.2, **dict.fromkeys(WAYS[2:], 1 / speedup)},
                control="manual",
                seed=sequence,
                peak_bytes=2**20 * sequence,
            )
            rows += [row | {"scope": scope, "sequence": sequence} for row in cell]
    chain = synthetic.compared(
        "views",
        "step_wall",
        EMPTY_S,
        {f"{n} views": (EMPTY_S + n * VIEW_S) / EMPTY_S for n in VIEWS[1:]},
        control="0 views",
    )
    for row in chain:
        row["views"] = int(row["variant"].split()[0])
        if row["views"] == VIEWS[-1]:
            row |= {"view_s": VIEW_S, "view_low_s": 0.95 * VIEW_S, "view_high_s": 1.05 * VIEW_S}
    rows += chain
    for op in ("forward of one operation", "backward of one operation"):
        single = synthetic.compared(
            op, "step_wall", 2e-5, dict.fromkeys(list(SINGLE)[1:], 1.5), control="view"
        )
        for row in single:
            name = row["variant"].removesuffix(" (again)")
            copied = "clone" in name or " of a transpose" in name
            kernels = SINGLE[name] if op.startswith("backward") else int(copied)
            row |= {"operation": name, "kernels_per_call": kernels}
            row |= {"kernels": ["toy_kernel"] * kernels}
        rows += single
    return synthetic.record(root, "autograd_graph.costs", rows, **params)


@synthetic.makes("autograd_graph.traced")
def traced(root: Path, **params: Any) -> Path:
    """A recording of `autograd_graph.traced`."""
    rows = []
    for way, own in (("manual", 46), ("default", 27)):
        for stage, nodes in (("autograd", own), ("traced", 80), ("traced, recomputing", 86)):
            rows.append(
                {"variant": f"{way}, {stage}", "attention": way, "stage": stage, "nodes": nodes}
                | {"shape_nodes": nodes // 2, "saved_tensors": 14, "saved_bytes": 2**22}
                | {"note": None, "forward_nodes": None if stage == "autograd" else 50}
            )
    return synthetic.record(root, "autograd_graph.traced", rows, **params)


@synthetic.makes("autograd_graph.compiled")
def compiled(root: Path, **params: Any) -> Path:
    """A recording of `autograd_graph.compiled`."""
    rows = synthetic.compared(
        "step",
        "step_wall",
        1e-3,
        {"manual, compiled": 0.5, "default": 0.8, "default, compiled": 0.4},
        control="manual",
        against={"default, compiled": "default"},
    )
    for row in rows:
        way, _, how = row["variant"].removesuffix(" (again)").partition(", ")
        nodes = 1 if how else NODES["manual" if way == "manual" else "fused"][-1]
        row |= {"attention": way, "nodes": nodes, "shape_nodes": 0 if how else nodes // 2}
        row |= {"saved_tensors": 12, "saved_bytes": 2**22, "peak_bytes": 2**23}
        row |= {"node_names": "CompiledFunctionBackward 1" if how else "ViewBackward0 10"}
        row |= {"kernels_per_call": 30 if how else 90}
    for way in ("manual", "default"):
        first = {"op": "first call", "variant": f"{way}, compiled, first call", "role": "variant"}
        first |= {"quantity": "step_wall", "median_s": 8.0, "samples": 1, "blocks_s": [8.0]}
        rows.append(first | {"attention": way})
    return synthetic.record(root, "autograd_graph.compiled", rows, **params)
