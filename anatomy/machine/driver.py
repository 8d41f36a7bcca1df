"""What the NVIDIA driver tells without torch: the cards a process would see, and their counters.
libcuda lists the cards as torch numbers them, under CUDA_VISIBLE_DEVICES; NVML has clocks, power,
temperature and throttle counters, and numbers them otherwise. So a card is known by its bare UUID,
`card` below. What this card, driver or container does not offer is None, never 0."""

import ctypes
import functools
import importlib
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

# Cumulative nanoseconds for which each cause held the clocks down; NVML field value ids (nvml.h).
THROTTLE_FIELDS = {
    "power_cap": 74,
    "sync_boost": 76,
    "software_thermal": 269,
    "hardware_thermal": 270,
    "power_brake": 271,
}

# nvmlValueType_t (nvml.h): which member of the union a field value came in.
_UNION_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")

# Numbers of CUdevice_attribute (cuda.h): both parts of the compute capability, and the L2's size.
CAPABILITY_AND_L2 = (75, 76, 38)


@dataclass(frozen=True)
class Card:
    """A GPU as CUDA numbers it in this process: `index` of `cuda:index`, bare UUID, and name."""

    index: int
    uuid: str
    name: str


@dataclass(frozen=True)
class Size:
    """What a card has: bytes, free ones by NVML, and its compute capability, such as (9, 0)."""

    free_bytes: int | None
    capability: tuple[int, int] | None
    l2_bytes: int | None


def visible_cards() -> list[Card]:
    """The GPUs that torch would see, in its order; none without a driver. No context is made."""
    cuda = _libcuda()
    count = ctypes.c_int()
    if cuda is None or cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        return []
    cards = []
    for index in range(count.value):
        device, raw, name = ctypes.c_int(), (ctypes.c_ubyte * 16)(), ctypes.create_string_buffer(96)
        if cuda.cuDeviceGet(ctypes.byref(device), index):
            continue
        # The second version of the call gives a MIG slice its own UUID instead of its card's.
        ask = getattr(cuda, "cuDeviceGetUuid_v2", cuda.cuDeviceGetUuid)
        if ask(ctypes.byref(raw), device) or cuda.cuDeviceGetName(name, len(name), device):
            continue
        cards.append(Card(index, str(uuid.UUID(bytes=bytes(raw))), name.value.decode()))
    return cards


def size(card: Card) -> Size:
    """What a card has, without a context on it."""
    nvml, handle = _nvml(), _handle(card.uuid)
    memory = None if handle is None else _ask(nvml.nvmlDeviceGetMemoryInfo, handle)
    major, minor, l2_bytes = (_attribute(card, number) for number in CAPABILITY_AND_L2)
    return Size(
        None if memory is None else int(memory.free),
        None if major is None or minor is None else (major, minor),
        l2_bytes or None,
    )


def _attribute(card: Card, number: int) -> int | None:
    cuda, value, device = _libcuda(), ctypes.c_int(), ctypes.c_int()
    if cuda.cuDeviceGet(ctypes.byref(device), card.index):
        return None
    failed = cuda.cuDeviceGetAttribute(ctypes.byref(value), number, device)
    return None if failed else value.value


def version() -> str | None:
    """The driver's version, such as "580.159.03"."""
    nvml = _nvml()
    if nvml is None:
        return None
    found = _ask(nvml.nvmlSystemGetDriverVersion)
    return found.decode() if isinstance(found, bytes) else found


def conditions(card: str) -> dict[str, Any] | None:
    """Clocks, power, temperature and throttle counters now; None where NVML has no such card."""
    nvml, handle = _nvml(), _handle(card)
    if nvml is None or handle is None:
        return None
    milliwatts = _ask(nvml.nvmlDeviceGetPowerUsage, handle)
    return {
        "sm_clock_mhz": _ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
        "memory_clock_mhz": _ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM),
        "power_w": None if milliwatts is None else milliwatts / 1000,
        "temperature_c": _ask(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
        "throttle": throttle_counters(card),
    }


def throttle_counters(card: str) -> dict[str, int | None] | None:
    """Nanoseconds since the driver was loaded for which each of `THROTTLE_FIELDS` slowed it."""
    nvml, handle = _nvml(), _handle(card)
    if nvml is None or handle is None:
        return None
    values = _ask(nvml.nvmlDeviceGetFieldValues, handle, list(THROTTLE_FIELDS.values()))
    if values is None:
        return dict.fromkeys(THROTTLE_FIELDS)
    return {name: _field(value) for name, value in zip(THROTTLE_FIELDS, values, strict=True)}


def boundaries(card: str) -> dict[str, float | None]:
    """The card's fixed bounds: `max_sm_clock_mhz`, `max_memory_clock_mhz`, `power_limit_w`."""
    nvml, handle = _nvml(), _handle(card)
    if nvml is None or handle is None:
        return dict.fromkeys(("max_sm_clock_mhz", "max_memory_clock_mhz", "power_limit_w"))
    milliwatts = _ask(nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
    return {
        "max_sm_clock_mhz": _ask(nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM),
        "max_memory_clock_mhz": _ask(nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_MEM),
        "power_limit_w": None if milliwatts is None else milliwatts / 1000,
    }


def compute_processes(card: str) -> list[int] | None:
    """Numbers of the processes that compute on the card; in a container they may be the host's."""
    nvml, handle = _nvml(), _handle(card)
    if nvml is None or handle is None:
        return None
    found = _ask(nvml.nvmlDeviceGetComputeRunningProcesses, handle)
    return None if found is None else sorted({process.pid for process in found})


@functools.cache
def _libcuda() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return None


@functools.cache
def _nvml() -> ModuleType | None:
    """The started NVML; None without the package, the library, or a driver that answers."""
    try:
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
    except Exception:  # whatever is wrong with the driver, measuring goes on without counters
        return None
    return nvml


@functools.cache
def _handle(card: str) -> Any:
    """NVML's handle of a card; for a MIG slice, which has no clocks, that of its whole card."""
    nvml = _nvml()
    if nvml is None:
        return None
    handle = _ask(nvml.nvmlDeviceGetHandleByUUID, f"GPU-{card}")
    if handle is None:
        slice_ = _ask(nvml.nvmlDeviceGetHandleByUUID, f"MIG-{card}")
        if slice_ is not None:
            handle = _ask(nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle, slice_)
    return handle


def _ask(function: Callable, *arguments: Any) -> Any:
    """What NVML answers, or None where it does not support the question or lost the card."""
    nvml = _nvml()
    if nvml is None:
        return None
    try:
        return function(*arguments)
    except nvml.NVMLError:
        return None


def _field(value: Any) -> int | None:
    if value.nvmlReturn != 0 or not 0 <= value.valueType < len(_UNION_MEMBERS):
        return None
    return int(getattr(value.value, _UNION_MEMBERS[value.valueType]))
