"""What AOTAutograd and torch.compile make of a layer's backward graph."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from anatomy.experiments import autograd_blocks, autograd_costs, autograd_walk, cells
from anatomy.experiments.autograd_blocks import DEFAULT, MANUAL, Fused, Manual, Size
from anatomy.experiments.autograd_costs import ALLOWED_LAYER, Settings
from anatomy.experiments.compilation_cells import let_go, reason_of, without_caches
from anatomy.measuring import stopwatch_for

# Names of operators that describe the same memory anew; `getitem` takes a result out of several.
VIEWS = (
    *("view", "_unsafe_view", "reshape", "t", "transpose", "permute", "expand", "unsqueeze"),
    *("squeeze", "select", "slice", "split", "unbind", "alias", "detach", "as_strided", "getitem"),
)
# Stage -> how a joint graph is cut in two.
TRACED, RECOMPUTING = "traced", "traced, recomputing"


def table(size: Size, settings: Settings, backend: str) -> pd.DataFrame:
    """The graphs at each stage, and a step run eagerly and compiled.

    Args:
        size: The layer's.
        settings: How it is timed.
        backend: Of torch.compile.
    """
    where = settings.where
    ways: dict[str, nn.Module] = {MANUAL: Manual(size.sequence), DEFAULT: Fused()}
    found: list[dict] = []
    with without_caches():
        for name, way in ways.items():
            found += _stages(name, size, way, where)
            let_go(where)
        step = _steps(size, ways, settings, backend)
    let_go(where)
    return cells.joined([step, pd.DataFrame(found)], ("peak_bytes", "nodes", "saved_bytes"))


def _stages(name: str, size: Size, way: nn.Module, where: torch.device) -> list[dict]:
    """One way's graph without a compiler, and as AOTAutograd traces it."""
    rows = []
    for stage, look in (
        ("autograd", lambda: _eager(size, way, where)),
        (TRACED, lambda: _traced(size, way, where, recompute=False)),
        (RECOMPUTING, lambda: _traced(size, way, where, recompute=True)),
    ):
        try:
            rows.append(_at(name, stage) | look())
        except Exception as error:  # the other stages can be looked at all the same
            rows.append(_at(name, stage) | {"note": reason_of(error)})
        torch.compiler.reset()
    return rows


def _at(name: str, stage: str) -> dict[str, str]:
    return {"op": "graphs", "variant": f"{name}, {stage}", "attention": name, "stage": stage}


def _eager(size: Size, way: nn.Module, where: torch.device) -> dict[str, Any]:
    model = autograd_blocks.layer(size, way, where)
    return _seen_by_autograd(model, model, size, where)


def _seen_by_autograd(
    run: Callable[[Tensor], Tensor], model: nn.Module, size: Size, where: torch.device
) -> dict[str, Any]:
    """The graph that a call leaves behind, and what is held for it."""
    x = autograd_blocks.drawn(size, where)
    run(x)  # compiles; tensors that it saves for itself are none of the graph's
    out, kept = autograd_walk.held(lambda: run(x))
    seen = autograd_walk.counts(autograd_walk.walk(out.grad_fn))
    there = [x, *model.parameters(), *model.buffers()]
    return {name: seen[name] for name in ("nodes", "shape_nodes", "node_names")} | between(
        kept, there
    )


def between(kept: Sequence[Any], there: Sequence[Tensor]) -> dict[str, int]:
    """Tensors that the forward pass leaves for the backward pass, each memory once, and their bytes.

    Args:
        kept: All that is handed over, numbers among it.
        there: What is there anyway, such as weights.
    """
    known = {autograd_walk.storage_of(each)[0] for each in there}
    memory = dict(autograd_walk.storage_of(each) for each in kept if isinstance(each, Tensor))
    sizes = [size for place, size in memory.items() if place not in known]
    return {"saved_tensors": len(sizes), "saved_bytes": sum(sizes)}


def _traced(size: Size, way: nn.Module, where: torch.device, *, recompute: bool) -> dict[str, Any]:
    """The two graphs that AOTAutograd makes of a layer before a compiler sees them."""
    # Imports that take seconds, which listing experiments should not.
    from functorch.compile import (
        default_partition,
        make_boxed_func,
        min_cut_rematerialization_partition,
    )
    from torch._dynamo.backends.common import aot_autograd

    graphs: dict[str, torch.fx.GraphModule] = {}
    handed: list[Any] = []

    def keeps(direction: str) -> Callable:
        def compiler(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable:
            graphs[direction] = graph

            def run(*given: Any) -> Any:
                if direction == "backward":
                    handed.extend(given)
                return graph.forward(*given)

            return make_boxed_func(run)

        return compiler

    backend = aot_autograd(
        fw_compiler=keeps("forward"),
        bw_compiler=keeps("backward"),
        partition_fn=min_cut_rematerialization_partition if recompute else default_partition,
    )
    model = autograd_blocks.layer(size, way, where)
    x = autograd_blocks.drawn(size, where)
    grad = torch.randn_like(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice on TF32, and on what is deprecated inside
        torch.compile(model, backend=backend, dynamic=False)(x).backward(grad)
    calls = operators(graphs["backward"])
    return {
        "nodes": len(calls),
        "shape_nodes": sum(name in VIEWS for name in calls),
        "forward_nodes": len(operators(graphs["forward"])),
    } | between(handed, [x, grad, *model.parameters(), *model.buffers()])


def operators(graph: torch.fx.GraphModule) -> list[str]:
    """Names of a graph's operators in order: `mm` for aten.mm.default."""
    found = []
    for node in graph.graph.nodes:
        if node.op == "call_function":
            packet = getattr(node.target, "_overloadpacket", node.target)
            found.append(packet.__name__.split(".")[-1])
    return found


def _steps(
    size: Size, ways: dict[str, nn.Module], settings: Settings, backend: str
) -> pd.DataFrame:
    """Forward and backward pass of each way, eagerly and compiled; and the compiled graphs."""
    where = settings.where
    watch = stopwatch_for(where)
    given = autograd_costs.problem(size, where)
    others: list[dict] = []
    steps: dict[str, Callable] = {}
    for name, way in ways.items():
        steps[name] = given.step(way)
        compiled = f"{name}, compiled"
        told = {"attention": name, "role": "variant", "quantity": "step_wall"}
        model = autograd_blocks.layer(size, way, where)
        run = torch.compile(model, backend=backend, dynamic=False)
        call = autograd_blocks.step(run, given.x, given.grad, list(model.parameters()))
        try:
            seconds = watch.wall([call])
            seen = _seen_by_autograd(run, model, size, where)
        except Exception as error:  # the other ways can be measured all the same
            why = {"note": reason_of(error)}
            others += [
                told | {"op": "step", "variant": compiled} | why,
                _at(name, "compiled") | why,
            ]
            continue
        steps[compiled] = call
        others.append(_at(name, "compiled") | seen)
        others.append(
            told
            | {"op": "first call", "variant": f"{compiled}, first call", "median_s": seconds}
            | {"samples": 1, "blocks_s": [seconds]}
            | {"method": "host clock around the first call and a synchronize"}
        )
    found = autograd_costs.timed(
        steps,
        {},
        settings,
        "step",
        against={f"{DEFAULT}, compiled": DEFAULT} if f"{DEFAULT}, compiled" in steps else None,
        reference=lambda: given.exact,
        allowed=ALLOWED_LAYER[size.dtype],
    )
    found["attention"] = found.variant.str.partition(",")[0].str.removesuffix(" (again)")
    return pd.concat([found, pd.DataFrame(others)], ignore_index=True)
