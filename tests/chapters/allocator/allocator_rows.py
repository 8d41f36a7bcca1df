"""Made-up recordings of the allocator: a cache that is cheap, and a pattern that splits memory."""

from pathlib import Path
from typing import Any

from anatomy.chapters.allocator.allocator import CACHED, EMPTIED, fragments
from anatomy.chapters.allocator.requirements import SIZES
from tests.fakes import synthetic

MIB = 2**20
CACHED_S = 2e-6  # seconds of a cached block
KEPT = {"training": 512, "validation": 240 * MIB}


@synthetic.makes("allocator.costs")
def costs(root: Path, driven: float = 80.0, **params: Any) -> Path:
    """A recording of `allocator.costs`; one from the driver costs `driven` times a cached one."""
    rows = []
    for number, (op, size) in enumerate(SIZES.items()):
        how = {"control": CACHED, "seed": number}
        own = synthetic.compared(op, "host_enqueue", CACHED_S, {EMPTIED: driven}, **how)
        for row in own:
            asks = row["variant"] == EMPTIED
            row |= {"asked_bytes": size, "driver_calls": int(asks), "waits_for_gpu": asks}
        rows += own
    return synthetic.record(root, "allocator.costs", rows, **params)


def ran(way: str, room: bool) -> dict[str, Any]:
    """What the pattern's script prints, as the allocator's rules have it."""
    held, each = 16 * 64 * MIB, [(64, 40)] * 16 if way == "default" else [(1024, 640)]
    sizes = [0, held, held - 640 * MIB]
    names = "16 of 64 MiB", "all freed", "16 of 40 MiB"
    steps = [
        {"done": name, "allocated": held - free, "reserved": held, "largest": free}
        for name, free in zip(names, sizes, strict=True)
    ]
    steps[2]["largest"] = (24 if way == "default" else 384) * MIB
    said = "there was room" if room else "out of memory"
    steps.append(steps[2] | {"done": f"128 MiB more: {said}"})
    blocks = []
    for number, (size, used) in enumerate(each):
        blocks.append({"segment": number, "size": used * MIB, "used": True})
        blocks.append({"segment": number, "size": (size - used) * MIB, "used": False})
    return {"steps": steps, "blocks": blocks, "expandable": way == "expandable"}


@synthetic.makes("allocator.fragmentation")
def fragmentation(root: Path, room: tuple[bool, bool] = (False, True), **params: Any) -> Path:
    """A recording of `allocator.fragmentation`; `room` says for whom there was some."""
    ways = zip(("default", "expandable"), room, strict=True)
    rows = [row for way, some in ways for row in fragments(way, ran(way, some))]
    return synthetic.record(root, "allocator.fragmentation", rows, **params)


@synthetic.makes("allocator.training_step")
def training_step(root: Path, activations: int = 60, **params: Any) -> Path:
    """A recording of `allocator.training_step`: three blocks of each kind in either step."""
    rows = [{"variant": "before", "kind": "weights and batch", "block_bytes": 50 * MIB}]
    rows[0] |= {"born_event": 0, "died_event": None}
    event, blocks = 0, []
    for step in (1, 2):
        for part, kind, size in (
            ("forward", "activations", activations),
            ("backward", "gradients", 15),
            ("optimizer", "optimizer state" if step == 1 else "temporary", 30),
        ):
            for _ in range(3):
                dies = {"activations": event + 4, "gradients": event + 6, "temporary": event + 1}
                block = {"kind": kind, "block_bytes": size * MIB, "born_event": event}
                last = kind == "gradients" and step == 2
                blocks.append(block | {"died_event": None if last else dies.get(kind)})
                event += 1
            rows.append({"variant": f"step {step}, {part}", "kind": "part", "died_event": event})
    rows += [{"variant": f"block {n}"} | block for n, block in enumerate(blocks, start=1)]
    return synthetic.record(root, "allocator.training_step", rows, **params)


@synthetic.makes("allocator.kept_losses")
def kept_losses(root: Path, kept: dict[str, int] = KEPT, **params: Any) -> Path:
    """A recording of `allocator.kept_losses`."""
    told = [("losses.append(loss)", *each) for each in kept.items()]
    told += [("losses.append(loss.detach())", passes, 512) for passes in kept]
    told.append(("with torch.no_grad()", "validation", 512))
    names = ("variant", "direction", "kept_bytes")
    rows = [dict(zip(names, each, strict=True)) for each in told]
    return synthetic.record(root, "allocator.kept_losses", rows, **params)
