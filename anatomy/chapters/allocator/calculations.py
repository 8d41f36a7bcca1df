"""Answers of the exercises on memory."""

from anatomy.figures.curriculum.calculations import calculation

BLOCKS = 300  # that a step of a small model takes
KEPT = 'allocator.kept_losses."losses.append(loss)".direction=validation.kept_bytes'


@calculation("batches-until-full", unit="batches", memory="machine:memory_bytes", kept=KEPT)
def batches_until_full(memory: float, kept: float) -> float:
    """Memory of the card over what one kept validation loss holds, rounded down."""
    return memory // kept


@calculation(
    "blocks-without-a-cache",
    unit="s",
    emptied='allocator.costs."32 MiB"."cache emptied".median_s',
)
def blocks_without_a_cache(emptied: float) -> float:
    """300 blocks of 32 MiB, each from the driver and back to it."""
    return BLOCKS * emptied


@calculation("blocks-with-a-cache", unit="s", cached='allocator.costs."32 MiB"."cached".median_s')
def blocks_with_a_cache(cached: float) -> float:
    """300 blocks of 32 MiB, each from PyTorch's cache."""
    return BLOCKS * cached
