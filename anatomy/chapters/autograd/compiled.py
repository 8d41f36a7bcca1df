"""What AOTAutograd and torch.compile make of a layer's backward graph."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from anatomy.chapters.autograd import blocks, costs, walk
from anatomy.chapters.autograd.blocks import DEFAULT, MANUAL, Fused, Manual, Size
from anatomy.chapters.autograd.costs import ALLOWED_LAYER, Settings
from anatomy.measure import stopwatch_for
from anatomy.parts.compiled import without_caches
from anatomy.parts.grid import reason_of
from anatomy.parts.memory import give_back

# Names of operators that describe the same memory anew; `getitem` takes a result out of several.
VIEWS = (
    *("view", "_unsafe_view", "reshape", "t", "transpose", "permute", "expand", "unsqueeze"),
    *("squeeze", "select", "slice", "split", "unbind", "alias", "detach", "as_strided", "getitem"),
)
WAYS = (MANUAL, f"{MANUAL}, compiled", DEFAULT, f"{DEFAULT}, compiled")
TRACED, RECOMPUTING = "traced", "traced, recomputing"  # stage -> how a joint graph is cut in two


def graphs(size: Size, where: torch.device) -> list[dict]:
    """The backward graph without a compiler, and as AOTAutograd traces it, for both ways."""
    rows = []
    for name, way in _ways(size).items():
        for stage, look in (
            ("autograd", lambda way=way: _eager(size, way, where)),
            (TRACED, lambda way=way: _traced(size, way, where, recompute=False)),
            (RECOMPUTING, lambda way=way: _traced(size, way, where, recompute=True)),
        ):
            row = {"variant": f"{name}, {stage}", "attention": name, "stage": stage}
            try:
                rows.append(row | look())
            except Exception as error:  # the other stages can be looked at all the same
                rows.append(row | {"note": reason_of(error)})
            give_back(where)
    return rows


def _ways(size: Size) -> dict[str, nn.Module]:
    return {MANUAL: Manual(size.sequence), DEFAULT: Fused()}


def _eager(size: Size, way: nn.Module, where: torch.device) -> dict[str, Any]:
    model = blocks.layer(size, way, where)
    return _seen_by_autograd(model, model, size, where)


def _seen_by_autograd(
    run: Callable[[Tensor], Tensor], model: nn.Module, size: Size, where: torch.device
) -> dict[str, Any]:
    """The graph that a call leaves behind, and what is held for it."""
    x = blocks.drawn(size, where)
    run(x)  # compiles; tensors that it saves for itself are none of the graph's
    out, kept = walk.held(lambda: run(x))
    row = walk.counts(walk.walk(out.grad_fn))
    there = [x, *model.parameters(), *model.buffers()]
    return {key: row[key] for key in ("nodes", "shape_nodes", "node_names")} | between(kept, there)


def between(kept: Sequence[Any], there: Sequence[Tensor]) -> dict[str, int]:
    """Tensors kept for the backward pass that are not there anyway; each memory once."""
    known = {walk.storage_of(each)[0] for each in there}
    memory = dict(walk.storage_of(each) for each in kept if isinstance(each, Tensor))
    sizes = [size for place, size in memory.items() if place not in known]
    return {"saved_tensors": len(sizes), "saved_bytes": sum(sizes)}


def _traced(size: Size, way: nn.Module, where: torch.device, *, recompute: bool) -> dict[str, Any]:
    """The two graphs that AOTAutograd makes of a layer before a compiler sees them."""
    # Imports that take seconds, which listing experiments should not.
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.aot_autograd import make_boxed_func
    from torch._functorch.partitioners import default_partition, min_cut_rematerialization_partition

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
    model = blocks.layer(size, way, where)
    x = blocks.drawn(size, where)
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


def steps(size: Size, settings: Settings, backend: str) -> pd.DataFrame:
    """Forward and backward pass of each way, eagerly and compiled, and the graphs they leave."""
    where = settings.where
    with without_caches():
        # The first compilation of a process pays for the compiler's imports.
        one = torch.ones(8, device=where)
        stopwatch_for(where).wall([lambda: torch.compile(torch.add, backend=backend)(one, one)])
        found = _steps(size, settings, backend)
    give_back(where)
    return found


def _steps(size: Size, settings: Settings, backend: str) -> pd.DataFrame:
    where = settings.where
    watch = stopwatch_for(where)
    given = costs.problem(size, where)
    others: list[dict] = []
    calls: dict[str, Callable] = {}
    seen: dict[str, dict[str, Any]] = {}
    for name, way in _ways(size).items():
        model = blocks.layer(size, way, where)
        calls[name] = blocks.step(model, given.x, given.grad)
        seen[name] = _seen_by_autograd(model, model, size, where)
        compiled = f"{name}, compiled"
        told = {"attention": name, "role": "variant", "quantity": "step_wall"}
        run = torch.compile(model, backend=backend, dynamic=False)
        call = blocks.step(run, given.x, given.grad, list(model.parameters()))
        try:
            seconds = watch.wall([call])
            seen[compiled] = _seen_by_autograd(run, model, size, where)
        except Exception as error:  # the other ways can be measured all the same
            why = {"note": reason_of(error)}
            others.append(told | {"op": "step", "variant": compiled} | why)
            continue
        calls[compiled] = call
        others.append(
            told
            | {"op": "first call", "variant": f"{compiled}, first call", "median_s": seconds}
            | {"samples": 1, "blocks_s": [seconds]}
            | {"method": "host clock around the first call and a synchronize"}
        )
    both = f"{DEFAULT}, compiled"
    found = costs.timed(
        calls,
        {},
        settings,
        "step",
        against={both: DEFAULT} if both in calls else None,
        reference=lambda: given.exact,
        allowed=ALLOWED_LAYER[size.dtype],
    )
    origin = found.variant.str.removesuffix(" (again)")
    found["attention"] = origin.str.removesuffix(", compiled")
    for column in ("nodes", "shape_nodes", "node_names", "saved_tensors", "saved_bytes"):
        values = [seen[name][column] for name in origin]
        found[column] = pd.Series(values, found.index, dtype=object)
    return pd.concat([found, pd.DataFrame(others)], ignore_index=True)
