"""Which machine this is, and what it did meanwhile. torch is imported only by the functions that
ask it something: a plan or a check learns which machine this is (`here`) without waiting for it. No
host name, user name or serial number is ever read; a card is known by a hash of its UUID."""

import functools
import hashlib
import os
import platform
import re
import sys
from pathlib import Path
from typing import Any

from anatomy.machine import driver, versions
from anatomy.table import units
from anatomy.table.errors import BadParameter, DeviceError, OutOfMemory

Device = Any  # str or torch.device, and this module must not import torch to say so

OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation, and hipErrorOutOfMemory
# Said in a plain RuntimeError when there is no memory left: by the CUDA runtime and driver, Triton,
# cuBLAS, cuDNN, and torch on the CPU; and by torch of a tensor whose bytes or elements can't even
# be counted.
NO_MEMORY = (
    *("CUDA error: out of memory", "CUDA driver error: out of memory"),
    "Triton Error [CUDA]: out of memory",
    *("CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED", "can't allocate memory"),
    *("Storage size calculation overflowed", "Overflow when unpacking long"),
)
NO_CUDA = "CUDA requested but torch.cuda.is_available() is False."


def parse_device(device: Device) -> tuple[str, int]:
    """Kind (`cuda` or `cpu`) and index of a device; "cuda" alone is its first card."""
    text = str(device)
    if match := re.fullmatch(r"(cuda|cpu)(?::(\d+))?", text):
        return match[1], int(match[2] or 0)
    if text.split(":")[0] in ("mps", "xpu", "hpu", "mtia", "npu", "vulkan", "xla"):
        raise DeviceError(
            f"device={text!r} is not measured here: NVIDIA GPUs are (cuda:0), and the CPU (cpu). "
            "Its clock, cache flush and throttle counters would have to be written first."
        )
    raise BadParameter(f"device={text!r} is not a device. Use cuda:0, another cuda:N, or cpu.")


def require_device(device: Device) -> tuple[str, int]:
    """`parse_device`; raises DeviceError, which says what to do, where this process has none."""
    kind, index = parse_device(device)
    if kind == "cpu":
        return kind, index
    import torch

    if torch.version.hip:
        raise _rocm(torch.__version__)
    if not torch.cuda.is_available():
        raise DeviceError(f"{NO_CUDA} {_why_no_cuda(torch.__version__, torch.version.cuda)}")
    if index >= (count := torch.cuda.device_count()):
        raise DeviceError(
            f"device='{device}' does not exist: {count} GPU{'s are' if count > 1 else ' is'} "
            f"visible, cuda:0{f' to cuda:{count - 1}' if count > 1 else ''}."
        )
    return kind, index


def no_cuda() -> DeviceError:
    """The error of a command that needs a GPU where there is none; does not import torch."""
    build = versions.require_torch()
    if build.hip:
        return _rocm(build.version)
    return DeviceError(f"{NO_CUDA} {_why_no_cuda(build.version, build.cuda)}")


def _rocm(version: str) -> DeviceError:
    return DeviceError(
        f"This PyTorch ({version}) is a ROCm build; NVIDIA GPUs are measured here, and the CPU: "
        "--device cpu."
    )


def _why_no_cuda(version: str, cuda: str | None) -> str:
    if cuda is None:
        return (
            f"This PyTorch ({version}) is built for the CPU alone: install one built for CUDA, "
            "or measure the CPU with --device cpu."
        )
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return "CUDA_VISIBLE_DEVICES hides every GPU: unset it, or measure with --device cpu."
    return (
        f"This PyTorch ({version}) is built for CUDA {cuda}, so look at the driver: `nvidia-smi` "
        "must list a GPU and a driver at least that new. Or measure the CPU with --device cpu."
    )


def describe(device: Device = "cuda:0", count: int = 1) -> dict[str, Any]:
    """The machine block of a recording, of `count` GPUs like this one. What a CPU has not is None;
    there `memory_bytes` is the host's. Raises as `require_device` does."""
    kind, index = require_device(device)
    return dict(_describe(kind, index, count))


@functools.cache
def _describe(kind: str, index: int, count: int) -> dict[str, Any]:
    cpu = _cpu_model()
    here = {"cpu": cpu, "cpu_count": os.cpu_count()}
    if kind == "cpu":
        unset = ("gpu", "count", "capability", "sm_count", "l2_bytes", "card", "driver")
        bounds = ("max_sm_clock_mhz", "max_memory_clock_mhz", "power_limit_w")
        memory = _host_memory_bytes()
        return {"slug": cpu_slug(), "memory_bytes": memory, **here, **dict.fromkeys(unset + bounds)}
    import torch

    properties = torch.cuda.get_device_properties(index)
    identity = _uuid("cuda", index)
    return here | {
        "slug": _slug(properties.name) + (f"-x{count}" if count > 1 else ""),
        "gpu": properties.name,
        "count": count,
        "capability": f"{properties.major}.{properties.minor}",
        "sm_count": properties.multi_processor_count,
        "memory_bytes": properties.total_memory,
        "l2_bytes": properties.L2_cache_size or None,
        "card": card_hash(identity),
        "driver": driver.version(),
        **driver.boundaries(identity),
    }


