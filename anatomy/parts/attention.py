"""Attention in the ways that PyTorch has it, its exact result, and which sizes of it fit."""

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend

from anatomy.machine import host
from anatomy.numerics import agreement, formats
from anatomy.parts.sizes import BLOCK_SCORES, attention_bytes
from anatomy.table import units
from anatomy.table.errors import DisagreementError

Outputs = Tensor | tuple[Tensor, ...]
Call = Callable[[], Outputs]

CUDA = torch.backends.cuda
# Backend -> how to switch it on or off, and how to ask whether it is on.
SWITCHES = {
    "math": (CUDA.enable_math_sdp, CUDA.math_sdp_enabled),
    "efficient": (CUDA.enable_mem_efficient_sdp, CUDA.mem_efficient_sdp_enabled),
    "flash": (CUDA.enable_flash_sdp, CUDA.flash_sdp_enabled),
    "cudnn": (CUDA.enable_cudnn_sdp, CUDA.cudnn_sdp_enabled),
}
BACKENDS = tuple(SWITCHES)
WAYS = ("manual", *BACKENDS, "default")  # ways to compute attention, the ordinary one first
# PyTorch's number of a backend -> its name here.
CHOSEN = {
    SDPBackend.MATH.value: "math",
    SDPBackend.EFFICIENT_ATTENTION.value: "efficient",
    SDPBackend.FLASH_ATTENTION.value: "flash",
    SDPBackend.CUDNN_ATTENTION.value: "cudnn",
}
# What PyTorch calls a backend in the headlines of its reasons.
HEADLINES = {"efficient": "memory efficient", "flash": "flash attention", "cudnn": "cudnn"}
# How PyTorch begins to say that all backends that are switched on are out of the question.
NOTHING_RUNS = ("No viable backend", "No available kernel")
# How far an output or gradient may stray from the float64 result, ||x - exact|| / ||exact||.
ALLOWED = {
    # Scores, scaled scores, probabilities, their gradients and the result are each rounded to the
    # tensors' own format on the way, by 2**-9 and 2**-12 at most: twice what one product may err.
    torch.bfloat16: 2**-5,
    torch.float16: 2**-8,
    # Exponentials by approximation, and long sums in another order. Factors rounded to TF32 would
    # be 2**-11 off each, so a kernel that did so unasked is found out.
    torch.float32: 2**-13,
}
# Tensors of N x N scores that are there at once. Written out: the scores, the scaled ones and the
# probabilities; backward the probabilities and two gradients, and one for safety. In `math` also a
# mask of the rows without any score, and the probabilities with those rows mended.
SCORES = {"manual": {"forward": 3, "backward": 4}, "math": {"forward": 4, "backward": 5}}
# Ways of different sizes of scores can't use each other's freed memory. So that it need not be
# given back and asked for again within the blocks, none may need more than this share of it.
MOST_MEMORY = 0.5


@dataclass(frozen=True)
class Size:
    """What is computed, before there are tensors."""

    heads: int  # H, of the one sequence
    sequence: int  # tokens N
    width: int  # D, of a head
    dtype: str  # of q, k and v
    backward: bool = False  # whether the gradients of q, k and v are wanted too
    causal: bool = False  # whether a token sees only itself and those before it


@dataclass(frozen=True)
class Problem:
    """One attention problem: q, k, v of (B, H, N, D), requiring gradients if there is `grad`."""

    q: Tensor
    k: Tensor
    v: Tensor
    grad: Tensor | None = None  # of the output, to go back with
    mask: Tensor | None = None  # for attention written out: (N, N), true where none may look

    @property
    def causal(self) -> bool:
        """Whether a token sees only itself and those before it."""
        return self.mask is not None


def problem(size: Size, where: torch.device) -> Problem:
    """Random q, k, v, and a gradient if the backward pass is wanted."""
    N, kind = size.sequence, formats.storage(size.dtype)
    shape = (1, size.heads, N, size.width)  # (B, H, N, D)
    q, k, v, grad = (torch.randn(shape, dtype=kind, device=where) for _ in range(4))
    for x in (q, k, v):
        x.requires_grad_(size.backward)
    mask = torch.ones(N, N, dtype=torch.bool, device=where).triu_(1) if size.causal else None
    return Problem(q, k, v, grad if size.backward else None, mask)


