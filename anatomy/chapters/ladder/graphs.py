"""What rung 3's compiler makes of a step. The rows of a table are of several kinds, by `part`:

* `time`: a comparison in step_wall of op `forward and backward`; the control is `2 amp bf16`, not
  compiled, or `3 default`. The kernels of `3 reduce-overhead` are those launched one by one.
* `breaks`: what torch._dynamo.explain and fullgraph=True say of `training step` and `forward pass`.
* `code`: each kernel that the generated code of a `mode` calls, one line for each call; mode
  `elementwise on a CPU` is another small function.
* `kernel`: each kernel that the profiler saw in one step of a `mode`, a library's choices too.

Graph breaks, kernels and the code for the CPU are asked for where the control is not compiled.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from anatomy.chapters.ladder import comparison, copies, gates, kernels, regimes, requirements, rungs
from anatomy.chapters.ladder.requirements import FORWARD_BACKWARD as OP
from anatomy.chapters.ladder.requirements import Size
from anatomy.chapters.ladder.rungs import DEFAULT, FUSED, REDUCED, TUNED, Call, Way
from anatomy.comparison import compare
from anatomy.measure import stopwatch_for
from anatomy.parts import memory
from anatomy.parts.grid import reason_of

QUANTITY = "step_wall"
SETTLE_S = 1.0
MODES, TUNED_MODES = (FUSED, DEFAULT, REDUCED), (DEFAULT, REDUCED, TUNED)
# Lines of generated code that launch something -> who made it.
CALLS = {
    re.compile(r"^\s+(triton_\w+)\.run\(", re.MULTILINE): "Triton",
    re.compile(r"^\s+(cpp_fused\w*)\(", re.MULTILINE): "C++",
    re.compile(r"extern_kernels\.(\w+)\("): "library",
    re.compile(r"torch\.ops\.(\w+\.\w+)(?:\.\w+)?\("): "library",
}
PASS = re.compile(r"AOT ID: \['\d+_(\w+)'\]")


def measure(
    ways: Sequence[Way], size: Size, where: torch.device, backend: str, budget_s: float
) -> pd.DataFrame:
    """The table of these ways of one step, the control first, those with CUDA graphs last. Errors
    are AnatomyError, where the control can't be timed and BadParameter."""
    copies.require_width(size.width)
    if why := requirements.few_ways(OP, size).why_not(memory.capacity(where)):
        rows = [_refused(way, why) for way in ways]
    else:
        rows = _all_rows(ways, size, where, backend, budget_s)
    sizes = size.columns | {"tokens": size.batch * size.sequence}
    rows = [sizes | {"device": where.type} | row for row in rows]
    table = pd.DataFrame(rows, dtype=object)  # counts stay whole where other rows have none
    table.attrs["sparse"] = True  # a row has the columns that its part needs
    return table


def _all_rows(ways, size, where, backend, budget_s) -> list[dict]:
    structure = FUSED in ways
    watch = stopwatch_for(where)
    with copies.apart(where):
        x, target = rungs.problem(size.width, size.batch, size.sequence, where)
        wanted = rungs.reference(size.layers, size.width, x, target)
        # Asking for breaks forgets all compiled code, so it comes first.
        rows = _breaks(size, x, target) if structure else []
        with gates.compiled_by(backend):
            rows += _on_the_cpu() if structure else []
            rows += _steps(ways, size, x, target, wanted, watch, budget_s)
    return rows


def _steps(ways, size, x, target, wanted, watch, budget_s) -> list[dict]:
    """The comparison, the generated code, and the kernels of what launches them one by one."""
    where = watch.device
    calls, told, kept, rows = {}, {}, [], []
    for way in ways:
        with code_kept() as codes:
            try:
                copies.require_possible(way, where)
                script, model = regimes.new(way, size, where)
                call, known = regimes.ready(way, script, model, x, target, wanted)
            except Exception as error:  # the other ways can be measured all the same
                if way == ways[0]:
                    raise copies.no_comparison(way, error) from error
                rows.append(_refused(way, copies.why(error)))
                continue
        calls[way.label], told[way.label] = call, known
        kept.append((script, model))  # a graph goes on using their memory
        found = [row for code in dict.fromkeys(codes) for row in kernels_called(code)]
        rows += [{"part": "code", "mode": way.label} | row for row in found]
        told[way.label] |= _calls_by_maker(found)
        if not way.graph:  # those come last: no CUDA graph exists yet
            seen = kernels.profiled(call, watch)
            rows += [_launched(way, *kernel) for kernel in seen.pop("kernel_seconds", ())]
            told[way.label] |= seen

    def measured(left: dict[str, Call]) -> pd.DataFrame:
        return compare(
            left,
            reference=lambda: torch.tensor(wanted.loss, dtype=torch.float64),
            allowed={way.label: way.loss for way in ways},
            quantity=QUANTITY,
            op=OP,
            flops=3 * size.flops,
            limit="matmul bf16",
            device=where,
            budget_s=budget_s,
            settle_cap_s=min(SETTLE_S, budget_s),
            profile=False,
        ).table

    table, blamed = comparison.without_culprits(measured, calls, ways[0].label)
    rows += [_refused(way, blamed[way.label]) for way in ways if way.label in blamed]
    timed = []
    for row in table.to_dict("records"):
        known = told[row["variant"].removesuffix(" (again)")]
        row = {name: value for name, value in row.items() if name not in known} | known
        timed.append({"part": "time"} | row)
    return timed + rows


