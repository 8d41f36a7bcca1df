"""Made-up recordings of launches: each way costs the host so much, a kernel the GPU so much."""

from pathlib import Path
from typing import Any

from anatomy.chapters.launches.launches import BLOCKS, CPP, EMPTY, GRAPH, OP, OURS, THREADS, WARPS
from tests.fakes import synthetic

# Seconds of a launch for the host; of a graph's kernel; of an empty kernel on the GPU.
HOST_S = {OP: 4e-6, EMPTY: 3e-6, OURS: 2e-5, CPP: 1.5e-6, GRAPH: 5e-8}
KERNEL_S = 9e-7
COUNT, BYTES_PER_S, WARP_SLOWER = 2**25, 4e12, 1.8


@synthetic.makes("launches.rates")
def rates(root: Path, without_cpp: bool = False, **params: Any) -> Path:
    """A recording of `launches.rates`; `without_cpp` as of a machine without a compiler."""
    rows, op = [], "100 launches"
    for quantity in ("host_enqueue", "step_wall", "gpu_warm"):
        cost = {
            "host_enqueue": HOST_S.get,
            "step_wall": lambda way: max(HOST_S[way], KERNEL_S),
            "gpu_warm": lambda way: KERNEL_S * (1.5 if way == OP else 1),
        }[quantity]
        seconds = {way: 100 * cost(way) for way in HOST_S}
        rows += synthetic.timed(op, quantity, seconds, kernel_count=100)
    if without_cpp:
        rows = [row for row in rows if row["variant"] != CPP]
        why = "not supported: needs the CUDA toolkit (nvcc)"
        gone = {"op": op, "variant": CPP, "role": "variant", "note": why, "device": "cuda"}
        rows += [gone | {"quantity": q} for q in ("host_enqueue", "step_wall", "gpu_warm")]
    first = {"op": "compile", "role": "variant", "quantity": "step_wall", "samples": 1}
    for way, took in ((OURS, 0.12), (CPP, 6.0)):
        rows.append(first | {"variant": way, "median_s": took, "blocks_s": [took]})
    return synthetic.record(root, "launches.rates", rows, **params)


@synthetic.makes("launches.block_sizes")
def block_sizes(root: Path, **params: Any) -> Path:
    """A recording of `launches.block_sizes`: small blocks are slow."""
    places = {"torch.add": ("PyTorch", None, None, 1.0)}
    places |= {f"CUDA, {n}": ("CUDA", n, n, WARP_SLOWER if n == 32 else 1.0) for n in THREADS}
    for warps in WARPS:
        made = f"Triton, {warps} warp{'s' if warps > 1 else ''}"
        for block in BLOCKS:
            places[f"{made}, {block}"] = made, block, 32 * warps, 1 + 64 * warps / block
    seconds = {name: slower * 12 * COUNT / BYTES_PER_S for name, (*_, slower) in places.items()}
    columns = ("made_with", "block_elements", "block_threads")
    own = {name: dict(zip(columns, place, strict=False)) for name, place in places.items()}
    moved = {"bytes": 12 * COUNT, "limit": "copy"}
    rows = synthetic.timed("vector add", "gpu_warm", seconds, own, **moved)
    return synthetic.record(root, "launches.block_sizes", rows, **params)
