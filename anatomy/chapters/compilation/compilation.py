"""torch.compile: when it pays, what it costs, and what breaks the graphs that it makes."""

import contextlib
import io
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.compilation import chains, requirements, shapes
from anatomy.chapters.compilation import layers as compilation_layers
from anatomy.numerics import formats
from anatomy.parts import compiled, memory, sizes
from anatomy.parts.grid import reason_of
from anatomy.record.bounds import Between, Count, Length, Scale, Seconds
from anatomy.record.declare import experiment
from anatomy.table.errors import AnatomyError

# The script that pages show and `detection` runs.
SCRIPT = Path(__file__).parents[3] / "snippets" / "graph_break_check.py"
# Words in an option's name that would tie it to running a model forwards alone, or to training it.
INFERENCE_WORDS, TRAINING_WORDS = ("infer", "freez"), ("train", "backward")


@experiment("compilation.map", page="axioms/compile.md", command="compile-map", timeout_s=300)
def map(
    device: str = "cuda:0",
    task: Literal["training", "inference"] = "training",
    dtype: Literal["bf16", "fp32", "tf32"] = "bf16",
    backend: Literal["inductor", "eager"] = "inductor",
    scale: Scale = 1.0,
    iters: Count = 12,
    budget_s: Seconds = 1.5,
    full: bool = False,
) -> pd.DataFrame:
    """Time one transformer layer, run eagerly and compiled, over its width and its tokens.

    Args:
        task: Forward and backward pass (training), or the forward pass alone (inference).
        full: Measure a finer map, and max-autotune in one of its cells; takes many minutes.

    Returns:
        A comparison for each cell, in step_wall, for the host's dispatch is what compiling saves in
        small layers: `eager`, the control; `compiled`, with defaults; in some cells
        `reduce-overhead`, with CUDA graphs, whose memory is in `reserved_bytes` alone. Rows of op
        `first call` hold `setup_s`, one sample each; `compiler, first call` is its start.
    """
    where = formats.torch_device(device)
    required = requirements.map(memory.capacity(where), task, dtype, scale, full)
    how = where, dtype, backend, iters, budget_s, required
    return compiled.measure(sizes.layer_cells(scale, full), task == "training", *how)


@experiment("compilation.layers", page="axioms/compile.md", command="compile-layers", timeout_s=240)
def layers(
    device: str = "cuda:0",
    backend: Literal["inductor", "eager"] = "inductor",
    scale: Scale = 1.0,
    iters: Count = 12,
    budget_s: Seconds = 1.5,
) -> pd.DataFrame:
    """Time layers with little and with much to fuse, and stacks of 2, 4 and 8 of them.

    Returns:
        A comparison for each cell, in step_wall, of a training step: `eager`, the control, and
        `compiled`. `layer`: `few kernels` is the map's, `written out` is made of elementwise
        operations. `dtype`: bf16, or autocast to it of weights in float32 (`amp bf16`).
    """
    where = formats.torch_device(device)
    cells = requirements.layer_cells(scale)
    return compilation_layers.measure(cells, where, backend, iters, budget_s)


@experiment(
    "compilation.autotuned",
    page="axioms/compile.md",
    command="compile-autotuned",
    timeout_s=1800,
    on_request=True,
)
def autotuned(
    device: str = "cuda:0",
    backend: Literal["inductor", "eager"] = "inductor",
    layers: Count = 2,
    scale: Scale = 1.0,
    iters: Count = 12,
    budget_s: Seconds = 1.5,
) -> pd.DataFrame:
    """Time a stack of layers in max-autotune, which tries kernels for minutes before a first step.

    Args:
        layers: Layers of the stack.

    Returns:
        A comparison as those of `compilation.layers`, with `max-autotune` beside `compiled`, but
        without the CUDA graphs that this mode also has.
    """
    where = formats.torch_device(device)
    cell = requirements.scaled_cell(scale, *requirements.STACK, layers)
    modes = compilation_layers.TUNED_MODES
    return compilation_layers.measure([cell], where, backend, iters, budget_s, modes)


