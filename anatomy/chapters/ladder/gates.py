"""The gates of a rung beside its answer: its work is rung 0's, it was compiled, no switch is left
set. One that fails them is void: a figure of it would be that of something else."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from anatomy.table.errors import AnatomyError

BY_WEIGHTS = ("mm", "addmm", "_scaled_mm")  # operators; all others counted belong to attention
RECOMPUTED = 7 / 6  # a fused backward multiplies q by k again, keeping no scores: 7 products for 6
# Fused attention's operators by the backend that they name; cuDNN and the rest have their own.
FUSED = {
    "_scaled_dot_product_cudnn_attention": "cudnn",
    "_scaled_dot_product_flash_attention": "flash",
    "_scaled_dot_product_flash_attention_for_cpu": "flash",
    "_scaled_dot_product_efficient_attention": "efficient",
    "_scaled_dot_product_fused_attention_overrideable": "overrideable",
}
WRITTEN_OUT = "written out"

CUBLAS, CUDNN, SDPA = torch.backends.cuda.matmul, torch.backends.cudnn, torch.backends.cuda
# Switch of the process -> how it is read and thrown.
SWITCHES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "TF32 in products": (lambda: CUBLAS.allow_tf32, lambda on: setattr(CUBLAS, "allow_tf32", on)),
    "precision of float32 products": (
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    ),
    "TF32 in cuDNN": (lambda: CUDNN.allow_tf32, lambda on: setattr(CUDNN, "allow_tf32", on)),
    "cuDNN's own benchmark": (lambda: CUDNN.benchmark, lambda on: setattr(CUDNN, "benchmark", on)),
    "flash attention": (SDPA.flash_sdp_enabled, SDPA.enable_flash_sdp),
    "efficient attention": (SDPA.mem_efficient_sdp_enabled, SDPA.enable_mem_efficient_sdp),
    "attention in small steps": (SDPA.math_sdp_enabled, SDPA.enable_math_sdp),
    "cuDNN's attention": (SDPA.cudnn_sdp_enabled, SDPA.enable_cudnn_sdp),
    "gradients": (torch.is_grad_enabled, torch.set_grad_enabled),
    "default number format": (torch.get_default_dtype, torch.set_default_dtype),
    "deterministic algorithms": (
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
    ),
}


def switches() -> dict[str, Any]:
    """The switches of this process that change what a step computes or how, as they are now."""
    return {name: read() for name, (read, _) in SWITCHES.items()}


def left_set(before: Mapping[str, Any]) -> str | None:
    """Put all switches back to `before`; why the rung that moved one is void, or None."""
    moved = [name for name, value in switches().items() if value != before[name]]
    for name in moved:
        SWITCHES[name][1](before[name])
    for name, value in before.items():  # two of them are views of one
        if SWITCHES[name][0]() != value:
            SWITCHES[name][1](value)
    return f"void: it leaves a switch of the process set: {', '.join(moved)}" if moved else None


@contextmanager
def compiled_by(backend: str) -> Iterator[None]:
    """Have torch.compile hand its graphs to `backend`, and fail where it would give up: it would
    run a function of too many versions uncompiled, with a warning that nobody sees."""
    import torch._dynamo.config as config  # takes seconds, which listing experiments should not

    stance = torch.compiler.set_stance(
        "default", force_backend=None if backend == "inductor" else backend
    )
    with config.patch(fail_on_recompile_limit_hit=True, suppress_errors=False), stance:
        yield


def skipped_graphs() -> int:
    """How often torch.compile has left CUDA graphs out although its mode asks for them."""
    from torch._dynamo.utils import counters

    return counters["inductor"]["cudagraph_skips"]


@dataclass(frozen=True)
class Work:
    """The floating-point operations of one step."""

    by_weights: int
    attention: int  # of attention's own products; 0 where they can't be seen
    counted_by: str
    backend: str | None  # the attention that ran, by its operators; None where they can't be seen


class _FusedAttention(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.backends: set[str] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if found := FUSED.get(func._overloadpacket.__name__):
            self.backends.add(found)
        return func(*args, **(kwargs or {}))


def counted(call: Callable[[], object]) -> Work:
    """Count the operations of a step, run eagerly: what is compiled can't be looked into."""
    with (
        torch.compiler.set_stance("force_eager"),
        _FusedAttention() as seen,
        FlopCounterMode(display=False) as counter,
    ):
        call()
    found = {op.__name__: flops for op, flops in counter.get_flop_counts()["Global"].items()}
    by_weights = sum(found.pop(name, 0) for name in BY_WEIGHTS)
    backend = ", ".join(sorted(seen.backends)) or WRITTEN_OUT
    attention = sum(found.values())
    beside = "" if attention else ", attention by its formula"
    return Work(by_weights, attention, f"FlopCounterMode{beside}", backend)


def by_shapes(model: nn.Module, tokens: int) -> Work:
    """The operations that weights of such shapes stand for: where no operator can be seen."""
    elements = sum(p.numel() for p in model.parameters() if p.ndim == 2)
    return Work(6 * tokens * elements, 0, "shapes of the weights, attention by its formula", None)


def require_equal_work(found: Work, by_weights: int, attention: int) -> int:
    """All operations of a step; AnatomyError where they are not rung 0's: its products with
    weights, and its attention, forward and backward, nothing skipped."""
    if found.by_weights != by_weights:
        raise AnatomyError(
            f"void: its products with weights are {found.by_weights} FLOP a step by "
            f"{found.counted_by}, rung 0's {by_weights}"
        )
    own = found.attention or attention  # a kernel that can't be seen is taken at its word
    if not attention <= own <= round(RECOMPUTED * attention):
        raise AnatomyError(
            f"void: its attention is {own} FLOP a step by {found.counted_by}, rung 0's {attention}"
        )
    return by_weights + own


def require_equal_parameters(model: nn.Module, elements: int) -> None:
    """Raise AnatomyError for a model of another size."""
    own = sum(p.numel() for p in model.parameters())
    if own != elements:
        raise AnatomyError(f"void: it has {own} parameters, rung 0 has {elements}")
