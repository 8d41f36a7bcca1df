"""Which software measures. Only `installed` imports torch, which takes seconds."""

import ctypes
import importlib.metadata
import importlib.util
import platform
import re
from pathlib import Path
from typing import NamedTuple

from anatomy.table.errors import DeviceError

NO_TORCH = "not installed"


class Build(NamedTuple):
    """An installed torch: its version, and the CUDA or ROCm it is built for, if any."""

    version: str
    cuda: str | None = None
    hip: str | None = None


def torch_build() -> Build:
    """Which torch is installed, without importing it: read from its own version.py."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.origin:
        return Build(NO_TORCH)
    source = (Path(spec.origin).parent / "version.py").read_text()
    found = dict(re.findall(r"^(\w+)[^=\n]*= *'([^']+)'", source, re.MULTILINE))
    return Build(found.get("__version__", "unknown"), found.get("cuda"), found.get("hip"))


def require_torch() -> Build:
    """`torch_build` for who is about to measure; raises DeviceError where none is installed."""
    build = torch_build()
    if build.version == NO_TORCH:
        raise DeviceError(
            "Measuring needs PyTorch, and none is installed in this environment: install it as "
            "https://pytorch.org/get-started/locally says for your CUDA, or with pip install torch."
        )
    return build


def installed() -> dict[str, str | None]:
    """The software block of a recording: versions, None for what is not installed."""
    import torch

    cudnn = torch.backends.cudnn.version() if torch.version.cuda else None
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        # 91002 is 9.10.2 since cuDNN 9 (cudnn_version.h).
        "cudnn": f"{cudnn // 10000}.{cudnn // 100 % 100}.{cudnn % 100}" if cudnn else None,
        "cublas": _cublas(torch.version.cuda),
        "triton": _version("triton"),
        "numpy": _version("numpy"),
        "pandas": _version("pandas"),
        "os": _operating_system(),
    }


def _cublas(cuda: str | None) -> str | None:
    """Version of the cuBLAS that torch has loaded; it is no Python package on every host."""
    if cuda is None:
        return None
    try:
        ask = ctypes.CDLL(f"libcublas.so.{cuda.split('.')[0]}").cublasGetProperty
    except (OSError, AttributeError):
        return _version("nvidia-cublas") or _version(f"nvidia-cublas-cu{cuda.split('.')[0]}")
    # libraryPropertyType: major, minor, patch (library_types.h)
    parts = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    if any(ask(number, ctypes.byref(part)) for number, part in enumerate(parts)):
        return None
    return ".".join(str(part.value) for part in parts)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _operating_system() -> str:
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = f"{platform.system()} {platform.release()}"
    return f"{name} ({platform.machine()})"
