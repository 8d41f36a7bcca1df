"""Where made-up recordings of experiments come from that are not in `synthetic`."""

# Module of tests/chapters -> experiments that it makes up, with the function where its name is
# another.
ELSEWHERE = {
    "harnesses.contests": (
        "harnesses.estimates",
        "harnesses.reference",
        "worked_example.kernel:example",
    ),
    "limits.ceilings_rows": ("limits.ceilings", "limits.bandwidth", "limits.floors"),
    "attention.attention_rows": ("attention.backends", "attention.choices"),
    "autograd.autograd_rows": tuple(
        f"autograd_graph.{name}" for name in ("census", "nodes", "costs", "traced", "compiled")
    ),
    "bottlenecks.bottlenecks_rows": (
        "bottlenecks.confusion",
        "bottlenecks.profiled_call",
    ),
    "channels_last.channels_last_rows": (
        "channels_last.map:layers",
        "channels_last.network",
    ),
    "checkpointing.checkpointing_rows": (
        *("checkpointing.frontier", "checkpointing.traps"),
        *("accumulation.gradients", "accumulation.steps"),
    ),
    "compilation.compilation_rows": (
        *("compilation.map:cells", "compilation.breaks", "compilation.recompiles"),
        "compilation.layers",
        *("compilation.detection", "compilation.modes"),
    ),
    "cuda_graphs.graph_capture_rows": (
        *("graph_capture.map:chains", "graph_capture.training", "graph_capture.pools"),
    ),
    "ladder.ladder_forward_rows": (
        *("ladder.inference", "ladder.decoding", "ladder.regimes"),
        *("ladder.graphs", "ladder.autotuned"),
    ),
    "ladder.ladder_rows": ("ladder.training",),
    "ladder.ladder_traffic_rows": ("ladder.traffic:traffic",),
    "precision.precision_rows": (
        *("precision.training", "precision.gradients"),
        *("precision.fp8", "precision.inference"),
    ),
    "sync_points.sync_points_rows": (
        *("sync_points.bench:bench", "sync_points.training_loop"),
        *("sync_points.timeline", "sync_points.found"),
    ),
    "sync_points.syncs_rows": (
        *("synchronizations.detected", "synchronizations.costs"),
        *("transfers.to_device", "transfers.hazard", "never.costs:never_costs"),
    ),
}
