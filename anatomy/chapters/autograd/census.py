"""What a walk through a layer's graph finds: nodes by kind, gradients, and what changes them."""

import copy
import runpy
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from anatomy.chapters.autograd import blocks, walk
from anatomy.chapters.autograd.blocks import DEFAULT, LAYER, MANUAL, SCOPES, Layer, Size
from anatomy.diagnosis import op_counts
from anatomy.machine import host
from anatomy.numerics import formats
from anatomy.parts import attention
from anatomy.parts.attention import WAYS

# The script that a page shows and that is run here.
SCRIPT = Path(__file__).parents[3] / "snippets" / "fused_attention_check.py"
BATCHES, SEQUENCES = (1, 2, 4), (1, 64, 256)  # where the number of nodes might change
FORMATS, MASKS = ("fp16", "bf16", "fp32"), ("none", "causal", "given")


def rows(size: Size, ordinary: Mapping[str, bool], where: torch.device) -> list[dict]:
    """All rows of the census."""
    ways = blocks.attends(size.sequence, ordinary)
    refused = blocks.refused(size, ways, where)
    found = []
    for scope in SCOPES:
        for name in WAYS:
            told = {"op": f"graph {scope}", "variant": name, "scope": scope}
            if name in refused:
                found.append(told | {"note": refused[name]})
            else:
                found.append(told | _graph(size, ways[name], scope, where))
    found += _gradients(size, {n: way for n, way in ways.items() if n not in refused}, where)
    for batch, sequence in product(BATCHES, SEQUENCES):
        other = Size(batch, sequence, size.width, size.heads, size.dtype)
        found += _over_size(other, ordinary, where)
    found += _fused_nodes(size, ordinary, where)
    found += _operations(where)
    fused_nodes = runpy.run_path(str(SCRIPT))["fused_nodes"]
    for name in (name for name in WAYS if name not in refused):
        model = blocks.layer(size, ways[name], where)
        names = fused_nodes(blocks.outputs(size, model, LAYER, where))
        found.append({"op": "check", "variant": name, "found": ", ".join(names) or "none"})
    return found


def _graph(size: Size, attend: nn.Module, scope: str, where: torch.device) -> dict:
    model = blocks.layer(size, attend, where)
    nodes = walk.walk(blocks.outputs(size, model, scope, where).grad_fn)
    fused = walk.fused_node(nodes)
    ran = None if isinstance(attend, blocks.Manual) else walk.backend_of(fused)
    tree = walk.tree(nodes) if scope == LAYER else None
    return walk.counts(nodes) | {
        "signature": walk.signature(nodes),
        "fused_node": fused,
        "ran": ran,
        # On lines of their own, below the name of the column.
        "tree": tree and f"\n{tree}",
    }


def _gradients(size: Size, ways: Mapping[str, nn.Module], where: torch.device) -> Iterator[dict]:
    """Shape and statistics of every gradient, and how far it is from the one in float64."""
    x = blocks.drawn(size, where)
    grad = torch.randn_like(x)
    exact, free = None, host.free_bytes(where)
    if MANUAL in ways and (free is None or size.exact_bytes < free):
        model = blocks.layer(size, ways[MANUAL], where)
        exact = _gradients_of(copy.deepcopy(model).double(), x.detach().double(), grad.double())
    for name, attend in ways.items():
        model = blocks.layer(size, attend, where)
        for parameter, found in _gradients_of(model, x.detach(), grad).items():
            row = {"op": f"gradients {name}", "variant": parameter, "attention": name}
            wide = found.double()
            row |= {
                "shape": list(found.shape),
                "dtype": formats.number_format(found.dtype),
                "mean": float(wide.mean()),
                "deviation": float(wide.std()),
                "largest": float(wide.abs().max()),
                "zeros": float((found == 0).double().mean()),
                "finite": bool(found.isfinite().all()),
            }
            if exact is not None:
                off = torch.linalg.vector_norm(wide - exact[parameter])
                row["error"] = float(off / torch.linalg.vector_norm(exact[parameter]))
            yield row


def _gradients_of(model: Layer, x: Tensor, grad: Tensor) -> dict[str, Tensor]:
    named = dict(model.named_parameters())
    x = x.requires_grad_()
    found = torch.autograd.grad(model(x), [x, *named.values()], grad)
    return dict(zip(["input", *named], found, strict=True))