def calls(given: Problem, ordinary: Mapping[str, bool]) -> dict[str, Call]:
    """Each way as a call that returns the output, and with `grad` the gradients of q, k and v; to
    be called within `switches_kept`. Every way but `manual` throws PyTorch's own switches: the
    context `sdpa_kernel` costs more host time than a short kernel takes, and would be timed."""

    def fused(on: Mapping[str, bool]) -> Callable[[], Tensor]:
        throws = [(switch, on[name]) for name, (switch, _) in SWITCHES.items()]

        def attend() -> Tensor:
            for switch, state in throws:
                switch(state)
            return F.scaled_dot_product_attention(given.q, given.k, given.v, is_causal=given.causal)

        return attend

    ways = {"manual": lambda: manual(given)}
    ways |= {name: fused({other: other == name for other in BACKENDS}) for name in BACKENDS}
    ways["default"] = fused(ordinary)
    return {name: _through(way, given) for name, way in ways.items()}


# --8<-- [start:manual]
def manual(given: Problem) -> Tensor:
    """Attention as one writes it down, in its tensors' format."""
    scores = given.q @ given.k.mT  # (B, H, N, N)
    scores = scores * given.q.shape[-1] ** -0.5
    if given.mask is not None:
        scores = scores.masked_fill(given.mask, float("-inf"))
    return scores.softmax(-1) @ given.v  # (B, H, N, D)


# --8<-- [end:manual]


def _through(attend: Callable[[], Tensor], given: Problem) -> Call:
    if given.grad is None:
        return attend

    def call() -> tuple[Tensor, ...]:
        out = attend()
        found = torch.autograd.grad(out, (given.q, given.k, given.v), given.grad)
        return (out.detach(), *found)

    return call


@torch.no_grad()
def exact(given: Problem) -> Outputs:
    """The same in float64, some rows of the scores at a time: a row needs nothing of the others."""
    q, k, v = (x.detach().double() for x in (given.q, given.k, given.v))
    scale, (B, H, N) = q.shape[-1] ** -0.5, q.shape[:3]
    out, dq, dk, dv = (torch.zeros_like(q) for _ in range(4))
    rows = max(1, BLOCK_SCORES // (B * H * N))
    for start in range(0, N, rows):
        part = slice(start, start + rows)
        p = (q[:, :, part] @ k.mT) * scale  # (B, H, rows, N)
        if given.mask is not None:
            p.masked_fill_(given.mask[part], float("-inf"))
        p = p.softmax(-1)
        out[:, :, part] = p @ v
        if given.grad is None:
            continue
        g = given.grad[:, :, part].double()  # (B, H, rows, D)
        dv += p.mT @ g
        # softmax backwards: each row's gradient less its mean under the probabilities
        ds = p * (g @ v.mT - (g * out[:, :, part]).sum(-1, keepdim=True)) * scale
        dq[:, :, part] = ds @ k
        dk += ds.mT @ q[:, :, part]
    return out if given.grad is None else (out, dq, dk, dv)


@contextmanager
def switches_kept() -> Iterator[dict[str, bool]]:
    """Yield which backends are on, and leave them so; the switches are the whole process's."""
    before = {name: asked() for name, (_, asked) in SWITCHES.items()}
    try:
        yield before
    finally:
        throw(before)


def throw(on: Mapping[str, bool]) -> None:
    """Switch each backend on or off."""
    for name, (switch, _) in SWITCHES.items():
        switch(on[name])


def why_not(name: str, call: Call, expected: Outputs) -> str:
    """Why a way, once run and compared with the exact result, can't be timed; empty if it can."""

    def check() -> None:
        found = call()
        kind = (found if isinstance(found, Tensor) else found[0]).dtype
        del found
        agreement.check({name: call}, {name: lambda: expected}, ALLOWED[kind])

    first = expected if isinstance(expected, Tensor) else expected[0]
    return refusal(name, check, first.device)


def refusal(name: str, act: Callable[[], object], where: torch.device) -> str:
    """Why `act`, which runs the backend `name`, can't be done here; empty where it can."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            act()
        except torch.OutOfMemoryError:  # its own message names processes
            return "out of memory"
        except DisagreementError as error:
            return f"not timed: {error}"
        except RuntimeError as error:
            reason = reason_for(name, [str(each.message) for each in told])
            reason = reason or _first_line(str(error))
            if reason.startswith(NOTHING_RUNS):
                reason = "PyTorch has no such backend there"
            return f"not supported on {_described(where)}: {reason}"
    return ""


def reason_for(name: str, texts: list[str]) -> str:
    """PyTorch's own reason for not running a backend, out of its warnings, or nothing."""
    wanted, reasons = False, []
    for text in map(_first_line, texts):
        if "not used because" in text:
            wanted = text.lower().startswith(HEADLINES.get(name, "no such headline"))
        elif wanted and "runtime disabled" not in text:
            reasons.append(text)
    return "; ".join(dict.fromkeys(reasons))


def _first_line(text: str) -> str:
    """The first line of a message, without the place in PyTorch's source that raised it."""
    line = re.sub(r"\s*\(Triggered internally at.*", "", text).strip().partition("\n")[0]
    return line.strip().rstrip(".")


def _described(device: torch.device) -> str:
    if device.type != "cuda":
        return device.type
    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}"


