"""CUDA kernels without a GPU: a file of snippets/kernels is compiled by g++ behind a small shim,
and its blocks and threads run one after the other, or at once where they wait for each other."""

import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from anatomy.parts import cuda_kernels

SHIM = r"""
#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
#define __shared__ static
using std::max; using std::min;
struct dim3 { unsigned x = 1, y = 1, z = 1; };
static thread_local dim3 blockIdx, threadIdx;
static dim3 blockDim, gridDim;
static const int warpSize = 32;
struct float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) int4 { int x, y, z, w; };
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
template <class T> T __ldg(const T* from) { return *from; }
template <class T> T __ldcg(const T* from) { return *from; }
template <class T> T __ldcs(const T* from) { return *from; }
template <class T> void __stcs(T* to, T value) { *to = value; }
template <class T, class U> T atomicAdd(T* to, U value) { return __atomic_fetch_add(to, value, 5); }
inline long long clock64() { static thread_local long long now = 0; return now += 100; }
static char* dynamic_shared = nullptr;
static std::unique_ptr<std::barrier<>> barrier_of_block;
inline void __syncthreads() { barrier_of_block->arrive_and_wait(); }
"""
LAUNCH = r"""
extern "C" void launch(unsigned blocks, unsigned threads, long shared_bytes{declared}) {{
    gridDim.x = blocks; blockDim.x = threads;
    for (unsigned block = 0; block < blocks; ++block) {{
        // What a block finds in its shared memory is nothing to build on.
        std::vector<double> shared(shared_bytes / 8 + 2, NAN);
        dynamic_shared = reinterpret_cast<char*>(shared.data());
        auto one = [&](unsigned thread) {{
            blockIdx.x = block; threadIdx.x = thread; {name}({given});
        }};
        if ({together}) {{
            barrier_of_block = std::make_unique<std::barrier<>>(threads);
            std::vector<std::thread> all;
            for (unsigned thread = 0; thread < threads; ++thread)
                all.emplace_back([&, thread] {{
                    one(thread);
                    barrier_of_block->arrive_and_drop();  // who has returned is not waited for
                }});
            for (auto& each : all) each.join();
        }} else
            for (unsigned thread = 0; thread < threads; ++thread) one(thread);
    }}
}}
"""
KERNEL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(([^)]*)\)")
DYNAMIC = re.compile(r"extern\s+__shared__\s+(\w+)\s+(\w+)\s*\[\s*\]\s*;")
# What the door can pass by value. A `float` it can't: Python's floats travel as `double`.
PASSED = {"int": ctypes.c_int, "double": ctypes.c_double}


class KernelOnCpu:
    """A kernel that is launched as `anatomy.parts.cuda_kernels.CudaKernel` is, with CPU tensors; it
    returns when all is done."""

    def __init__(self, name: str) -> None:
        source = (cuda_kernels.KERNELS / f"{name.partition('<')[0]}.cu").read_text("utf-8")
        parameters = parameters_of(source, name.partition("<")[0])
        kinds = [*parameters.values()]
        self._kinds = [ctypes.c_void_p if "*" in kind else PASSED[kind] for kind in kinds]
        launch = LAUNCH.format(
            declared="".join(f", {kind} {each}" for each, kind in parameters.items()),
            name=name,
            given=", ".join(parameters),
            together="true" if "__syncthreads" in source else "false",
        )
        source = DYNAMIC.sub(r"\1* \2 = reinterpret_cast<\1*>(dynamic_shared);", source)
        self._launch = _compiled(SHIM + source + launch).launch

    def __call__(
        self, blocks: int, threads: int, arguments: Sequence[Any], shared_bytes: int = 0
    ) -> None:
        if blocks < 1 or not 1 <= threads <= 1024:
            raise RuntimeError(f"{blocks} blocks of {threads} threads: no such launch")
        assert len(arguments) == len(self._kinds), f"{len(self._kinds)} arguments are declared"
        passed = []
        for kind, given in zip(self._kinds, arguments, strict=True):
            pointer = isinstance(given, torch.Tensor)
            assert pointer == (kind is ctypes.c_void_p), f"{given!r} for {kind}"
            assert pointer or isinstance(given, int if kind is ctypes.c_int else float)
            passed.append(kind(given.data_ptr() if pointer else given))
        sizes = ctypes.c_uint(blocks), ctypes.c_uint(threads), ctypes.c_long(shared_bytes)
        self._launch(*sizes, *passed)

    def blocks_per_sm(self, threads: int, shared_bytes: int = 0) -> int:
        """As of an SM with room for 2,048 threads and 228 KiB, of which a block takes 1 more."""
        return min(2048 // threads, 228 * 2**10 // (shared_bytes + 2**10))


@cache
def kernel(name: str) -> KernelOnCpu:
    """Stands in for `anatomy.parts.cuda_kernels.kernel`; skips the test where no g++ is."""
    return KernelOnCpu(name)


def parameters_of(source: str, name: str) -> dict[str, str]:
    """The kernel's parameters and their types; an AssertionError if the door can't pass one."""
    found = dict(KERNEL.findall(source))
    assert name in found, f"{name}.cu has no __global__ void {name}(...)"
    parameters = {}
    for declared in filter(None, map(str.strip, found[name].split(","))):
        kind, each = re.fullmatch(r"(.*?)(\w+)", declared.replace("__restrict__", "")).groups()
        kind = kind.replace("const", "").strip() if "*" not in kind else kind.strip()
        assert "*" in kind or kind in PASSED, f"{name}.cu: {declared!r} can't be passed"
        parameters[each] = kind
    return parameters


def _compiled(source: str) -> ctypes.CDLL:
    if shutil.which("g++") is None:
        pytest.skip("needs g++, which runs the CUDA kernels on the CPU")
    folder = Path(tempfile.gettempdir()) / "anatomy-cuda-on-cpu"
    folder.mkdir(exist_ok=True)
    # By its content, so that a source is compiled once, whichever process is first.
    library = folder / f"{hashlib.sha256(source.encode()).hexdigest()[:16]}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=folder) as made:
            file = Path(made, "kernel.cpp")
            file.write_text(source, encoding="utf-8")
            how = ("-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", "-w")
            done = subprocess.run(
                ["g++", *how, str(file), "-o", f"{file}.so"], capture_output=True, text=True
            )
            assert not done.returncode, f"g++ refuses the kernel:\n{done.stderr[:2000]}"
            Path(f"{file}.so").rename(library)
    return ctypes.CDLL(str(library))
