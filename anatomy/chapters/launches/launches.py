"""Launches: what one costs from Python, from C++ and from a CUDA graph; and how large its blocks
should be."""

import functools
import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from types import ModuleType

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.launches import requirements
from anatomy.chapters.launches.requirements import COUNT
from anatomy.comparison import compare
from anatomy.measure import stopwatch_for
from anatomy.numerics import formats
from anatomy.parts import cuda_kernels, graphs, grid, kernel_tables, memory
from anatomy.record.bounds import Count
from anatomy.record.declare import experiment
from anatomy.table.errors import DeviceError

SNIPPETS = Path(__file__).resolve().parents[3] / "snippets" / "days" / "day_03"
Launch = Callable[[], object]

TIMES = 100  # launches of one call
OP, EMPTY, OURS = "PyTorch op", "PyTorch's empty kernel", "our empty kernel"
CPP, GRAPH = "C++ loop", "CUDA graph"
QUANTITIES = ("host_enqueue", "step_wall", "gpu_warm")
HOW = {"profile": False, "budget_s": 4.0}
THREADS = (32, 64, 128, 256, 512, 1024)
# Elements of a Triton program's block, and the warps that share them.
BLOCKS, WARPS = (64, 256, 1024, 4096, 8192), (1, 4, 16)


@experiment(
    "launches.rates",
    page="curriculum/day_03.md",
    command="launches-rates",
    files=(
        "snippets/kernels/empty.cu",
        "snippets/days/day_03/from_cpp.py",
        "snippets/days/day_03/launches.cu",
    ),
)
def rates(device: str = "cuda:0", iters: Count = 12) -> pd.DataFrame:
    """Launch a hundred kernels that do next to nothing: from Python, from C++, as a CUDA graph.

    Args:
        device: A GPU, such as cuda:0; a CPU launches nothing.

    Returns:
        One row per way and quantity, of a hundred launches each, and what compiling took.
    """
    where = formats.torch_device(device)

    def measure(cell: grid.Cell) -> pd.DataFrame:
        kernel_tables.require(where)
        x = torch.randn(1, device=where)
        ways, first, notes = _ways(x, where)
        calls = {name: _returns(launch, x) for name, launch in ways.items()}
        how = HOW | cell | {"reference": x.double, "device": where, "iters": iters}
        tables = [compare(calls, quantity=each, **how).table for each in QUANTITIES]
        table = pd.concat(tables, ignore_index=True).assign(kernel_count=TIMES)
        table = grid.with_refused(table, cell, notes, quantity=QUANTITIES, where=where)
        table = pd.concat([table, pd.DataFrame(first)], ignore_index=True)
        return grid.with_counts(table, "kernel_count")

    how = {"variants": [OP, EMPTY, OURS, CPP, GRAPH], "quantity": QUANTITIES, "where": where}
    how["promised"] = ("per_launch_s", "per_launch_low_s", "per_launch_high_s")
    return grid.measure_cells([{"op": f"{TIMES} launches"}], measure, **how)


def _ways(x: Tensor, where: torch.device) -> tuple[dict[str, Launch], list[dict], dict[str, str]]:
    """Ways to launch `TIMES` kernels, what it took to compile some, and why others are not here."""
    y = torch.empty_like(x)
    ways = {
        OP: _often(lambda: torch.add(x, 1.0, out=y)),
        EMPTY: _often(lambda: torch.cuda._sleep(1)),
    }
    rows, notes, watch = [], {}, stopwatch_for(where)
    told = {"op": "compile", "role": "variant", "quantity": "step_wall", "samples": 1}
    told |= {"device": where.type, "method": "host clock around compiling and loading"}
    for name, build in {OURS: _our_kernel, CPP: _from_cpp}.items():
        made: list[Launch] = []
        both = functools.partial(watch.wall, [lambda build=build, made=made: made.append(build())])
        # Whatever a compiler has to say costs this way alone.
        took, notes[name] = grid.attempt(both, where, (Exception,))
        if made:
            ways[name] = made[0]
            rows.append(told | {"variant": name, "median_s": took, "blocks_s": [took]})
    ways[GRAPH] = graphs.capture(ways[EMPTY], where).replay
    return ways, rows, {name: why for name, why in notes.items() if why}


def _our_kernel() -> Launch:
    kernel = cuda_kernels.CudaKernel("empty")
    return _often(lambda: kernel(1, 1, ()))


