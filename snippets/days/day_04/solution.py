"""Day 4: one solution of build.py."""

import random


# --8<-- [start:solution]
def chain(lines: int, seed: int) -> list[int]:
    order = list(range(lines))
    random.Random(seed).shuffle(order)  # the order of the visit, not the chain itself
    follows = [0] * lines
    for here, there in zip(order, order[1:] + order[:1], strict=True):
        follows[here] = there  # the last one leads back to the first: one cycle
    return follows


# --8<-- [end:solution]
