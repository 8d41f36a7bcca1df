"""Lines of code that may make the host wait for the GPU, and lines that look as if they did."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Call = Callable[[], Tensor]

FEW = 8  # elements that are brought to the host or back: 16 bytes of a 16-bit format
NUMPY, DIRECT = "t.cpu().numpy()", "t.numpy()"
SYNC, ITEM, PRINT, CPU = "torch.cuda.synchronize()", "t.item()", "print(t)", "t.cpu()"
ELEMENTS = 4096  # of what is computed with
SMALL_BYTES, LARGE_BYTES = 2**14, 2**24  # of what is copied

READS, SHAPES, COPIES = "reads a value", "size depends on values", "copies"
EXPLICIT, QUEUES, ASKS = "waits or marks by name", "queues work", "asks about the tensor"


@dataclass
class Tensors:
    """What the lines are about; on the device, where nothing else is said."""

    t: Tensor  # `ELEMENTS` random numbers
    mask: Tensor  # which of them are positive
    one: Tensor  # one of them, without dimensions
    index: Tensor  # indices into `t`
    i: Tensor  # one such index, without dimensions
    classes: Tensor
    weight: nn.Parameter  # with a gradient
    host: Tensor  # in ordinary memory of the host, to be copied to the device; likewise:
    host_large: Tensor
    pinned: Tensor  # the same in page-locked memory
    pinned_large: Tensor
    host_index: Tensor  # indices in the host's memory
    large: Tensor  # to be copied to the host
    optimizer: torch.optim.Optimizer  # of `weight`
    scaler: torch.amp.GradScaler
    event: torch.cuda.Event | None  # None without a GPU

    @property
    def device(self) -> torch.device:
        """Where the tensors lie that are not the host's."""
        return self.t.device


