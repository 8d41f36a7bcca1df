"""Arguments that let every experiment run on a CPU in seconds, and what its table is like.

One that is not named here runs there with its defaults.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from unittest import mock

from anatomy.record import signatures

CPU = {"device": "cpu", "dtype": "fp32", "iters": 6}
SMALL = CPU | {"m": 32, "n": 32, "k": 64}
TRACED = {"device": "cpu", "backend": "eager"}  # a kernel compiled for a CPU takes seconds
TRAINING = {
    "device": "cpu",
    "dtype": "fp32",
    "width": 16,
    "sequence": 8,
    "iters": 3,
    "budget_s": 0.1,
}
# Experiments that a CPU has nothing to say to.
REFUSED = ("synchronizations.detected", "transfers.hazard")
REFUSED += ("sync_points.timeline", "sync_points.found")
NARROW = {"device": "cpu", "dtype": "fp32", "dmodel": 32, "nhead": 2}
QUICK = {"iters": 6, "budget_s": 0.05}
LADDER = {"width": 32, "layers": 1, "budget_s": 0.02}
# Arguments that let an experiment run in seconds on a laptop.
SIZES = {name: {"device": "cpu"} for name in REFUSED} | {
    "tensor_layout.report": {"device": "cpu", "m": 32, "k": 64},
    "tensor_layout.check": {"device": "cpu", "m": 32, "k": 64},
    "contiguity.bench": SMALL,
    "alignment.factorial": SMALL,
    "alignment.thresholds": SMALL,
    "remedies.payback": SMALL,
    "remedies.compiled": SMALL,
    "limits.ceilings": {"device": "cpu", "scale": 0.005, "iters": 6},
    "limits.bandwidth": {"device": "cpu", "scale": 0.001, "iters": 6},
    "limits.floors": {"device": "cpu", "iters": 6},
    "limits.sustained": {"device": "cpu", "side": 32, "seconds": 0.2},
    "harnesses.estimates": {"device": "cpu", "scale": 0.005, "replicates": 1, "budget_s": 0.01},
    "worked_example.kernel": {"device": "cpu", "dtype": "fp32", "m": 64, "k": 64},
    "harnesses.reference": {"device": "cpu", "scale": 0.005},
    "precision.training": {"device": "cpu", "scale": 1 / 64, "iters": 6},
    "precision.gradients": {"device": "cpu", "width": 32, "tokens": 32},
    "precision.fp8": {"device": "cpu", "scale": 1 / 64, "iters": 6},
    "precision.inference": {"device": "cpu", "scale": 1 / 64, "iters": 6},
    "synchronizations.costs": {"device": "cpu", "scale": 1e-6, "iters": 6},
    "sync_points.bench": CPU | {"largest": 64},
    "sync_points.training_loop": {"device": "cpu", "steps": 2, "every": 1, "scale": 1 / 64},
    "transfers.to_device": {"device": "cpu"},
    "never.costs": {"device": "cpu", "scale": 1e-5, "iters": 6},
    "compilation.map": TRACED | {"dtype": "fp32", "scale": 1 / 32, "iters": 6, "budget_s": 0.02},
    "compilation.layers": TRACED | {"scale": 1 / 32, "iters": 6, "budget_s": 0.02},
    "compilation.autotuned": TRACED | {"scale": 1 / 32, "iters": 6, "budget_s": 0.02},
    "compilation.breaks": TRACED | {"scale": 1 / 64, "iters": 6, "budget_s": 0.02},
    "compilation.recompiles": TRACED | {"width": 16},
    "compilation.detection": {"device": "cpu"},
    "compilation.modes": {"device": "cpu"},
    "attention.backends": CPU | {"heads": 2, "head_width": 16, "longest": 64},
    "attention.choices": {"device": "cpu", "heads": 2, "head_width": 16, "sequence": 64},
    "bottlenecks.confusion": {"device": "cpu", "scale": 0.005, "budget_s": 0.02},
    "bottlenecks.profiled_call": {"device": "cpu", "scale": 0.05},
    "graph_capture.map": {"device": "cpu", "scale": 1e-5, "iters": 6},
    "graph_capture.training": {"device": "cpu", "scale": 0.01, "iters": 6},
    "graph_capture.pools": {"device": "cpu"},
    "ladder.traffic": {"device": "cpu"},  # counted on paper there
    "channels_last.map": CPU | {"scale": 0.04, "budget_s": 0.05},
    "channels_last.network": CPU
    | {"scale": 0.1, "width": 4, "side": 32, "short": True, "budget_s": 0.05},
    "checkpointing.frontier": TRAINING | {"depth": 2, "batch": 1},
    "checkpointing.traps": {"device": "cpu", "width": 16},
    "accumulation.gradients": {
        "device": "cpu",
        "width": 16,
        "layers": 1,
        "vocabulary": 32,
        "batch": 8,
        "sequence": 8,
    },
    "accumulation.steps": TRAINING | {"layers": 1, "batch": 8},
    "ladder.inference": TRACED | LADDER | {"batch": 1, "sequence": 16},
    "ladder.decoding": TRACED | LADDER | {"context": 16},
    "ladder.regimes": TRACED | {"scale": 1 / 64, "budget_s": 0.02},
    "ladder.graphs": TRACED | LADDER | {"sequence": 16},
    "ladder.autotuned": TRACED | LADDER | {"batch": 1, "sequence": 16},
    "ladder.training": TRACED
    | {"width": 32, "batch": 2, "sequence": 16, "iters": 6, "budget_s": 0.05},
    "distributed.collectives": {"device": "cpu", "world_size": 1, "scale": 1e-5, "blocks": 1},
    "distributed.training": {"device": "cpu", "world_size": 1, "scale": 0.01, "blocks": 1},
    "distributed.overlap": {"device": "cpu", "world_size": 1, "scale": 0.01},
    "distributed.memory": {"device": "cpu", "world_size": 1, "scale": 0.01},
    "profiling.overhead": {"device": "cpu", "scale": 0.01, "rounds": 1},
    "roofline.first_layer": TRACED | {"scale": 1 / 64, "iters": 6, "budget_s": 0.02},
    "roofline.operations": {"device": "cpu", "scale": 1e-6, "iters": 6, "budget_s": 0.02},
    "capture.calls": TRACED | {"scale": 1e-5, "iters": 6, "budget_s": 0.05},
    "fusion.chains": TRACED | {"scale": 1e-5, "iters": 6, "budget_s": 0.05},
    "fusion.patterns": TRACED | {"scale": 0.005, "iters": 6, "budget_s": 0.05},
    "fusion.matmuls": TRACED | {"scale": 0.01, "iters": 6, "budget_s": 0.05},
    "autograd_graph.census": NARROW | {"seq": 16},
    "autograd_graph.nodes": NARROW | {"seq": 16, "repeats": 2},
    "autograd_graph.costs": NARROW | QUICK | {"longest": 128, "side": 32, "scale": 0.1},
    "autograd_graph.traced": NARROW | {"seq": 16},
    "dispatch.keys": {"device": "cpu"},
    "timing.ways": {"device": "cpu", "side": 16, "iters": 6},
    "timing.equals": {"device": "cpu", "side": 16, "samples": 48},
    "autograd_graph.compiled": NARROW | QUICK | {"seq": 16, "backend": "aot_eager"},
}
TOY = {name: {"device": "cpu"} for name in signatures.experiments()} | SIZES
# Tables of another form than a comparison's: reports without times, and harnesses' figures.
OTHER_FORMS = (
    "distributed.",
    "limits.sustained",
    "tensor_layout.",
    "harnesses.",
    "precision.gradients",
    *REFUSED,
    "compilation.recompiles",
    "compilation.detection",
    "compilation.modes",
    "attention.choices",
    "bottlenecks.profiled_call",
    "graph_capture.pools",
    "ladder.traffic",
    "checkpointing.traps",
    "accumulation.gradients",
    *("ladder.graphs", "ladder.autotuned"),
    *("dispatch.keys", "timing.equals"),
    *("capture.catalogue", "capture.code"),
    *("autograd_graph.census", "autograd_graph.nodes", "autograd_graph.traced"),
)
# Tables in which several comparisons share an operation, each with a control of its own.
SEVERAL_CONTROLS = ("remedies.payback", "limits.bandwidth")


@contextmanager
def small() -> Iterator[None]:
    """What is large for a GPU's sake, or compiled, takes a CPU seconds: less of it."""
    import torch
    from torch._inductor import cpu_vec_isa

    from anatomy.chapters.capture import capture
    from anatomy.chapters.compilation import chains
    from anatomy.chapters.launches import launches
    from anatomy.chapters.precision import fp8
    from anatomy.chapters.profiling import profiling

    functions = capture.ways().FUNCTIONS
    few = {name: functions[name] for name in ("if on a shape", ".item()")}
    with ExitStack() as patched:
        for each in (
            mock.patch.object(launches, "COUNT", 2**16),
            mock.patch.object(chains, "BREAKS", (0, 1, 4)),
            mock.patch.object(fp8, "compiled", partial(torch.compile, backend="eager")),
            mock.patch.dict(functions, few, clear=True),
            mock.patch.object(profiling, "STEPS", 1),
            mock.patch.object(profiling, "WARM_UPS", 1),
            # Which Inductor would find out by compiling a program for each.
            mock.patch.object(cpu_vec_isa, "valid_vec_isa_list", list),
        ):
            patched.enter_context(each)
        yield