def form(
    row: Mapping[str, Any], heads: int, sequence: int, where: torch.device
) -> tuple[Callable[[], None], Callable[[], int]]:
    """A call over `sequence` keys, and one that gives PyTorch's number of the backend that it would
    choose for it; `row` has `dtype`, `head_width`, `queries`, `gradients`, `causal` and `mask`."""
    kind = formats.storage(row["dtype"])
    q, k, v = (
        torch.randn(1, heads, tokens, row["head_width"], dtype=kind, device=where)
        for tokens in (row["queries"], sequence, sequence)
    )
    for x in (q, k, v):
        x.requires_grad_(row["gradients"])
    shape = (row["queries"], sequence)
    mask = torch.ones(shape, dtype=torch.bool, device=where).tril_() if row["mask"] else None
    given = (q, k, v, mask, 0.0, row["causal"])

    def call() -> None:
        out = F.scaled_dot_product_attention(*given)
        if row["gradients"]:
            torch.autograd.grad(out, (q, k, v), torch.ones_like(out))

    # No public name: it may go, or want other arguments, which `choice` allows for.
    return call, lambda: torch._fused_sdp_choice(*given)


def choice(ask: Callable[[], int], ordinary: Mapping[str, bool]) -> str | None:
    """The backend that PyTorch's own chooser, asked by `ask`, names; None where it names none."""
    throw(ordinary)
    try:
        return CHOSEN.get(ask())
    except (AttributeError, RuntimeError, TypeError):
        return None


def too_large(size: Size, where: torch.device) -> dict[str, str]:
    """Which ways would need more than a sensible share of the memory that is free, and why."""
    free = host.free_bytes(where)
    if free is None:
        return {}
    item, pairs = formats.itemsize(size.dtype), size.heads * size.sequence**2
    shape = size.heads, size.sequence, size.width, item
    found = {}
    for name in WAYS:
        copies = SCORES.get(name, {}).get("backward" if size.backward else "forward", 0)
        copies += size.causal * bool(copies)  # the scores with those behind the mask filled in
        # `math` computes 16-bit problems in float32.
        scores = copies * pairs * (max(item, 4) if name == "math" else item)
        need = attention_bytes(*shape, causal=size.causal, scores=scores)
        if need > MOST_MEMORY * free:
            found[name] = (
                f"would need about {units.byte_count(need)}, more than half of the "
                f"{units.byte_count(free)} that are free"
            )
    return found
