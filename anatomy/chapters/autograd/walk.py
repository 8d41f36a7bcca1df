"""The graph that autograd builds, walked to its ends: its nodes and what each of them holds."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import torch
from torch import Tensor

# What the forward operation of a node did, by the node's name.
SHAPE, COPY, COMPUTE, ACCUMULATE = "shape", "copy", "compute", "accumulate"
# Operations that describe the same memory anew.
SHAPES = (
    *("View", "UnsafeView", "ReshapeAlias", "AsStrided", "Alias", "Detach"),
    *("T", "Transpose", "Permute", "Movedim", "Expand", "Unsqueeze", "Squeeze"),
    *("Unbind", "Select", "Slice", "Split", "SplitWithSizes", "Narrow", "Unfold", "Diagonal"),
)
COPIES = ("Clone", "ToCopy", "Copy")  # operations that write the same numbers somewhere else
FUSED = "ScaledDotProduct"
# Part of a fused node's name -> the backend that it belongs to, the longest first.
FUSED_BACKENDS = {
    "FlashAttentionForCpu": "flash (of the CPU)",
    "FlashAttention": "flash",
    "EfficientAttention": "efficient",
    "CudnnAttention": "cudnn",
}
MATH = "math"


@dataclass(frozen=True)
class Node:
    """One node of a graph."""

    number: int  # its place in the walk, from 0, the output's own node
    name: str  # what PyTorch calls it, without namespaces: `AddmmBackward0`
    kind: str  # what its forward operation did; ACCUMULATE at a tensor that collects its gradient
    next: tuple[int, ...]  # numbers of the nodes that it hands gradients to
    handle: Any  # PyTorch's own object


def walk(root: Any, ends: Collection[Any] = ()) -> list[Node]:
    """All nodes that can be reached from `root`, each once, depth first; `ends` are not entered."""
    place: dict[Any, int] = {}
    waiting = [root]
    while waiting:
        handle = waiting.pop()
        if handle in place or handle in ends:
            continue
        place[handle] = len(place)
        waiting += reversed(_following(handle))
    return [
        Node(
            number,
            short_name(handle),
            kind_of(short_name(handle)),
            tuple(place[each] for each in _following(handle) if each in place),
            handle,
        )
        for handle, number in place.items()
    ]


def _following(handle: Any) -> list[Any]:
    return [each for each, _ in handle.next_functions if each is not None]


def short_name(handle: Any) -> str:
    """The name of a node without namespaces."""
    return handle.name().split("::")[-1]


def kind_of(name: str) -> str:
    """What the forward operation of a node did, by the node's name."""
    operation = name.partition("Backward")[0]
    if name == "AccumulateGrad":
        return ACCUMULATE
    return SHAPE if operation in SHAPES else COPY if operation in COPIES else COMPUTE


def counts(nodes: Sequence[Node]) -> dict[str, Any]:
    """How many nodes there are of each kind, and of each name."""
    kinds = Counter(node.kind for node in nodes)
    names = Counter(node.name for node in nodes)
    listed = sorted(names.items(), key=lambda each: (-each[1], each[0]))
    return {
        "nodes": len(nodes) - kinds[ACCUMULATE],
        "compute_nodes": kinds[COMPUTE],
        "shape_nodes": kinds[SHAPE],
        "copy_nodes": kinds[COPY],
        "accumulate_nodes": kinds[ACCUMULATE],
        "node_names": ", ".join(f"{name} {count}" for name, count in listed),
    }


def signature(nodes: Sequence[Node]) -> str:
    """What two graphs share that have the same nodes and edges: all that a walk can see."""
    seen = [(node.name, node.next) for node in nodes]
    return sha256(repr(seen).encode()).hexdigest()[:12]


def fused_node(nodes: Sequence[Node]) -> str | None:
    """The name of the node of fused attention; None where no node stands for all of it."""
    return next((node.name for node in nodes if node.name.startswith(FUSED)), None)


def backend_of(name: str | None) -> str:
    """The backend that a node of fused attention belongs to; `math` has no node of its own."""
    if name is None:
        return MATH
    return next((b for part, b in FUSED_BACKENDS.items() if part in name), name)


