"""What each block of memory was for, from the allocator's own record of a run."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

TEMPORARY = "temporary"
Event = tuple[str, int, int]  # what was done, with the block at which address, and its bytes
# After so many events: what lives at these addresses, and what all else is that was handed out
# since the mark before.
Mark = tuple[int, Mapping[int, str], str]


def events(trace: Iterable[Mapping[str, Any]]) -> list[Event]:
    """The blocks of a device's trace that were handed out or came back, in order; what the driver
    gave or took is left out."""
    wanted = ("alloc", "free_completed")
    return [(x["action"], x["addr"], x["size"]) for x in trace if x["action"] in wanted]


def blocks(record: Sequence[Event], marks: Iterable[Mark]) -> list[dict[str, Any]]:
    """Each block that was handed out: its kind, its bytes, and at which events it came and went
    (None where it stayed). A block is what the first mark says that it lived to see."""
    found: list[dict[str, Any]] = []
    living: dict[int, dict[str, Any]] = {}
    begun = 0
    for upto, kinds, others in marks:
        for number, (action, address, size) in enumerate(record[begun:upto], start=begun):
            if action == "alloc":
                block = {"kind": None, "block_bytes": size, "born_event": number}
                living[address] = block | {"died_event": None}
                found.append(living[address])
            elif address in living:
                living.pop(address)["died_event"] = number
        for address, block in living.items():
            block["kind"] = block["kind"] or kinds.get(address, others)
        begun = upto
    return [block | {"kind": block["kind"] or TEMPORARY} for block in found]


def levels(rows: Iterable[Mapping[str, Any]], count: int) -> dict[str, list[int]]:
    """Bytes of each kind that live after each of so many events, by those rows that are blocks."""
    changes: dict[str, list[int]] = {}
    for row in (row for row in rows if row.get("block_bytes")):
        own = changes.setdefault(row["kind"], [0] * (count + 1))
        own[row["born_event"]] += row["block_bytes"]
        if row.get("died_event") is not None:
            own[row["died_event"]] -= row["block_bytes"]
    return {kind: list(accumulate(own[:count])) for kind, own in changes.items()}
