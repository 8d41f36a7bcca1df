"""What each block of memory was for, from the allocator's own record of a run."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

WEIGHTS, TEMPORARY = "weights and batch", "temporary"
# Part of a training step -> what it leaves behind.
LEFT_BY = {"forward": "activations", "backward": "gradients", "optimizer": "optimizer state"}
Event = tuple[str, int, int]  # what was done, with the block at which address, and its bytes


def events(trace: Iterable[Mapping[str, Any]]) -> list[Event]:
    """The blocks of a device's trace that were handed out or came back, in order; what the driver
    gave or took is left out."""
    wanted = ("alloc", "free_completed")
    return [(x["action"], x["addr"], x["size"]) for x in trace if x["action"] in wanted]


def blocks(record: Sequence[Event], ends: Mapping[str, int]) -> list[dict[str, Any]]:
    """Each block that was handed out: its kind, its bytes, and at which events it came and went
    (None where it stayed).

    A block is what the part of the step leaves that it was handed out in, if it outlives that part,
    and else temporary. `ends` has after how many events each part ended, such as `step 1, forward`.
    """
    found: list[dict[str, Any]] = []
    living: dict[int, dict[str, Any]] = {}
    begun = 0
    for part, end in ends.items():
        left = LEFT_BY[part.partition(", ")[2]]
        for number, (action, address, size) in enumerate(record[begun:end], start=begun):
            if action == "alloc":
                block = {"kind": left, "block_bytes": size, "born_event": number}
                living[address] = block | {"died_event": None}
                found.append(living[address])
            elif block := living.pop(address, None):
                block["died_event"] = number
                if block["born_event"] >= begun:
                    block["kind"] = TEMPORARY
        begun = end
    return found


def levels(rows: Iterable[Mapping[str, Any]], count: int) -> pd.DataFrame:
    """Bytes that live after each of so many events, a column for each kind; of those rows that are
    blocks."""
    table = pd.DataFrame([row for row in rows if row.get("block_bytes")])
    born, died = (
        table.pivot_table("block_bytes", end, "kind", "sum") for end in ("born_event", "died_event")
    )
    return born.sub(died, fill_value=0).reindex(range(count)).fillna(0).cumsum()
