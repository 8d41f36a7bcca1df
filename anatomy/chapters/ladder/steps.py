"""Every rung's training step, set up and put through its gates. Ways without CUDA graphs come first
and are profiled, which may crash beside a graph (github.com/pytorch/pytorch/issues/75504); ways
with graphs then use what was compiled for the same way without."""

import gc
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from anatomy.chapters.ladder import copies, gates, kernels, rungs
from anatomy.chapters.ladder.requirements import Size
from anatomy.chapters.ladder.rungs import Answer, Call, Way
from anatomy.measure.stopwatch import Stopwatch, compilations
from anatomy.parts import memory
from anatomy.table.errors import AnatomyError

WARM_UPS = 3  # calls after which compiled code, CUDA graphs and caches are there
FIRST_CALLS = 3  # rung 3 with CUDA graphs compiles, then records them, then replays them
SETTLING = 8  # steps that scales of the steps before are given to fit
# What is known of a way without CUDA graphs, and holds with them: they launch the same kernels.
SHARED = (
    *("counted_flops", "recomputed_flops", "counted_by", "backend", "backend_by"),
    *(f"{kind}_s" for kind in kernels.KINDS),
    *("busy_s", "kernels_per_call", "kernel_seconds"),
)


@dataclass
class Ready:
    """A way that has passed its gates: its step, and what is known of it."""

    way: Way
    model: nn.Module
    call: Call | None
    told: dict[str, Any] = field(default_factory=dict)


@dataclass
class Bench:
    """Where all ways are set up: one problem, and rung 0's answer to it."""

    size: Size
    x: Tensor  # (B, T, C)
    target: Tensor  # what `x` is to become
    wanted: Answer  # in float32
    watch: Stopwatch
    switches: dict[str, Any]  # those of the process
    _models: dict[tuple[str, str], nn.Module] = field(default_factory=dict)
    _first: dict[str, nn.Module] = field(default_factory=dict)  # by the format of its weights
    _optimizers: dict[tuple[str, int], torch.optim.Optimizer] = field(default_factory=dict)

    def model(self, way: Way) -> nn.Module:
        """The model of a way, shared where another way of its rung changes nothing in it; those of
        several rungs share their weights where these are the same."""
        if way.model not in self._models:
            script = rungs.script_on(way, self.x.device)
            model = script.build(self.size.width, self.size.layers, self.x.device)
            if way.rung.weights:
                use_weights_of(self._first.setdefault(way.rung.weights, model), model)
            self._models[way.model] = model
        return self._models[way.model]

    def optimizer(self, way: Way, model: nn.Module) -> torch.optim.Optimizer:
        """That of a rung, which changes no weight; one for all models of the same weights."""
        key = way.rung.script, id(next(model.parameters()))
        if key not in self._optimizers:
            script = rungs.script_on(way, self.x.device)
            self._optimizers[key] = script.optimizer_of(model, lr=0.0)
        return self._optimizers[key]

    def forget(self, ready: Iterable["Ready"]) -> None:
        """Let go of all models but those of `ready`."""
        kept = {each.way.model for each in ready}
        self._models = {name: model for name, model in self._models.items() if name in kept}


def use_weights_of(held: nn.Module, model: nn.Module) -> None:
    """Let `model` use the weights of `held`, and so its gradients, where names, shapes and values
    are the same; where they are not, it keeps its own, and its gates find out why."""
    theirs, own = dict(held.named_parameters()), dict(model.named_parameters())
    if theirs.keys() != own.keys():
        return
    if not all(torch.equal(theirs[name], own[name]) for name in own):
        return
    for name, weight in theirs.items():
        place, _, last = name.rpartition(".")
        setattr(model.get_submodule(place), last, weight)


def prepared(bench: Bench) -> tuple[list[Ready], dict[str, str]]:
    """All ways that pass their gates, in their order, and of the others why they do not."""
    ready: dict[str, Ready] = {}
    refused: dict[str, str] = {}
    # A library's own step may be none that can be captured, so graphs of it come last of all.
    for way in sorted(rungs.TRAINING, key=lambda way: (way.graph, way.graph and not way.mode)):
        same = way.plain and way.plain.label
        if same in refused:  # what a graph replays has been tried, and has not passed
            refused[way.label] = refused[same]
            continue
        try:
            ready[way.label] = prepare(way, bench, ready.get(same))
        except Exception as error:  # the other rungs can be measured all the same
            refused[way.label] = copies.why(error)
            gc.collect()  # what failed may hold itself in a circle
        if moved := gates.left_set(bench.switches):
            ready.pop(way.label, None)
            refused.setdefault(way.label, moved)
        give_back(bench.x.device)
    order = [way.label for way in rungs.TRAINING]
    return [ready[label] for label in order if label in ready], refused


