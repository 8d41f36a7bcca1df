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


def pieces():
    """Each piece of each segment that was taken from the driver, in order."""
    for number, segment in enumerate(torch.cuda.memory_snapshot()):
        for each in segment["blocks"]:
            in_use = each["state"] != "inactive"
            yield {"segment": number, "piece_bytes": each["size"], "in_use": in_use}


def measured():
    """Rows of what there is after each part of the pattern, and of the pieces after the third."""
    after, third = [], []
    for done in pattern():
        now = list(pieces())
        free = (each["piece_bytes"] for each in now if not each["in_use"])
        row = {"op": "after", "variant": done.partition(":")[0]}
        row["allocated_bytes"] = torch.cuda.memory_allocated()
        row["reserved_bytes"] = torch.cuda.memory_reserved()
        after.append(row | {"largest_free_bytes": max(free, default=0)})
        if len(after) == 3:
            named = enumerate(now, start=1)
            third = [{"op": "piece", "variant": f"piece {n}"} | each for n, each in named]
    after[-1]["found_room"] = done.endswith("there was room")
    return after + third


if __name__ == "__main__":
    if not torch.cuda.is_available():
        sys.exit("This needs an NVIDIA GPU: a CPU's memory has another allocator.")
    if "--json" in sys.argv:
        torch.cuda.set_device(sys.argv[-1])
        rows = measured()
        settings = torch.cuda.memory._snapshot().get("allocator_settings", {})
        print(json.dumps({"rows": rows, "expandable": settings.get("expandable_segments")}))
    else:
        print("done: allocated, reserved, free in the largest piece, in MiB; was there room?")
        for row in measured():
            if row["op"] == "after":
                names = ("allocated_bytes", "reserved_bytes", "largest_free_bytes")
                room = {True: "yes", False: "no"}.get(row.get("found_room"), "")
                print(f"{row['variant']}:", *(row[name] // MIB for name in names), room)
