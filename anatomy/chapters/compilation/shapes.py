"""One compiled function of many lengths: how often it compiles, and what that takes."""

from collections.abc import Callable

import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from anatomy.chapters.compilation import requirements
from anatomy.chapters.compilation.requirements import SHORTEST, STEP
from anatomy.measure import stopwatch_for
from anatomy.measure.stopwatch import Stopwatch
from anatomy.parts import memory
from anatomy.parts.compiled import without_caches
from anatomy.parts.grid import reason_of
from anatomy.table.errors import BadParameter

# Way -> (dynamic=, whether mark_dynamic is used, whether the recompile limit is raised).
WAYS = {
    "automatic": (None, False, False),
    "static": (False, False, False),
    "dynamic": (True, False, False),
    "marked": (None, True, False),
    "static, higher limit": (False, False, True),
}


def measure(where: torch.device, backend: str, lengths: int, width: int) -> pd.DataFrame:
    """The table of all ways; fewer than two lengths raise BadParameter."""
    if lengths < 2:
        raise BadParameter(f"lengths={lengths}: a change of length takes two; try lengths=2.")
    on = memory.capacity(where)
    (required,) = requirements.recompiles(on, lengths, width)
    if why := required.why_not(on):
        return pd.DataFrame([{"variant": way, "lengths": lengths, "note": why} for way in WAYS])
    watch = stopwatch_for(where)
    inputs = [torch.randn(1, SHORTEST + i * STEP, width, device=where) for i in range(lengths)]
    weight = torch.randn(width, device=where)
    rows = []
    with torch.no_grad(), without_caches():
        # The imports and the first kernel of a process are no way's own.
        warm_up = torch.compile(torch.add, backend=backend)
        watch.wall([lambda: warm_up(weight, weight)])
        for way in WAYS:
            memory.give_back(where)
            try:
                told = _count(way, watch, backend, [x.clone() for x in inputs], weight)
            except Exception as error:  # the other ways can be counted all the same
                told = {"note": reason_of(error)}
            rows.append({"variant": way, "lengths": lengths} | told)
        memory.give_back(where)
    return pd.DataFrame(rows)


def _count(way: str, watch: Stopwatch, backend: str, inputs: list[Tensor], weight: Tensor) -> dict:
    import torch._dynamo as dynamo

    dynamic, marked, raised = WAYS[way]
    compiled, ran = 0, 0
    build = dynamo.lookup_backend(backend)

    def counting(graph: torch.fx.GraphModule, examples: list) -> Callable:
        nonlocal compiled
        compiled += 1
        built = build(graph, examples)

        def run(*arguments: Tensor):
            nonlocal ran
            ran += 1
            return built(*arguments)

        return run

    limit = dynamo.config.recompile_limit
    wanted = 2 * len(inputs) if raised else limit
    with dynamo.config.patch(recompile_limit=wanted):
        run = torch.compile(elementwise, backend=counting, dynamic=dynamic)
        seconds = []
        for x in inputs:
            if marked:
                dynamo.mark_dynamic(x, 1)
            seconds.append(watch.wall([lambda x=x: run(x, weight)]))
    return {
        "compilations": compiled,
        "recompile_limit": wanted,
        "calls_without_graph": len(inputs) - ran,
        "first_s": seconds[0],
        "total_s": sum(seconds),
        "method": "host clock around each call and a synchronize, one call of each length",
    }


def elementwise(x: Tensor, weight: Tensor) -> Tensor:
    """(B, T, C) to (B, T, C)."""
    return F.gelu(x) * weight + x
