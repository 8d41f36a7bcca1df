"""Numbers that an experiment can't take, refused before anything is allocated or timed."""

from anatomy.machine import host
from anatomy.table.errors import BadParameter

HEAD_WIDTH = 64  # of an attention head: what published models use, and every fused kernel takes
LAYER_BYTES = 2**15  # what a layer takes beside its weights, as Python's objects: about so much


def positive(**given: float) -> None:
    """Refuse what is not above 0: whole numbers count something, others are factors or seconds."""
    for name, number in given.items():
        if number <= 0:
            wanted = "it must be 1 or more" if isinstance(number, int) else "it must be above 0"
            raise BadParameter(f"{name}={number}: {wanted}.")


def multiple(of: int, **given: int) -> None:
    """Refuse what is no multiple, or not above 0, naming the nearest multiple."""
    for name, number in given.items():
        if number <= 0 or number % of:
            good = max(1, round(number / of)) * of
            raise BadParameter(f"{name}={number} is not a multiple of {of}; try {name}={good}.")


def width(number: int) -> None:
    """Refuse the width C of a transformer that is no whole number of heads, nor one narrow head."""
    positive(width=number)
    if number > HEAD_WIDTH:
        multiple(HEAD_WIDTH, width=number)


def weights(width: int, layers: int) -> None:
    """Raise OutOfMemory for a transformer that the host has no room for: each layer is Python's
    objects there, wherever its weights are, and what it is held against may be computed there."""
    need = layers * (12 * width * width * 4 + LAYER_BYTES)  # in float32
    host.require_bytes("cpu", need, f"A transformer of {layers} layers of width {width}")


def heads_of(number: float) -> int:
    """A width made by a factor, as one that `width` accepts: rounded down to whole heads."""
    whole = int(number) // HEAD_WIDTH * HEAD_WIDTH
    return whole or max(1, int(number))
