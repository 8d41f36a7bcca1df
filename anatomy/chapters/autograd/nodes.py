"""What every node of a layer's graph holds, launches and takes."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from anatomy.chapters.autograd import blocks, walk
from anatomy.chapters.autograd.blocks import DEFAULT, MANUAL, Layer, Size

EVALUATES = "autograd::engine::evaluate_function: "  # the event of all that one node does
WARM_UP = 3  # passes before any is looked at: allocations, and the choice of kernels
COLUMNS = ("device_s", "host_s", "kernels", "kernels_per_call")


def rows(size: Size, ordinary: Mapping[str, bool], where: torch.device, repeats: int) -> list[dict]:
    """All rows: those of the nodes of each graph, and what the layer holds."""
    names = (MANUAL, DEFAULT)
    ways = blocks.attends(size.sequence, ordinary)
    refused = blocks.refused(size, ways, where, names)
    found = []
    for name in names:
        if name in refused:
            found.append({"op": name, "variant": name, "note": refused[name]})
            continue
        model = blocks.layer(size, ways[name], where)
        x = blocks.drawn(size, where)
        grad = torch.randn_like(x)
        for _ in range(WARM_UP):
            _backward(model, x, grad)
        found.append({"op": "memory", "variant": name, "attention": name} | _memory(model, x))
        found += _nodes(name, model, x, grad, repeats)
    return found


def _backward(model: Layer, x: Tensor, grad: Tensor) -> None:
    """One step that leaves gradients in `.grad`, where there were none, as in a training loop."""
    _without_gradients(model, x)
    model(x).backward(grad)


def _without_gradients(model: Layer, x: Tensor) -> None:
    model.zero_grad(set_to_none=True)
    x.grad = None


def _memory(model: Layer, x: Tensor) -> dict[str, int | None]:
    """What is held between the passes, by the hooks and by the allocator."""
    _without_gradients(model, x)
    out, kept = walk.held(lambda: model(x))
    there = [x, *model.parameters(), *model.buffers()]
    found: dict[str, int | None] = dict(walk.bytes_of(kept, there))
    del out, kept
    found |= {"allocator_bytes": None, "output_bytes": None}
    if x.device.type == "cuda":
        torch.cuda.synchronize(x.device)
        before = torch.cuda.memory_allocated(x.device)
        out = model(x)
        torch.cuda.synchronize(x.device)
        found["allocator_bytes"] = torch.cuda.memory_allocated(x.device) - before
        found["output_bytes"] = out.numel() * out.element_size()
        del out
    return found


def _nodes(name: str, model: Layer, x: Tensor, grad: Tensor, repeats: int) -> Iterator[dict]:
    _without_gradients(model, x)
    out, inside = _with_attention(model, x)
    nodes = walk.walk(out.grad_fn)
    core = {node.number for node in nodes if node.handle in inside}
    inside.clear()
    saved = {node.number: walk.saved(node) for node in nodes}
    own = _own_bytes(saved, [x, *model.parameters(), *model.buffers()])
    held = {
        number: {
            "holds": "; ".join(walk.described(each)) or None,
            "held_bytes": sum(t.numel() * t.element_size() for t in each.values()),
            "own_bytes": own[number],
        }
        for number, each in saved.items()
    }
    saved.clear()
    order, hands_on = walk.watch(nodes, partial(out.backward, grad))
    place = {number: at for at, number in enumerate(order)}
    told = [(n.number, n.name, n.kind, n.next) for n in nodes]
    # Gradients are collected by the nodes of the weights, which would outlive this graph.
    del nodes, out
    times, why = _profiled(model, x, grad, [told[number][1] for number in order], repeats)
    for number, full, kind, following in told:
        row = {"op": name, "variant": f"{number} {full}", "attention": name, "node": number}
        row |= {"name": full, "kind": kind, "next": list(following)} | held[number]
        row |= {"part": "attention" if number in core else "rest"}
        row |= {"hands_on": hands_on.get(number), "runs_at": place.get(number)}
        row |= times[place[number]] if times and number in place else dict.fromkeys(COLUMNS)
        yield row | ({"remark": why} if why else {})


def _with_attention(model: Layer, x: Tensor) -> tuple[Tensor, set[Any]]:
    """The output of a layer, and the nodes between q, k, v and what attention makes of them."""
    inside: set[Any] = set()

    def look(_: Any, given: tuple[Tensor, ...], made: Tensor) -> None:
        ends = {each.grad_fn for each in given}
        inside.update(node.handle for node in walk.walk(made.grad_fn, ends))

    hook = model.attention.attend.register_forward_hook(look)
    try:
        return model(x), inside
    finally:
        hook.remove()


def _own_bytes(saved: dict[int, dict[str, Tensor]], apart_from: Sequence[Tensor]) -> dict[int, int]:
    """Of each node the bytes of memory that it is the first of the list to hold."""
    seen = {walk.storage_of(each)[0] for each in apart_from}
    found = {}
    for number, each in saved.items():
        found[number] = 0
        for tensor in each.values():
            where, size = walk.storage_of(tensor)
            found[number] += size if where not in seen else 0
            seen.add(where)
    return found


def _profiled(
    model: Layer, x: Tensor, grad: Tensor, expected: Sequence[str], repeats: int
) -> tuple[list[dict], str]:
    """What each node took in a profile of so many passes after the first; as `by_node` has it."""
    on_gpu = x.device.type == "cuda"
    kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with warnings.catch_warnings():
        # The profiler announces that events of one cycle are kept; there is only one here.
        warnings.filterwarnings("ignore", message=".*Profiler clears events")
        with profile(activities=kinds) as profiler:
            for _ in range(1 + repeats):  # the first one pays for the profiler's buffers
                _backward(model, x, grad)
                if on_gpu:
                    torch.cuda.synchronize(x.device)
    events = [each for each in profiler.events() if each.name.startswith(EVALUATES)]
    return by_node(events, expected, on_gpu)


def by_node(events: Sequence[Any], expected: Sequence[str], on_gpu: bool) -> tuple[list[dict], str]:
    """`COLUMNS` of each node, in the order of `expected`, out of the engine's events of all passes
    but the first; or an empty list, and why the events do not fit."""
    once = len(expected)
    # On a GPU's timeline the same names stand once more, over the kernels.
    host = [each for each in events if each.device_type == DeviceType.CPU]
    host.sort(key=lambda each: each.time_range.start)
    names = [each.name.removeprefix(EVALUATES).split("::")[-1] for each in host]
    passes = [names[at : at + once] for at in range(0, len(names), once)]
    if len(passes) < 2 or any(each != list(expected) for each in passes):
        return [], "the profiler's events are not those of the nodes, pass by pass"
    found = []
    for place in range(once):
        mine = host[once + place :: once]
        kernels = [_kernels(each) for each in mine]
        listed = kernels[0]
        found.append(
            {
                "device_s": median(sum(s for _, s in each) for each in kernels) if on_gpu else None,
                "host_s": median(each.cpu_time_total * 1e-6 for each in mine),
                "kernels": [name for name, _ in listed] if on_gpu else None,
                "kernels_per_call": len(listed) if on_gpu else None,
            }
        )
    return found, ""


def _kernels(event: Any) -> list[tuple[str, float]]:
    """Names and seconds of all that an event, and what it called, put on the device."""
    found = [(each.name, each.duration * 1e-6) for each in event.kernels]
    for child in event.cpu_children:
        found += _kernels(child)
    return found