def tensors_on(where: torch.device) -> Tensors:
    """One set of tensors on a device; on a CPU nothing is page-locked."""
    gpu = where.type == "cuda"
    t = torch.randn(ELEMENTS, device=where)
    weight = nn.Parameter(torch.randn(ELEMENTS, device=where))
    weight.grad = torch.randn_like(weight)
    scaler = torch.amp.GradScaler(where.type)
    scaler.scale(torch.ones((), device=where))  # which is when it makes its tensors
    host, large = torch.randn(SMALL_BYTES // 4), torch.randn(LARGE_BYTES // 4)
    return Tensors(
        t=t,
        mask=t > 0,
        one=t[0].clone(),
        index=torch.arange(0, ELEMENTS, 2, device=where),
        i=torch.tensor(3, device=where),
        classes=torch.arange(64, device=where) % 8,
        weight=weight,
        host=host,
        host_large=large,
        pinned=host.pin_memory() if gpu else host,
        pinned_large=large.pin_memory() if gpu else large,
        host_index=torch.arange(0, ELEMENTS, 2),
        large=large.to(where),
        optimizer=torch.optim.SGD([weight], lr=1e-6),
        scaler=scaler,
        event=torch.cuda.Event() if gpu else None,
    )


def _if_any(s: Tensors) -> bool:
    if s.mask.any():  # noqa: SIM103 - the `if` is what is asked about
        return True
    return False


def _backward(s: Tensors) -> None:
    s.weight.grad = None
    (s.weight * s.t).sum().backward()


def _scaled_step(s: Tensors) -> None:
    if s.weight.grad is None:
        s.weight.grad = torch.ones_like(s.weight)
    s.scaler.step(s.optimizer)
    s.scaler.update()


def _event_wait(s: Tensors) -> None:
    s.event.record()
    s.event.synchronize()


Line = Callable[[Tensors], object]

# The line as one would write it -> its kind, and what runs it.
CANDIDATES: dict[str, tuple[str, Line]] = {
    "t[0].item()": (READS, lambda s: s.one.item()),
    "float(t[0])": (READS, lambda s: float(s.one)),
    "print(t)": (READS, lambda s: str(s.t)),  # which is what print waits for
    "if (t > 0).any():": (READS, _if_any),
    "bool(t[0] > 0)": (READS, lambda s: bool(s.one > 0)),
    "t.tolist()": (READS, lambda s: s.t.tolist()),
    "torch.equal(t, u)": (READS, lambda s: torch.equal(s.t, s.t.clone())),
    "t[i], i on the GPU": (READS, lambda s: s.t[s.i]),
    "t[:i], i on the GPU": (READS, lambda s: s.t[: s.i]),
    "scaler.step(optimizer)": (READS, _scaled_step),
    "t.nonzero()": (SHAPES, lambda s: s.mask.nonzero()),
    "torch.where(t > 0)": (SHAPES, lambda s: torch.where(s.mask)),
    "t[t > 0]": (SHAPES, lambda s: s.t[s.mask]),
    "t.masked_select(t > 0)": (SHAPES, lambda s: s.t.masked_select(s.mask)),
    "t.unique()": (SHAPES, lambda s: s.t.unique()),
    "F.one_hot(classes)": (SHAPES, lambda s: F.one_hot(s.classes)),
    "t.repeat_interleave(counts)": (SHAPES, lambda s: s.index.repeat_interleave(s.index % 3)),
    "t.cpu()": (COPIES, lambda s: s.t.cpu()),
    't.to("cpu", non_blocking=True)': (COPIES, lambda s: s.large.to("cpu", non_blocking=True)),
    "torch.tensor(1.0, device=gpu)": (COPIES, lambda s: torch.tensor(1.0, device=s.device)),
    "t[[0, 1]]": (COPIES, lambda s: s.t[[0, 1]]),
    "t[index], index on the host": (COPIES, lambda s: s.t[s.host_index]),
    "small.to(gpu)": (COPIES, lambda s: s.host.to(s.device, copy=True)),
    "small.to(gpu, non_blocking=True)": (
        COPIES,
        lambda s: s.host.to(s.device, non_blocking=True, copy=True),
    ),
    "large.to(gpu)": (COPIES, lambda s: s.host_large.to(s.device, copy=True)),
    "large.to(gpu, non_blocking=True)": (
        COPIES,
        lambda s: s.host_large.to(s.device, non_blocking=True, copy=True),
    ),
    "pinned.to(gpu)": (COPIES, lambda s: s.pinned_large.to(s.device, copy=True)),
    "pinned.to(gpu, non_blocking=True)": (
        COPIES,
        lambda s: s.pinned_large.to(s.device, non_blocking=True, copy=True),
    ),
    "torch.cuda.synchronize()": (EXPLICIT, lambda s: torch.cuda.synchronize(s.device)),
    "event.record(); event.synchronize()": (EXPLICIT, _event_wait),
    "event.record()": (EXPLICIT, lambda s: s.event.record()),
    "event.query()": (EXPLICIT, lambda s: s.event.query()),
    "t.sum()": (QUEUES, lambda s: s.t.sum()),
    "(t > 0).any()": (QUEUES, lambda s: s.mask.any()),
    "torch.where(t > 0, t, 0.0)": (QUEUES, lambda s: torch.where(s.mask, s.t, 0.0)),
    "t[index], index on the GPU": (QUEUES, lambda s: s.t[s.index]),
    "torch.full((), 1.0, device=gpu)": (QUEUES, lambda s: torch.full((), 1.0, device=s.device)),
    "t * torch.tensor(2.0)": (QUEUES, lambda s: s.t * torch.tensor(2.0)),
    "loss.backward()": (QUEUES, _backward),
    "clip_grad_norm_(parameters, 1.0)": (
        QUEUES,
        lambda s: nn.utils.clip_grad_norm_([s.weight], 1.0),
    ),
    "t[3]": (ASKS, lambda s: s.t[3]),
    "t[1:3]": (ASKS, lambda s: s.t[1:3]),
    "len(t)": (ASKS, lambda s: len(s.t)),
    "t.shape": (ASKS, lambda s: s.t.shape),
    "t.is_contiguous()": (ASKS, lambda s: s.t.is_contiguous()),
}


# What `about` has, beside reading all of a tensor as an array.
NAMES = (SYNC, ITEM, PRINT, CPU, "if t.any()", "t.nonzero()", "t[mask]", "to(device)")
NAMES += ("to(device), non_blocking", "to(device), pinned", "to(device), pinned, non_blocking")


def about(few: Tensor, sink) -> dict[str, Callable[[], object]]:
    """The lines, about `FEW` elements that the work before has made; they print into `sink`."""
    where, gpu = few.device, few.is_cuda
    one, mask = few[0], torch.arange(FEW, device=few.device) % 2 == 0
    pageable = torch.ones(FEW, dtype=few.dtype)
    pinned = pageable.pin_memory() if gpu else pageable

    def if_any() -> bool:
        if few.any():  # noqa: SIM103 - the `if` is what is asked about
            return True
        return False

    return {
        SYNC: lambda: synchronize(where),
        ITEM: one.item,
        PRINT: partial(print, one, file=sink),
        CPU: few.cpu,
        "if t.any()": if_any,
        "t.nonzero()": few.nonzero,
        "t[mask]": lambda: few[mask],
        "to(device)": lambda: pageable.to(where, copy=True),
        "to(device), non_blocking": lambda: pageable.to(where, non_blocking=True, copy=True),
        "to(device), pinned": lambda: pinned.to(where, copy=True),
        "to(device), pinned, non_blocking": lambda: pinned.to(where, non_blocking=True, copy=True),
    }


def as_numpy(few: Tensor) -> object:
    """`few` as an array of NumPy, by way of the host."""
    host = few.cpu()
    # NumPy has no bfloat16; its bytes are all that is asked about.
    return (host.view(torch.int16) if host.dtype == torch.bfloat16 else host).numpy()


def synchronize(where: torch.device) -> None:
    """Wait for all that was queued; on a CPU nothing ever is."""
    if where.type == "cuda":
        torch.cuda.synchronize(where)


def then(result: Tensor, *acts: Callable[[], object]) -> Call:
    """A call that does one or two `acts` in order and returns `result`, which is there already."""
    if len(acts) == 1:
        (act,) = acts

        def one() -> Tensor:
            act()
            return result

        return one
    first, second = acts

    def both() -> Tensor:
        first()
        second()
        return result

    return both


def direct(where: torch.device, kind: torch.dtype) -> dict:
    """What `.numpy()` does when it is called on a tensor of the device itself."""
    told = {"op": "loop", "variant": DIRECT, "operation": DIRECT, "role": "variant"}
    told |= {"quantity": "step_wall", "device": where.type}
    try:
        torch.zeros(FEW, dtype=kind, device=where).numpy()
    except TypeError as error:
        return told | {"note": f"{type(error).__name__}: {error}", "raised": type(error).__name__}
    return told | {"note": f"on {where.type} it shares the tensor's memory and waits for nothing"}
