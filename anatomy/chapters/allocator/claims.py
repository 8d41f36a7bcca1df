"""What PyTorch's caching allocator saves, what splits its memory, and what holds it."""

from anatomy.claims import Finding, Need, answer, claim
from anatomy.claims.table import Table, judged, known
from anatomy.judge.rows import Row
from anatomy.table import units

COSTS, STEP = Need("allocator.costs"), Need("allocator.training_step")
PATTERN, LOSSES = Need("allocator.fragmentation"), Need("allocator.kept_losses")
CHEAP = 10  # times cheaper, at the least, for it to matter which
NOTHING = 2**16  # bytes of a kept loss: a few scalars, each in a block of its own


@claim(COSTS, topic="allocator")
def cached_blocks_are_cheap(costs: Table) -> Finding:
    """A block from PyTorch's cache costs a tenth of one from the driver, or less.

    The cache emptied before each request, over a request that finds its block there."""
    emptied = (({"size": row["op"]}, row) for row in costs.select(variant="cache emptied"))
    cases = judged(emptied, lambda over: over.at_least(CHEAP))
    return cases.finding(f"The driver over the cache: {cases.spans('size')}.")


def _last(pattern: Table, way: str) -> tuple[Row, str]:
    """What there is after the large block, and what became of it; Unmeasured where the pattern did
    not run."""
    row = pattern.select(op="after", way=way)[-1]
    return row, "there was room" if known(row, "found_room") else "out of memory"


@claim(PATTERN, topic="allocator")
def free_memory_in_pieces_is_lost(pattern: Table) -> Finding:
    """A block can find no room although more than its size is free.

    The default allocator refuses the last block of a pattern, with so much free and held."""
    row, outcome = _last(pattern, "default")
    free = row["reserved_bytes"] - row["allocated_bytes"]
    said = f"{units.byte_count(free)} free, {units.byte_count(row['largest_free_bytes'])} at most "
    return answer(not row["found_room"], f"{said}in one piece: {outcome}.")


@claim(PATTERN, topic="allocator")
def expandable_segments_find_room(pattern: Table) -> Finding:
    """With expandable segments the same block finds room.

    The last block of the pattern in a process with expandable_segments:True, and without."""
    default, by_default = _last(pattern, "default")
    expandable, found = _last(pattern, "expandable")
    said = f"By default {by_default}; with expandable segments {found}."
    return answer(expandable["found_room"] and not default["found_room"], said)


@claim(STEP, topic="allocator")
def backward_holds_the_most(step: Table) -> Finding:
    """A training step holds the most where its backward pass begins.

    Of the parts of the second step, backward holds more at once than any other."""
    parts = [row for row in step.select(kind="part") if row["variant"].startswith("step 2")]
    most = {row["variant"].partition(", ")[2]: known(row, "most_bytes") for row in parts}
    told = ", ".join(f"{part} {units.byte_count(size)}" for part, size in most.items())
    return answer(max(most, key=most.get) == "backward", f"At most held in {told}.")


@claim(LOSSES, topic="allocator")
def kept_losses_hold_activations(losses: Table) -> Finding:
    """A kept loss holds its batch's activations, unless backward() has freed them.

    What a kept loss holds: next to nothing after backward(), and far more without it."""
    rows = losses.select(variant="losses.append(loss)")
    kept = {row["direction"]: known(row, "kept_bytes") for row in rows}
    told = ", ".join(f"{passes} {units.byte_count(size)}" for passes, size in kept.items())
    holds = kept["training"] <= NOTHING and kept["validation"] >= CHEAP * NOTHING
    return answer(holds, f"By each loss: {told}.")
