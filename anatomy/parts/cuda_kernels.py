"""CUDA kernels of our own, compiled when they are asked for: by NVRTC, which comes with torch, so
that a reader needs no compiler. The source lies in snippets/kernels/, one kernel a file of its
name: what a page shows is what was measured."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch

# Above this a kernel must be told first how much dynamic shared memory it will ask for.
FREE_SHARED_BYTES = 48 * 2**10
KERNELS = Path(__file__).resolve().parents[2] / "snippets" / "kernels"


class CudaKernel:
    """A kernel ready to be launched, on the current stream of the current device."""

    def __init__(self, name: str) -> None:
        source = (KERNELS / f"{name}.cu").read_text(encoding="utf-8")
        self._launch = torch.cuda._compile_kernel(source, name)

    def __call__(
        self, blocks: int, threads: int, arguments: Sequence[Any], shared_bytes: int = 0
    ) -> None:
        """Launch so many blocks of so many threads. Tensors are passed as pointers, integers as
        `int`, and floats as `double`; `shared_bytes` is dynamic shared memory of each block."""
        if shared_bytes >= FREE_SHARED_BYTES:
            self._launch.set_shared_memory_config(shared_bytes)
        self._launch((blocks, 1, 1), (threads, 1, 1), tuple(arguments), shared_bytes)


@cache
def kernel(name: str) -> CudaKernel:
    """The kernel of `snippets/kernels/NAME.cu`.

    Raises:
        RuntimeError: The source does not compile, or this PyTorch comes without NVRTC.
    """
    return CudaKernel(name)


def why_not(where: torch.device) -> str | None:
    """Why no kernel of ours can run on a device, as a row's note; None if they can."""
    if where.type != "cuda":
        return f"a CUDA kernel needs a GPU; this is {where.type}"
    if torch.version.hip is not None:
        return "a CUDA kernel needs an NVIDIA GPU; this is ROCm"
    if not hasattr(torch.cuda, "_compile_kernel"):
        return f"PyTorch {torch.__version__} can't compile a kernel by itself"
    return None