def _over_size(size: Size, ordinary: Mapping[str, bool], where: torch.device) -> Iterator[dict]:
    """The layer's graph at one batch and sequence, and what it takes to go through it."""
    ways = blocks.attends(size.sequence, ordinary)
    for name in (MANUAL, DEFAULT):
        row = {
            "op": "sizes",
            "variant": f"{name} B={size.batch} T={size.sequence}",
            "attention": name,
            "batch": size.batch,
            "sequence": size.sequence,
        }
        model = blocks.layer(size, ways[name], where)
        x = blocks.drawn(size, where)
        try:
            out, kept = walk.held(lambda model=model, x=x: model(x))
            nodes = walk.walk(out.grad_fn)
            kind = where.type
            work = op_counts.count(blocks.step(model, x, torch.randn_like(out)), kind)
        except (torch.OutOfMemoryError, RuntimeError) as error:
            yield row | {"note": f"{type(error).__name__} at this size"}
            continue
        counted = walk.counts(nodes)
        del counted["node_names"]  # of many graphs, of which few differ
        held = walk.bytes_of(kept, [x, *model.parameters(), *model.buffers()])
        row |= counted | {"signature": walk.signature(nodes)}
        yield row | {
            "saved_bytes": held["saved_bytes"],
            "layer_flops": None if work.failed else work.total_flops,
        }


def _fused_nodes(size: Size, ordinary: Mapping[str, bool], where: torch.device) -> Iterator[dict]:
    """The node that stands for attention, by number format and mask, as PyTorch chooses."""
    attention.throw(ordinary)
    B, T, H = size.batch, size.sequence, size.heads
    for dtype, mask in product(FORMATS, MASKS):
        row = {"op": "fused node", "variant": f"{dtype}, mask {mask}", "dtype": dtype, "mask": mask}
        kind = formats.storage(dtype)
        q, k, v = (
            torch.randn(B, H, T, size.width // H, device=where).to(kind).requires_grad_()
            for _ in range(3)
        )
        given = torch.ones(T, T, dtype=torch.bool, device=where).tril() if mask == "given" else None
        try:
            out = F.scaled_dot_product_attention(q, k, v, given, is_causal=mask == "causal")
        except RuntimeError as error:
            yield row | {"note": f"{type(error).__name__}: PyTorch runs none of its backends"}
            continue
        nodes = walk.walk(out.grad_fn)
        fused = walk.fused_node(nodes)
        yield row | {
            "fused_node": fused,
            "ran": walk.backend_of(fused),
            "nodes": walk.counts(nodes)["nodes"],
        }


def operations(x: Tensor) -> dict[str, Callable[[], Tensor]]:
    """Lines of code with the tensor that each makes of a square float32 matrix with a gradient."""
    weight = torch.randn_like(x).requires_grad_()
    bias = torch.randn(x.shape[0], device=x.device).requires_grad_()
    return {
        "x * 2": lambda: x * 2,
        "x + x": lambda: x + x,
        "x @ weight": lambda: x @ weight,
        "F.gelu(x)": lambda: F.gelu(x),
        "F.linear(x, weight, bias)": lambda: F.linear(x, weight, bias),
        "F.layer_norm(x)": lambda: F.layer_norm(x, x.shape[-1:]),
        "x.view(-1)": lambda: x.view(-1),
        "x.t()": lambda: x.t(),
        "x.clone()": lambda: x.clone(),
        "x.reshape(x.shape)": lambda: x.reshape(x.shape),
        "x.expand(x.shape)": lambda: x.expand(x.shape),
        "x.t().contiguous()": lambda: x.t().contiguous(),
        "x.contiguous(), of what is": lambda: x.contiguous(),
        "x.to(torch.float32), of what is": lambda: x.to(torch.float32),
        "x.to(torch.bfloat16)": lambda: x.to(torch.bfloat16),
        "F.dropout(x, training=False)": lambda: F.dropout(x, training=False),
        "x.detach()": lambda: x.detach(),
        "x > 0": lambda: x > 0,
        "x.argmax()": lambda: x.argmax(),
        "x * 2, under no_grad": lambda: torch.no_grad()(lambda: x * 2)(),
    }


def _operations(where: torch.device) -> Iterator[dict]:
    """How many nodes each of `operations` adds to the graph."""
    leaf = torch.randn(16, 16, device=where).requires_grad_()
    x = leaf * 1  # so that there is a graph to add to
    for name, call in operations(x).items():
        before = {each.handle for each in walk.walk(x.grad_fn)}
        made = call()
        after = walk.walk(made.grad_fn) if made.grad_fn is not None else []
        new = [n for n in after if n.handle not in before and n.kind != walk.ACCUMULATE]
        yield {
            "op": "operations",
            "variant": name,
            "nodes_added": len(new),
            "node_names": ", ".join(node.name for node in new) or None,
        }