@experiment("compilation.breaks", page="axioms/compile.md", command="compile-breaks", timeout_s=240)
def breaks(
    device: str = "cuda:0",
    backend: Literal["inductor", "eager"] = "inductor",
    scale: Scale = 1.0,
    iters: Count = 12,
    budget_s: Seconds = 3.0,
) -> pd.DataFrame:
    """Put 0 to 16 graph breaks into a chain of layers, and time what each of them costs.

    Returns:
        A comparison for each `chain`, in step_wall: in those of products no kernel reaches across
        layers, in `large elementwise` one could do them all. Variants are the compiled chain with
        so many breaks, its control without any, and `eager`. The row with most breaks has
        `break_s`.
    """
    where = formats.torch_device(device)
    return chains.measure(where, backend, scale, iters, budget_s)


@experiment(
    "compilation.recompiles", page="axioms/compile.md", command="compile-recompiles", timeout_s=240
)
def recompiles(
    device: str = "cuda:0",
    backend: Literal["inductor", "eager"] = "inductor",
    lengths: Annotated[int, Between(2, 1_000)] = 12,
    width: Length = 1024,
) -> pd.DataFrame:
    """Call one compiled function with many sequence lengths, and count what it compiles.

    Args:
        backend: What torch.compile hands its graphs to; eager only traces them, for tests.
        lengths: How many different lengths, one call each; at least 2.

    Returns:
        One row per `variant`: `automatic` is the default, `static` dynamic=False, `dynamic`
        dynamic=True, `marked` the default with mark_dynamic, `static, higher limit` has a recompile
        limit above the number of lengths. Times are the host's, each once, with no cache from
        before.
    """
    where = formats.torch_device(device)
    return shapes.measure(where, backend, lengths, width)


@experiment(
    "compilation.detection",
    page="axioms/compile.md",
    command="compile-detection",
    timeout_s=120,
    files=("snippets/graph_break_check.py",),
)
def detection(device: str = "cuda:0") -> pd.DataFrame:
    """Ask torch.compile which of twelve small functions it can trace as one graph.

    One row per function of the script snippets/graph_break_check.py.
    """
    where = formats.torch_device(device)
    if not SCRIPT.exists():
        raise AnatomyError(f"{SCRIPT.name} belongs to the checkout; clone it, and run this there.")
    script = runpy.run_path(str(SCRIPT))
    x = torch.linspace(-1.0, 2.0, 64, device=where)
    check = script["graph_breaks"]
    rows = [_detected(name, case, check, x) for name, case in script["CASES"].items()]
    torch.compiler.reset()
    return pd.DataFrame(rows)


def _detected(name: str, case: Callable, graph_breaks: Callable, x: Tensor) -> dict:
    import torch._dynamo  # takes seconds, which listing experiments should not

    with contextlib.redirect_stdout(io.StringIO()):  # one of them prints
        reasons = graph_breaks(case, x)
        torch.compiler.reset()
        found = torch._dynamo.explain(case)(x)
        torch.compiler.reset()
        error = None
        try:
            torch.compile(case, backend="eager", fullgraph=True)(x)
        except Exception as raised:  # what it raises is the finding
            error = reason_of(raised)
    return {
        "variant": name,
        "graphs": found.graph_count,
        "breaks": found.graph_break_count,
        "reason": reasons[0] if reasons else None,
        "fullgraph": "raises" if error else "compiles",
        "error": error,
    }


@experiment("compilation.modes", page="axioms/compile.md", command="compile-modes", timeout_s=120)
def modes(device: str = "cuda:0") -> pd.DataFrame:
    """List the modes of torch.compile, and the options that each of them sets.

    Args:
        device: The machine whose torch is asked; its device does no work.

    Returns:
        One row per mode, as torch._inductor.list_mode_options tells them.
    """
    formats.torch_device(device)
    import torch._inductor

    return pd.DataFrame(
        [_mode(name, options) for name, options in torch._inductor.list_mode_options().items()]
    )


def _mode(name: str, options: dict) -> dict:
    tied = {
        "inference": any(word in option for option in options for word in INFERENCE_WORDS),
        "training": any(word in option for option in options for word in TRAINING_WORDS),
    }
    told = [task for task, found in tied.items() if found]
    return {
        "variant": name,
        "options": ", ".join(f"{key}={value}" for key, value in options.items()) or "none",
        "option_count": len(options),
        "cudagraphs": bool(options.get("triton.cudagraphs")),
        "max_autotune": bool(options.get("max_autotune")),
        "tied_to": told[0] if len(told) == 1 else "neither",
    }