def _from_cpp() -> Launch:
    from torch.utils import cpp_extension

    home = cpp_extension.CUDA_HOME
    if home is None or not (Path(home) / "bin" / "nvcc").exists():
        raise DeviceError("needs the CUDA toolkit (nvcc)")
    if lacking := [each for each in ("g++", "ninja") if shutil.which(each) is None]:
        raise DeviceError(f"needs {lacking[0]}")
    return functools.partial(script("from_cpp").compiled(), TIMES)


def _often(launch: Launch) -> Launch:
    def launches() -> None:
        for _ in range(TIMES):
            launch()

    return launches


def _returns(launch: Launch, x: Tensor) -> Callable[[], Tensor]:
    def call() -> Tensor:
        launch()
        return x

    return call


@experiment(
    "launches.block_sizes",
    page="curriculum/day_03.md",
    command="launches-block-sizes",
    files=("snippets/kernels/vector_add.cu", "snippets/days/day_03/first_triton.py"),
)
def block_sizes(device: str = "cuda:0", iters: Count = 12) -> pd.DataFrame:
    """Add two vectors with blocks of many sizes, in CUDA and in Triton, beside `torch.add`.

    Returns:
        One row per size of a block. In CUDA a thread adds one element; in Triton the warps of a
        block share its elements.
    """
    where = formats.torch_device(device)

    def measure(cell: grid.Cell) -> pd.DataFrame:
        a, b = torch.randn(2, COUNT, device=where)
        calls: dict[str, Callable[[], Tensor]] = {"torch.add": lambda: torch.add(a, b)}
        places, notes = {"torch.add": {"made_with": "PyTorch"}}, {}
        for name, place, add in _kernels(where):
            call = functools.partial(add, a, b)
            # A size that a card or a compiler refuses costs its own row.
            done, why = grid.attempt(call, where, (Exception,))
            places[name] = place
            if done is None:
                notes[name] = why
            else:
                calls[name] = call
        how = HOW | cell | {"device": where, "iters": iters, "quantity": "gpu_warm"}
        exact = {"reference": lambda: a.double() + b, "bytes": 12 * COUNT, "limit": "copy"}
        table = compare(calls, **exact, **how).table
        table = grid.with_refused(table, cell, notes, quantity="gpu_warm", where=where)
        there = [places[each.removesuffix(" (again)")] for each in table.variant]
        table = table.assign(**pd.DataFrame(there, index=table.index))
        return grid.with_counts(table, "block_elements", "block_threads")

    required = requirements.block_sizes(memory.capacity(where))
    how = {"variants": ["torch.add"], "quantity": "gpu_warm", "where": where, "required": required}
    return grid.measure_cells([{"op": "vector add"}], measure, **how)


def _kernels(where: torch.device) -> Iterator[tuple[str, dict, Callable[[Tensor, Tensor], Tensor]]]:
    """Name, place in the table and call of each kernel."""
    for threads in THREADS:
        place = {"made_with": "CUDA", "block_elements": threads, "block_threads": threads}
        yield f"CUDA, {threads}", place, functools.partial(_in_cuda, where, threads)
    for warps, block in product(WARPS, BLOCKS):
        made_with = f"Triton, {warps} warp{'s' if warps > 1 else ''}"
        place = {"made_with": made_with, "block_elements": block, "block_threads": 32 * warps}
        yield f"{made_with}, {block}", place, functools.partial(_in_triton, where, block, warps)


def _in_cuda(where: torch.device, threads: int, a: Tensor, b: Tensor) -> Tensor:
    kernel_tables.require(where)
    total = torch.empty_like(a)
    blocks = -(-a.numel() // threads)
    cuda_kernels.kernel("vector_add")(blocks, threads, (a, b, total, a.numel()))
    return total


def _in_triton(where: torch.device, block: int, warps: int, a: Tensor, b: Tensor) -> Tensor:
    if importlib.util.find_spec("triton") is None:
        raise DeviceError("Triton is not installed")
    if where.type != "cuda" and not os.environ.get("TRITON_INTERPRET"):
        raise DeviceError(f"a Triton kernel needs a GPU; this is {where.type}")
    return script("first_triton").add(a, b, block, warps)


@functools.cache
def script(name: str) -> ModuleType:
    """A snippet of the day as a module."""
    spec = importlib.util.spec_from_file_location(f"day_03_{name}", SNIPPETS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
