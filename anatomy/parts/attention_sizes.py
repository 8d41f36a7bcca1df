"""Which lengths of attention are measured, and which would need more memory than there is."""

import torch

from anatomy.machine import host
from anatomy.numerics import formats
from anatomy.parts import attention
from anatomy.parts.attention import WAYS, Size
from anatomy.table import units

# Shortest sequence of a map; each next one is so many times as long.
SHORTEST, STEP, FINE_STEP = 128, 4, 2
# Tensors of N x N scores that are there at once. Written out: the scores, the scaled ones and the
# probabilities; backward the probabilities and two gradients, and one for safety. In `math` also a
# mask of the rows without any score, and the probabilities with those rows mended.
SCORES = {"manual": {"forward": 3, "backward": 4}, "math": {"forward": 4, "backward": 5}}
# Ways of different sizes of scores can't use each other's freed memory. So that it need not be
# given back and asked for again within the blocks, none may need more than this share of it.
MOST_MEMORY = 0.5
# Tensors of (B, H, N, D) in float64 and in the tensors' format that a comparison holds.
WIDE_TENSORS, TENSORS = 8, 24
# Tensors of one block's scores in the exact computation.
EXACT_SCORES = 6


def sequences(longest: int, step: int) -> list[int]:
    """Lengths from `longest` down by `step`, not below `SHORTEST`, in rising order."""
    found = [longest]
    while found[-1] // step >= SHORTEST:
        found.append(found[-1] // step)
    return found[::-1]


def too_large(size: Size, where: torch.device) -> dict[str, str]:
    """Which ways would need more than a sensible share of the memory that is free, and why."""
    free = host.free_bytes(where)
    if free is None:
        return {}
    item, pairs = formats.itemsize(size.dtype), size.heads * size.sequence**2
    # Inputs, results and exact results; in the meantime, the exact computation's own scores.
    linear = size.heads * size.sequence * size.width * (8 * WIDE_TENSORS + item * TENSORS)
    reference = EXACT_SCORES * 8 * min(pairs, attention.BLOCK_SCORES)
    found = {}
    for name in WAYS:
        copies = SCORES.get(name, {}).get("backward" if size.backward else "forward", 0)
        copies += size.causal * bool(copies)  # the scores with those behind the mask filled in
        # `math` computes 16-bit problems in float32.
        scores = copies * pairs * (max(item, 4) if name == "math" else item)
        need = linear + max(scores, reference) + size.causal * size.sequence**2
        if need > MOST_MEMORY * free:
            found[name] = (
                f"would need about {units.byte_count(need)}, more than half of the "
                f"{units.byte_count(free)} that are free"
            )
    return found