def _breaks(size: Size, x: Tensor, target: Tensor) -> list[dict]:
    rows = []
    for name, given in (("training step", (x, target)), ("forward pass", (x, None))):
        script, model = regimes.new(DEFAULT, size, x.device)
        make = (
            (lambda s=script, m=model: s.step(m, x, target, DEFAULT.name))
            if name == "training step"
            else (lambda s=script, m=model: s.inference(m, x, DEFAULT.name))
        )
        row = {"part": "breaks", "variant": name}
        try:
            function = copies.handed_over(make)[0]
            with torch.autocast(x.device.type, torch.bfloat16):
                rows.append(row | graph_breaks(function, given))
        except Exception as error:  # the rest can be measured all the same
            rows.append(row | {"note": reason_of(error)})
    return rows


def graph_breaks(function: Callable, given: Sequence[Tensor | None]) -> dict:
    """Graphs and breaks of a function, and whether fullgraph=True takes it; nothing is compiled."""
    import torch._dynamo  # takes seconds, which listing experiments should not

    found = torch._dynamo.explain(function)(*given)
    torch._dynamo.reset()
    reasons = [str(each.reason) for each in found.break_reasons]
    error = None
    try:
        torch.compile(function, backend="eager", fullgraph=True)(*given)
    except Exception as raised:  # what it raises is the finding
        error = reason_of(raised)
    torch._dynamo.reset()
    return {
        "graphs": found.graph_count,
        "breaks": found.graph_break_count,
        "reason": reasons[0].partition("\n")[0] if reasons else None,
        "fullgraph": "raises" if error else "compiles",
        "error_told": error,
    }


def _on_the_cpu() -> list[dict]:
    """Whose kernel the same compiler makes of a few elementwise operations on a CPU."""

    def elementwise(x: Tensor) -> Tensor:
        return F.gelu(x) * 2 + 1

    import torch._inductor.config as config  # takes seconds, which listing experiments should not

    row = {"part": "code", "mode": "elementwise on a CPU", "device": "cpu"}
    try:
        with config.patch({"cpp.vec_isa_ok": True}), _not_built(), code_kept() as codes:
            torch.compile(elementwise)(torch.ones(64))
    except Exception as error:  # the GPU's kernels can be told all the same
        return [row | {"note": reason_of(error)}]
    return [row | found for code in dict.fromkeys(codes) for found in kernels_called(code)]


@contextmanager
def _not_built() -> Iterator[None]:
    """Have generated C++ never compiled: its kernels do nothing. Nor is the host's compiler asked
    what it can do, by small programs for each instruction set, which takes half a minute."""
    from torch._inductor.async_compile import AsyncCompile  # takes seconds to import
    from torch._inductor.cpu_vec_isa import VecISA

    with (
        patch.object(AsyncCompile, "cpp_pybinding", lambda *_, **__: lambda *_: None),
        patch.object(VecISA, "check_build", lambda *_: False),
    ):
        yield


@contextmanager
def code_kept() -> Iterator[list[str]]:
    """The texts of all code that the compiler generates inside."""
    from torch._inductor.graph import GraphLowering  # takes seconds to import

    kept: list[str] = []
    with patch.object(GraphLowering, "save_output_code", kept.append):
        yield kept


def kernels_called(code: str) -> list[dict]:
    """What the code of one graph launches, who made that, and in which direction of the step."""
    found = PASS.search(code)
    counted = Counter(
        (match, maker) for pattern, maker in CALLS.items() for match in pattern.findall(code)
    )
    direction = found.group(1) if found else "unknown"
    return [
        {"direction": direction, "kernel": kernel, "made_by": maker, "count": count}
        for (kernel, maker), count in counted.items()
    ]


def _calls_by_maker(found: Sequence[dict]) -> dict[str, int | None]:
    """How many calls the generated code makes, by who made what is called; None without code."""
    if not found:
        return dict.fromkeys(("code_kernels", "triton_kernels", "triton_products"))
    triton = [row for row in found if row["made_by"] == "Triton"]
    return {
        "code_kernels": sum(row["count"] for row in found),
        "triton_kernels": sum(row["count"] for row in triton),
        "triton_products": sum(
            row["count"] for row in triton if kernels.kind_of(row["kernel"]) == "product"
        ),
    }


def _launched(way: Way, kernel: str, kind: str, count: int, seconds: float) -> dict:
    row = {"part": "kernel", "mode": way.label, "kernel": kernel, "made_by": maker_of(kernel)}
    return row | {"kind": kind, "count": count, "busy_s": seconds}


def maker_of(kernel: str) -> str:
    """Who wrote a kernel, by its name: `Triton` generated it, `PyTorch` and a `library` had it."""
    if kernel.startswith("triton_"):
        return "Triton"
    if kernels.MOVE.match(kernel):
        return "copy"
    return "PyTorch" if "at::native::" in kernel else "library"


def _refused(way: Way, why: str) -> dict:
    told = {"part": "time", "op": OP, "variant": way.label, "role": "variant"}
    return told | {"quantity": QUANTITY, "note": why} | way.columns
