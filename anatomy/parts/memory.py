"""What a device's memory has room for, and the allocator's peak in one call: bytes of tensors,
without what libraries take themselves."""

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from anatomy.machine import host
from anatomy.measure.cache import last_level_cache_bytes
from anatomy.measure.stopwatch import compilations
from anatomy.record.requirements import Capacity, without_format


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


def capacity(where: torch.device) -> Capacity:
    """What a device has now for an experiment."""
    gpu = where.type == "cuda"
    capability = torch.cuda.get_device_capability(where) if gpu else None
    return Capacity(host.free_bytes(where), capability, last_level_cache_bytes(where))


def without_formats(dtypes: Mapping[str, str], where: torch.device) -> dict[str, str]:
    """Which variants, by the number format of each, a device does not compute, and why."""
    on = capacity(where)
    return {name: why for name, dtype in dtypes.items() if (why := without_format(dtype, on))}


def give_back(where: torch.device) -> None:
    """Forget all compiled code, and give the memory of what is gone back to the device."""
    if (
        compilations()
    ):  # else nothing is to be forgotten, and asking would import all of the compiler
        torch.compiler.reset()
    gc.collect()
    if where.type == "cuda":
        torch.cuda.synchronize(where)
        torch.cuda.empty_cache()
