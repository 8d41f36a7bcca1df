"""The allocator's peak in one call: bytes of tensors, without what libraries take themselves."""

from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Peak:
    """Bytes that one call needed at most."""

    bytes: int  # in tensors, less those before the call: what it needs beside weights and inputs
    total_bytes: int  # the same peak, with what was there before
    reserved_bytes: int  # taken from the driver at the peak, CUDA graphs' pools and gaps included


def peak(call: Callable[[], object], device: torch.device) -> Peak | None:
    """The peak of one call that has run before, or None on a CPU, which keeps no such account."""
    if device.type != "cuda":
        return None
    torch.cuda.synchronize(device)
    torch.cuda.empty_cache()  # what an earlier call left there must not count as reserved
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    kept = call()
    torch.cuda.synchronize(device)
    most = torch.cuda.max_memory_allocated(device)
    reserved = torch.cuda.max_memory_reserved(device)
    del kept
    return Peak(most - before, most, reserved)


def columns(found: Peak | None) -> dict[str, int | None]:
    """The same as columns of a table: `peak_bytes`, `total_peak_bytes`, `reserved_bytes`."""
    if found is None:
        return {"peak_bytes": None, "total_peak_bytes": None, "reserved_bytes": None}
    return {
        "peak_bytes": found.bytes,
        "total_peak_bytes": found.total_bytes,
        "reserved_bytes": found.reserved_bytes,
    }
