"""Made-up recordings of the allocator: a cache that is cheap, and a pattern that splits memory."""

from pathlib import Path
from typing import Any

from anatomy.chapters.allocator.allocator import CACHED, EMPTIED, KEEP, KEEPERS
from anatomy.chapters.allocator.requirements import SIZES
from tests.fakes import synthetic

MIB = 2**20
# Kind, MiB, and the events of its birth and its death; each part of a step has two events.
BLOCKS = [("weights and batch", 150, 0, None), ("optimizer state", 90, 4, None)]
BLOCKS += [("activations", None, 0, 3), ("activations", None, 7, 9)]
BLOCKS += [("gradients", 45, 2, 6), ("gradients", 45, 8, None), ("temporary", 90, 10, 11)]


@synthetic.makes("allocator.costs")
def costs(root: Path, driven: float = 80.0, **params: Any) -> Path:
    """A recording of `allocator.costs`; one from the driver costs `driven` times a cached one."""
    rows, seconds = [], {CACHED: 2e-6, EMPTIED: driven * 2e-6}
    own = {name: {"driver_calls": n, "waits_for_gpu": n > 0} for n, name in enumerate(seconds)}
    for op, size in SIZES.items():
        rows += synthetic.timed(op, "host_enqueue", seconds, own, asked_bytes=size)
    return synthetic.record(root, "allocator.costs", rows, **params)


@synthetic.makes("allocator.fragmentation")
def fragmentation(root: Path, room: tuple[bool, bool] = (False, True), **params: Any) -> Path:
    """A recording of `allocator.fragmentation`; `room` says for whom there was some."""
    rows = []
    for way, segments, some in zip(("default", "expandable"), (16, 1), room, strict=True):
        there = {"op": "after", "way": way, "reserved_bytes": 1024 * MIB}
        there |= {"allocated_bytes": 640 * MIB, "largest_free_bytes": 384 * MIB // segments}
        rows.append(there | {"variant": "16 of 40 MiB"})
        rows.append(there | {"variant": "128 MiB more", "found_room": some})
        for number in range(2 * segments):
            size = (640, 384)[number % 2] * MIB // segments
            row = {"op": "piece", "way": way, "variant": f"piece {number + 1}", "piece_bytes": size}
            rows.append(row | {"segment": number // 2, "in_use": number % 2 == 0})
    return synthetic.record(root, "allocator.fragmentation", rows, **params)


@synthetic.makes("allocator.training_step")
def training_step(root: Path, activations: int = 180, **params: Any) -> Path:
    """A recording of `allocator.training_step`: two steps, whose activations have so many MiB."""
    names = [f"step {n}, {part}" for n in (1, 2) for part in ("forward", "backward", "optimizer")]
    ends = {name: 2 * at for at, name in enumerate(names, start=1)}
    rows = [{"variant": name, "kind": "part", "died_event": end} for name, end in ends.items()]
    for kind, size, born, died in BLOCKS:
        row = {"variant": f"block {len(rows)}", "kind": kind, "born_event": born}
        rows.append(row | {"died_event": died, "block_bytes": (size or activations) * MIB})
    return synthetic.record(root, "allocator.training_step", rows, **params)


@synthetic.makes("allocator.kept_losses")
def kept_losses(root: Path, training=512, validation=240 * MIB, **params: Any) -> Path:
    """A recording of `allocator.kept_losses`; what stays of a loss that is kept as it is."""
    sizes, rows = {("training", KEEP): training, ("validation", KEEP): validation}, []
    for way in KEEPERS:
        rows.append({"direction": way[0], "variant": way[1], "kept_bytes": sizes.get(way, 512)})
    return synthetic.record(root, "allocator.kept_losses", rows, **params)
