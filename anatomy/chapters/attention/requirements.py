"""What attention takes of a device: the exact result that all ways are held against, and tensors of
each way. Ways that write their scores out need more, and say so themselves."""

from collections.abc import Iterator
from itertools import product

from anatomy.parts import sizes
from anatomy.parts.sizes import SHORTEST
from anatomy.record.requirements import ITEM_BYTES, Capacity, Requirement, requires

FORWARD, BOTH = DIRECTIONS = ("forward", "forward and backward")
STEP, FINE_STEP = 4, 2  # of a map's sequences; each next is so many times as long
BESIDE = (16, 4)  # parts of the longest sequence that are also timed with a causal mask
FINE_ABOVE = 2048  # longer maps are always fine: a power of the length needs more than three
# Form of a call -> what is different from the plain one.
FORMS = {
    "plain": {},
    "with gradients": {"gradients": True},
    "causal": {"causal": True},
    "with a mask": {"mask": True},
    "fp32": {"dtype": "fp32"},
    "heads of 60": {"head_width": 60},
    "heads of 128": {"head_width": 128},
    "heads of 256": {"head_width": 256},
    "heads of 320": {"head_width": 320},
    "one query": {"queries": 1},
}
FORM_TENSORS = 8  # of (B, H, N, D): q, k, v, the output, and the gradients of all four


def lengths(longest: int, full: bool) -> list[int]:
    """The lengths of a map, in rising order: by halves where it is fine, else by fourths."""
    found = [longest]
    while True:
        step = FINE_STEP if full or found[-1] > FINE_ABOVE else STEP
        if found[-1] // step < SHORTEST:
            return found[::-1]
        found.append(found[-1] // step)


def cells(longest: int, causal: bool, full: bool) -> list[dict[str, object]]:
    """The cells of the map, each with its `op`, `sequence` and `direction`, and whether a token
    sees only itself and those before it: `causal`."""
    wanted = [(sequence, causal) for sequence in lengths(longest, full)]
    beside = (longest // part for part in BESIDE if longest // part >= SHORTEST)
    wanted += [] if causal else [(sequence, True) for sequence in beside]
    found = []
    for (sequence, masked), direction in product(wanted, DIRECTIONS):
        named = direction if masked == causal else f"{direction}, causal"
        told = {"op": f"{named} N={sequence}", "sequence": sequence, "direction": named}
        found.append(told | {"causal": masked})
    return found


@requires("attention.backends")
def backends(
    on: Capacity, dtype: str, heads: int, head_width: int, longest: int, causal: bool, full: bool
) -> Iterator[Requirement]:
    """The exact result, and a way that keeps no scores."""
    for cell in cells(longest, causal, full):
        size = heads, cell["sequence"], head_width, ITEM_BYTES[dtype]
        yield Requirement(cell["op"], sizes.attention_bytes(*size, causal=cell["causal"]), dtype)


def form(name: str, dtype: str, head_width: int, sequence: int) -> dict[str, object]:
    """A form of the call, by the columns that tell it apart."""
    plain = {"dtype": dtype, "head_width": head_width, "queries": sequence}
    return plain | {"gradients": False, "causal": False, "mask": False} | FORMS[name]


@requires("attention.choices")
def choices(
    on: Capacity, dtype: str, heads: int, head_width: int, sequence: int
) -> Iterator[Requirement]:
    """Each form's tensors; which formats a card has is what is asked there."""
    for name in FORMS:
        told = form(name, dtype, head_width, sequence)
        held = FORM_TENSORS * heads * sequence * told["head_width"] * ITEM_BYTES[told["dtype"]]
        yield Requirement(name, held + told["queries"] * sequence)
