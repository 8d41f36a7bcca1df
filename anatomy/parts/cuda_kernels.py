"""CUDA kernels of our own, compiled when they are asked for: by NVRTC, which comes with torch, so
that a reader needs no compiler. The source lies in snippets/kernels/, one kernel a file of its
name: what a page shows is what was measured."""

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch

from anatomy.parts import grid
from anatomy.table.errors import DeviceError

# From here on a kernel must be told first how much dynamic shared memory it will ask for.
FREE_SHARED_BYTES = 48 * 2**10
# CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT of the CUDA driver's API.
CARVEOUT = 9
LOCAL_SIZE_BYTES, NUM_REGS = 3, 4  # further attributes of a function there
KERNELS = Path(__file__).resolve().parents[2] / "snippets" / "kernels"


class CudaKernel:
    """A kernel ready to be launched, on the current stream of the current device. A launch costs
    the host some tens of microseconds, for it goes through ctypes."""

    def __init__(self, name: str) -> None:
        file = KERNELS / f"{name.partition('<')[0]}.cu"
        with _refusals(name), _without_toolkit():
            self._launch = torch.cuda._compile_kernel(file.read_text(encoding="utf-8"), name)
        self._shared_bytes = 0

    def __call__(
        self, blocks: int, threads: int, arguments: Sequence[Any], shared_bytes: int = 0
    ) -> None:
        """Launch so many blocks of so many threads. Tensors are passed as pointers, integers as
        `int`, and floats as `double`; `shared_bytes` is dynamic shared memory of each block. Raises
        a DeviceError where the device refuses."""
        with _refusals("the kernel"):
            self._allow(shared_bytes)
            self._launch((blocks, 1, 1), (threads, 1, 1), tuple(arguments), shared_bytes)

    def blocks_per_sm(self, threads: int, shared_bytes: int = 0) -> int:
        """How many such blocks an SM holds at once, by the driver's reckoning of threads, registers
        and shared memory; 0 where not even one fits."""
        found = ctypes.c_int()
        with _refusals("the kernel"):
            self._allow(shared_bytes)
            self._driver("OccupancyMaxActiveBlocksPerMultiprocessor")(
                ctypes.byref(found), self._launch.func, threads, ctypes.c_size_t(shared_bytes)
            )
        return found.value

    def _allow(self, shared_bytes: int) -> None:
        if shared_bytes <= self._shared_bytes:
            return
        # Else the driver may keep a part as L1 cache, and fewer blocks fit than could.
        self._driver("FuncSetAttribute")(self._launch.func, CARVEOUT, 100)
        if shared_bytes >= FREE_SHARED_BYTES:
            self._launch.set_shared_memory_config(shared_bytes)
        self._shared_bytes = shared_bytes

    @staticmethod
    def _driver(name: str):
        """A function of the CUDA driver that raises a RuntimeError where it fails."""
        from torch.cuda import _utils

        function = getattr(_utils._get_gpu_runtime_library(), f"cu{name}")
        return lambda *given: _utils._check_cuda(function(*given))


@cache
def kernel(name: str) -> CudaKernel:
    """The kernel of `snippets/kernels/NAME.cu`; of a template, such as `loads<4>`, that instance.

    Raises:
        DeviceError: The source does not compile, or this PyTorch comes without NVRTC.
    """
    return CudaKernel(name)


def given_to_a_thread(run: CudaKernel) -> dict[str, int]:
    """What the compiler gave each thread of a kernel: `thread_registers` of 32 bits, and the
    `local_bytes` that lie in memory instead."""
    found = {}
    for name, attribute in (("thread_registers", NUM_REGS), ("local_bytes", LOCAL_SIZE_BYTES)):
        value = ctypes.c_int()
        with _refusals("the kernel"):
            get = CudaKernel._driver("FuncGetAttribute")
            get(ctypes.byref(value), attribute, run._launch.func)
        found[name] = value.value
    return found


def why_not(where: torch.device) -> str | None:
    """Why no kernel of ours can run on a device, as a row's note; None if they can."""
    if where.type != "cuda":
        return f"a CUDA kernel needs a GPU; this is {where.type}"
    if torch.version.hip is not None:
        return "a CUDA kernel needs an NVIDIA GPU; this is ROCm"
    if not hasattr(torch.cuda, "_compile_kernel"):
        return f"PyTorch {torch.__version__} can't compile a kernel by itself"
    return None


@contextmanager
def _refusals(what: str) -> Iterator[None]:
    """What compiler and driver refuse, as an error that costs a row and not the run."""
    try:
        yield
    except torch.AcceleratorError:
        raise  # after it the process can use the device no more
    except (RuntimeError, OSError, ImportError) as error:
        said = grid.reason_of(RuntimeError(" ".join(str(error).split())))
        raise DeviceError(f"{what} can't run here: {said}") from error


@contextmanager
def _without_toolkit() -> Iterator[None]:
    """Let PyTorch do without the CUDA toolkit, whose headers it would name to NVRTC though our
    kernels include none; without one, it gives up."""
    from torch.utils import cpp_extension

    there = cpp_extension.CUDA_HOME
    cpp_extension.CUDA_HOME = there or str(KERNELS)
    try:
        yield
    finally:
        cpp_extension.CUDA_HOME = there