def prepare(way: Way, bench: Bench, plain: Ready | None = None) -> Ready:
    """A way's step, once it has shown that it computes the same by the same work; `plain` is, of a
    way with CUDA graphs, the same way without. AnatomyError: it can't run here, or is void."""
    where, size = bench.x.device, bench.size
    copies.require_possible(way, where)
    if way.name not in rungs.script_on(way, where).WAYS:
        raise AnatomyError(f"{way.rung.script}.py has no way that is called {way.name!r}")
    model = bench.model(way)
    gates.require_equal_parameters(model, sum(g.numel() for g in bench.wanted.gradients))
    model.zero_grad(set_to_none=True)
    held = _reserved(where)
    call, told = _first(way, bench, model, plain)
    if way.delayed and not way.graph:
        told |= _settling(way, model, call, bench.wanted)
    found = rungs.answer(way, model, call, bench.x, bench.target)
    told["loss_error"], told["gradient_error"] = rungs.strays(found, bench.wanted)
    if reason := rungs.void(way, told["loss_error"], told["gradient_error"]):
        raise AnatomyError(reason)
    del found
    told |= {"parameters": sum(p.numel() for p in model.parameters())}
    if plain:
        told |= {name: plain.told[name] for name in SHARED if name in plain.told}
    elif not way.graph:
        told |= _counted(way, model, call, size)
    for _ in range(WARM_UPS):
        call()
    told |= _memory(model, call, where, held, way.graph)
    if not way.graph:
        told |= _profiled(call, bench.watch)
    return Ready(way, model, call, told)


def with_optimizer(each: Ready, bench: Bench) -> Call:
    """The same step with AdamW's behind it, warm. Its learning rate is 0, so that every step starts
    from the same weights; the work is the same."""
    script = rungs.script_on(each.way, bench.x.device)
    optimizer = bench.optimizer(each.way, each.model)
    call = script.step(each.model, bench.x, bench.target, each.way.name, optimizer)
    for _ in range(WARM_UPS):
        call()
    return call


def _first(way: Way, bench: Bench, model: nn.Module, plain: Ready | None) -> tuple[Call, dict]:
    """A way's step after its first calls, and what setting it up took. AnatomyError: it was to be
    compiled or to be captured, and was not."""
    script = rungs.load(way.rung.script)
    made: list[Call] = []
    compiled, skipped = compilations(), gates.skipped_graphs()
    late = way.graph and way.mode is not None and not way.same_code  # the compiler makes it

    def set_up() -> None:
        made.append(script.step(model, bench.x, bench.target, way.name))
        for _ in range(FIRST_CALLS if late else 1):
            made[0]()

    told: dict[str, Any] = {"setup_s": bench.watch.wall([set_up])}
    if way.mode is None:
        return made[0], told
    told["graphs"] = compilations() - compiled
    if plain and way.same_code:  # in one process it is compiled once
        told["setup_s"] += plain.told["setup_s"]
        told["graphs"] += plain.told["graphs"]
    if not told["graphs"]:
        raise AnatomyError("void: torch.compile compiled nothing; it ran uncompiled")
    if late and gates.skipped_graphs() > skipped:
        raise AnatomyError("void: torch.compile left CUDA graphs out; its log says why")
    return made[0], told


def _settling(way: Way, model: nn.Module, call: Call, wanted: Answer) -> dict[str, Any]:
    """How wrong the gradients of the first step are, and the step from which they are not: a scale
    of the steps before does not fit as long as there were none."""
    errors = []
    for number in range(1, SETTLING + 1):
        found = Answer(wanted.loss, rungs.gradients(model))
        errors.append(rungs.strays(found, wanted)[1])
        if errors[-1] <= way.gradients:
            return {"first_gradient_error": errors[0], "settled_at": number}
        call()
    return {"first_gradient_error": errors[0], "settled_at": None}


def _counted(way: Way, model: nn.Module, call: Call, size: Size) -> dict[str, Any]:
    """`counted_flops` and how they are known; AnatomyError where they are not those of rung 0."""
    if way.rung.backend == "Transformer Engine":  # its operators are its own
        work = gates.by_shapes(model, size.tokens)
    else:
        work = gates.counted(call)
    attention = 3 * size.attention_flops
    flops = gates.require_equal_work(work, 3 * size.flops - attention, attention)
    return {
        "counted_flops": flops,
        "recomputed_flops": flops - 3 * size.flops,
        "counted_by": work.counted_by,
        "backend": work.backend,
        "backend_by": "its operators" if work.backend else None,
    }


def _profiled(call: Call, watch: Stopwatch) -> dict[str, Any]:
    """Seconds of kernels by kind, and whose attention that was where their names tell."""
    found = kernels.profiled(call, watch)
    if not found or not found["kernel_seconds"]:
        return {}
    if found["backend"]:
        return found | {"backend_by": "its kernels"}
    return {name: value for name, value in found.items() if name != "backend"}


def _memory(model: nn.Module, call: Call, where: torch.device, held: int, graphs: bool) -> dict:
    """The memory of a step: its own peak, that with the weights, and what the card had to give."""
    model.zero_grad(set_to_none=True)
    found = memory.peak(call, where)
    if found is None:
        return memory.columns(None)
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    reserved = {"reserved_bytes": max(0, found.reserved_bytes - held) + weights}
    if graphs:  # their tensors lie in pools outside of the allocator's account
        return memory.columns(None) | reserved
    return {"peak_bytes": found.bytes, "total_peak_bytes": found.bytes + weights} | reserved


def _reserved(where: torch.device) -> int:
    """Bytes that the allocator holds of the card when it has given back what it can."""
    give_back(where)
    return torch.cuda.memory_reserved(where) if where.type == "cuda" else 0


def give_back(where: torch.device) -> None:
    """Give the driver back what no tensor holds any more."""
    if where.type == "cuda":
        torch.cuda.synchronize(where)
        torch.cuda.empty_cache()
