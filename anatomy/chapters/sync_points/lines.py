"""Lines of a loop that may make the host wait for the GPU, as the sync points time them."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

Call = Callable[[], Tensor]

FEW = 8  # elements that are brought to the host or back: 16 bytes of a 16-bit format
NUMPY, DIRECT = "t.cpu().numpy()", "t.numpy()"
SYNC, ITEM, PRINT, CPU = "torch.cuda.synchronize()", "t.item()", "print(t)", "t.cpu()"


def lines(few: Tensor, sink) -> dict[str, Callable[[], object]]:
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