def here() -> dict[str, Any] | None:
    """The first GPU that torch would see, the `cards` of its model, and what a recording made on
    them now is compared with. None without a driver, with every card hidden, or with a torch built
    for the CPU."""
    build = versions.torch_build()
    cards = driver.visible_cards() if build.cuda else []
    if not cards:
        return None
    return {
        "slug": _slug(cards[0].name),
        "card": card_hash(cards[0].uuid),
        "cards": [card_hash(card.uuid) for card in cards if card.name == cards[0].name],
        "torch": build.version,
        "driver": driver.version(),
        "cuda": build.cuda,
        "cpu": cpu_slug(),
    }


def first_card() -> driver.Size | None:
    """What the first GPU that torch would see has, asked of the driver; None without one."""
    cards = driver.visible_cards() if versions.torch_build().cuda else []
    return driver.size(cards[0]) if cards else None


def cpu_slug() -> str:
    """The slug under which this host's CPU is recorded."""
    return f"cpu-{_slug(_cpu_model())}"


def conditions(device: Device) -> dict[str, Any] | None:
    """`driver.conditions` of a device; None on a CPU and without NVML."""
    kind, index = parse_device(device)
    return driver.conditions(_uuid(kind, index)) if kind == "cuda" else None


def foreign_processes(device: Device) -> list[int] | None:
    """Other processes that compute on the device's card; None on a CPU and without NVML."""
    kind, index = parse_device(device)
    found = driver.compute_processes(_uuid(kind, index)) if kind == "cuda" else None
    if found is None:
        return None
    others = [pid for pid in found if pid != os.getpid()]
    torch = sys.modules.get("torch")
    if len(others) == len(found) and torch is not None and torch.cuda.is_initialized():
        # We hold a context and are not on the list: it counts in another PID namespace, and one
        # of the numbers that mean nothing here is ours.
        unknown = [pid for pid in others if not Path(f"/proc/{pid}").exists()]
        if unknown:
            others.remove(unknown[0])
    return others


def free_bytes(device: Device) -> int | None:
    """Bytes that can still be allocated on a device; None where the system does not say."""
    kind, index = parse_device(device)
    if kind == "cpu":
        return _free_host_bytes()
    import torch

    # What torch holds in reserve is free for torch, though not for the driver; and a process may
    # have been allowed a part of the card alone.
    free, whole = torch.cuda.mem_get_info(index)
    held = torch.cuda.memory_allocated(index)
    allowed = int(whole * torch.cuda.get_per_process_memory_fraction(index)) - held
    return max(min(free + torch.cuda.memory_reserved(index) - held, allowed), 0)


def require_bytes(device: Device, needed: int, what: str) -> None:
    """Raise OutOfMemory, before anything is allocated, where fewer than `needed` bytes are free.
    `needed` is the worst moment; `what` needs them, as the subject of a sentence."""
    free = free_bytes(device)
    if free is not None and needed > free:
        raise OutOfMemory(
            f"{what} needs {units.byte_count(needed)} on {device}, and "
            f"{units.byte_count(free)} are free. Take smaller sizes, or free memory there."
        )


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether there was no memory left, by the error's type or number; or by the words of libraries
    for which torch has no type (`NO_MEMORY`)."""
    torch = sys.modules.get("torch")  # who never loaded it has none of its errors
    if torch and isinstance(error, torch.AcceleratorError):
        return getattr(error, "error_code", None) == OUT_OF_MEMORY
    if isinstance(error, (MemoryError, *((torch.OutOfMemoryError,) if torch else ()))):
        return True
    # A size that no integer holds is a TypeError where it fails on the way into torch.
    said = str(error) if isinstance(error, RuntimeError | TypeError) else ""
    return any(sign in said for sign in NO_MEMORY)


def card_hash(identity: str) -> str:
    """Twelve hex digits that tell cards of one model apart and do not give the UUID away."""
    return hashlib.sha256(f"anatomy:GPU-{identity.lower()}".encode()).hexdigest()[:12]


@functools.cache
def _uuid(kind: str, index: int) -> str:
    """The bare UUID of a device. The driver and torch agree on it; torch is asked if loaded."""
    if torch := sys.modules.get("torch"):
        return str(torch.cuda.get_device_properties(f"{kind}:{index}").uuid)
    cards = {card.index: card.uuid for card in driver.visible_cards()}
    if index not in cards:
        raise DeviceError(f"{kind}:{index} does not exist: {len(cards)} GPUs are visible.")
    return cards[index]


def _slug(name: str) -> str:
    plain = re.sub(r"\((?:r|tm|c)\)|\bCPU\b|@.*", " ", name, flags=re.IGNORECASE)
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")


def _cpu_model() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()


def _host_memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return None


def _free_host_bytes() -> int | None:
    """What the kernel says is available, or less where a container is allowed less (Linux)."""
    try:
        meminfo = Path("/proc/meminfo").read_text()
        free = [int(re.search(r"^MemAvailable:\s*(\d+) kB", meminfo, re.M)[1]) * 1024]
    except (OSError, TypeError):
        return None
    try:
        group = Path("/sys/fs/cgroup")
        limit = (group / "memory.max").read_text().strip()
        if limit != "max":
            free.append(int(limit) - int((group / "memory.current").read_text()))
    except (OSError, ValueError):
        pass  # no such group, or no limit
    return max(min(free), 0)
