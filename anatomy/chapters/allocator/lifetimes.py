"""What each block of memory was for, from the allocator's own record of a run."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

ALLOCATED, FREED = "alloc", "free_completed"  # words of torch.cuda.memory._snapshot
TEMPORARY = "temporary"


class Event(NamedTuple):
    """One block that was handed out, or came back; `address` is null of no block."""

    action: str
    address: int
    bytes: int


class Mark(NamedTuple):
    """What lives after so many events: what the blocks at these addresses are, and what all others
    are that were handed out since the mark before."""

    events: int
    kinds: Mapping[int, str]
    others: str = TEMPORARY


def events(trace: Iterable[Mapping[str, Any]]) -> list[Event]:
    """The blocks of a device's trace, in order; what the driver gave or took is left out."""
    wanted = (each for each in trace if each["action"] in (ALLOCATED, FREED))
    return [Event(each["action"], each["addr"], each["size"]) for each in wanted]


def blocks(record: Sequence[Event], marks: Sequence[Mark]) -> list[dict[str, Any]]:
    """Each block that was handed out: its kind, its bytes, and at which events it came and went
    (None where it stayed). A block is what the first mark says that it lived to see."""
    found: list[dict[str, Any]] = []
    living: dict[int, dict[str, Any]] = {}
    left = list(marks)
    for number, event in enumerate(record):
        while left and left[0].events <= number:
            _name(living, left.pop(0))
        if event.action == ALLOCATED:
            block = {"kind": None, "bytes": event.bytes, "born": number, "died": None}
            living[event.address] = block
            found.append(block)
        elif block := living.pop(event.address, None):
            block["died"] = number
    for mark in left:
        _name(living, mark)
    return [block | {"kind": block["kind"] or TEMPORARY} for block in found]


def _name(living: Mapping[int, dict[str, Any]], mark: Mark) -> None:
    for address, block in living.items():
        if block["kind"] is None:
            block["kind"] = mark.kinds.get(address, mark.others)


def levels(rows: Iterable[Mapping[str, Any]], count: int) -> dict[str, list[int]]:
    """Bytes of each kind that live after each of so many events, from the rows of blocks: each has
    its `kind` and `block_bytes`, from `born_event` to `died_event` (None where it stayed)."""
    changes: dict[str, list[int]] = {}
    for row in rows:
        own = changes.setdefault(row["kind"], [0] * (count + 1))
        own[row["born_event"]] += row["block_bytes"]
        if row.get("died_event") is not None:
            own[row["died_event"]] -= row["block_bytes"]
    return {kind: list(accumulate(own[:count])) for kind, own in changes.items()}