def tree(nodes: Sequence[Node]) -> str:
    """The graph as lines of text. Where gradients part, the longest way goes on at its depth, and
    the others stand above it, further to the right; each node is followed where it comes first."""
    tall, lines, shown = heights(nodes), [], set()
    waiting = [(0, 0)]
    while waiting:
        number, depth = waiting.pop()
        node, known = nodes[number], number in shown
        shown.add(number)
        lines.append(f"{'| ' * depth}{number} {node.name}{' (see there)' if known else ''}")
        if node.next and not known:
            main = max(node.next, key=lambda each: tall[each])
            waiting.append((main, depth))
            waiting += [(each, depth + 1) for each in reversed(node.next) if each != main]
    return "\n".join(lines)


def heights(nodes: Sequence[Node]) -> dict[int, int]:
    """Of each node how many edges its longest way to an end has."""
    found: dict[int, int] = {}
    waiting = [node.number for node in nodes]
    while waiting:
        number = waiting[-1]
        unknown = [each for each in nodes[number].next if each not in found]
        if number in found or not unknown:
            below = [found[each] + 1 for each in nodes[number].next]
            found.setdefault(number, max(below, default=0))
            waiting.pop()
        waiting += unknown if number not in found else []
    return found


def saved(node: Node) -> dict[str, Tensor]:
    """The tensors that a node holds for the backward pass, by the name of the argument."""
    found = {}
    for attribute in dir(node.handle):
        if not attribute.startswith("_saved_"):
            continue
        try:
            value = getattr(node.handle, attribute)
        except (AttributeError, RuntimeError):  # given back already, or not to be had from Python
            continue
        name = attribute.removeprefix("_saved_")
        several = value if isinstance(value, tuple | list) else (value,)
        for place, each in enumerate(several):
            # A number in the code, such as a scale, is held as a tensor without axes.
            if isinstance(each, Tensor) and each.ndim:
                found[name if len(several) == 1 else f"{name}[{place}]"] = each
    return found


def storage_of(tensor: Tensor) -> tuple[int, int]:
    """Where a tensor's memory begins, and how many bytes it has."""
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes()


def watch(nodes: Sequence[Node], run: Callable[[], None]) -> tuple[list[int], dict[int, bool]]:
    """Numbers of the nodes in the order in which `run` goes backward through them; and which only
    hand on: every gradient that they gave lies in the memory of one that they got."""
    order: list[int] = []
    hands_on: dict[int, bool] = {}

    def seen(number: int) -> tuple[Callable, Callable]:
        def before(_: Any) -> None:
            order.append(number)

        def after(given: Sequence[Tensor | None], got: Sequence[Tensor | None]) -> None:
            places = {storage_of(each)[0] for each in got if each is not None}
            hands_on[number] = all(each is None or storage_of(each)[0] in places for each in given)

        return before, after

    handles = []
    for node in nodes:
        before, after = seen(node.number)
        handles.append(node.handle.register_prehook(before))
        if node.kind != ACCUMULATE:
            handles.append(node.handle.register_hook(after))
    try:
        run()
    finally:
        for handle in handles:
            handle.remove()
    return order, hands_on


def held(call: Callable[[], Tensor]) -> tuple[Tensor, list[Tensor]]:
    """The output of a call, and every tensor that its operations saved, each as often as saved."""
    kept: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        out = call()
    return out, kept


def bytes_of(kept: Sequence[Tensor], apart_from: Sequence[Tensor] = ()) -> dict[str, int]:
    """Bytes of saved tensors: all, each memory once, and without what is there anyway."""
    there = {storage_of(each)[0] for each in apart_from}
    once = dict(storage_of(each) for each in kept)
    return {
        "saved_tensors": len(kept),
        "counted_bytes": sum(each.numel() * each.element_size() for each in kept),
        "distinct_bytes": sum(once.values()),
        "saved_bytes": sum(size for place, size in once.items() if place not in there),
    }


def described(found: dict[str, Tensor]) -> Iterator[str]:
    """Saved tensors in words: `mat2 (24, 128, 128) float16`."""
    for name, tensor in found.items():
        shape = ", ".join(map(str, tensor.shape))
        yield f"{name} ({shape}) {str(tensor.dtype).removeprefix('torch.')}"
