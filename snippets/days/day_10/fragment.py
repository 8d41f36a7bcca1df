"""Fill the allocator's cache with blocks of one size, use it for smaller ones, ask for a large one.

    python fragment.py
    PYTORCH_ALLOC_CONF=expandable_segments:True python fragment.py

How PyTorch asks for memory is settled when a process first uses the GPU, so each way has its own.
"""

import json
import sys

import torch

MIB = 2**20
COUNT, FIRST, SECOND, LARGE = 16, 64, 40, 128  # blocks, and their sizes in MiB


# --8<-- [start:pattern]
def pattern():
    """Yield what was done, and keep the blocks alive meanwhile."""
    first = [block(FIRST) for _ in range(COUNT)]
    yield f"{COUNT} of {FIRST} MiB"
    first.clear()
    yield "all freed"
    second = [block(SECOND) for _ in range(COUNT)]  # each takes a part of a cached block
    yield f"{COUNT} of {SECOND} MiB"
    allow_no_more()
    try:
        second.append(block(LARGE))
        yield f"{LARGE} MiB more: there was room"
    except torch.OutOfMemoryError:
        yield f"{LARGE} MiB more: out of memory"


# --8<-- [end:pattern]


def block(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


def allow_no_more():
    """Let the allocator have what it has now, as on a card that is full."""
    _, total = torch.cuda.mem_get_info()
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + MIB) / total)


def free_blocks():
    """Sizes of the free pieces of what was taken from the driver."""
    pieces = (each for segment in torch.cuda.memory_snapshot() for each in segment["blocks"])
    return [each["size"] for each in pieces if each["state"] == "inactive"]


def blocks():
    """Each piece of each segment that was taken from the driver, in order: its size."""
    for number, segment in enumerate(torch.cuda.memory_snapshot()):
        for each in segment["blocks"]:
            yield {"segment": number, "size": each["size"], "used": each["state"] != "inactive"}


def measured():
    """Bytes after each part of the pattern, and the pieces after the third."""
    steps, pieces = [], []
    for done in pattern():
        stats = torch.cuda.memory_stats()
        now = {name: stats[f"{name}_bytes.all.current"] for name in ("allocated", "reserved")}
        steps.append({"done": done, "largest": max(free_blocks(), default=0)} | now)
        if len(steps) == 3:
            pieces = list(blocks())
    settings = torch.cuda.memory._snapshot().get("allocator_settings", {})
    return {"steps": steps, "blocks": pieces, "expandable": settings.get("expandable_segments")}


if __name__ == "__main__":
    if not torch.cuda.is_available():
        sys.exit("This needs an NVIDIA GPU: a CPU's memory has another allocator.")
    if "--json" in sys.argv:
        torch.cuda.set_device(sys.argv[-1])
        print(json.dumps(measured()))
    else:
        print("done: allocated, reserved, free in the largest piece, in MiB")
        for each in measured()["steps"]:
            sizes = (each[name] // MIB for name in ("allocated", "reserved", "largest"))
            print(f"{each['done']}:", *sizes)
