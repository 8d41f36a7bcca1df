"""Answers of the exercises on memory."""

from anatomy.figures.curriculum.calculations import calculation

KEPT = 'allocator.kept_losses."losses.append(loss)".direction=validation.kept_bytes'
EMPTIED = 'allocator.costs."64 MiB"."cache emptied"'


@calculation(unit="batches", memory="machine:memory_bytes", kept=KEPT)
def batches_until_full(memory: float, kept: float) -> float:
    """Memory of the card over what one kept validation loss holds, rounded down."""
    return memory // kept


@calculation(unit="s", emptied=f"{EMPTIED}.median_s")
@calculation("blocks-without-a-cache-at-least", unit="s", emptied=f"{EMPTIED}.low_s")
@calculation("blocks-without-a-cache-at-most", unit="s", emptied=f"{EMPTIED}.high_s")
def blocks_without_a_cache(emptied: float) -> float:
    """200 blocks of 64 MiB, as a step may take, each from the driver and back to it."""
    return 200 * emptied
