"""What the layer takes of a device whose graph is looked at: most in float64, with attention
written out, which all else is held against."""

from collections.abc import Iterator
from dataclasses import dataclass

from anatomy.parts import sizes
from anatomy.record.requirements import ITEM_BYTES, Capacity, Requirement, requires

EXACT_SCORES = 6  # tables of scores that the layer in float64 holds at once, forward and backward
ACTIVATIONS = 64  # copies of the layer's activations that a call may need, checked beforehand
LAYER_LONGEST = 2048  # longest sequence at which the whole layer is timed too
CORE, LAYER = "attention", "layer"
SINGLE = ("forward of one operation", "backward of one operation")
OPERATIONS = 11  # that change no number of a matrix


@dataclass(frozen=True)
class Problem:
    """Sizes of the layer and of its input."""

    batch: int  # sequences B
    seq: int  # tokens T of each
    dmodel: int  # width C
    nhead: int  # heads H
    dtype: str  # of weights and input

    @property
    def bytes(self) -> int:
        """About as many as the layer, its gradients and its activations need."""
        weights = 2 * 12 * self.dmodel**2
        activations = ACTIVATIONS * self.batch * self.seq * self.dmodel
        return (weights + activations) * max(4, ITEM_BYTES[self.dtype])

    @property
    def exact_bytes(self) -> int:
        """About as many as the same in float64 needs, with attention written out."""
        scores = EXACT_SCORES * self.batch * self.nhead * self.seq**2
        return 8 * scores + 2 * self.bytes


@requires("autograd_graph.census", "autograd_graph.nodes")
def graphs(
    on: Capacity, dtype: str, batch: int, seq: int, dmodel: int, nhead: int
) -> Iterator[Requirement]:
    """The layer and its gradients; what is in float64 is left out where it does not fit."""
    yield Requirement("graph", Problem(batch, seq, dmodel, nhead, dtype).bytes, dtype)


@requires("autograd_graph.traced", "autograd_graph.compiled")
def steps(
    on: Capacity, dtype: str, batch: int, seq: int, dmodel: int, nhead: int
) -> Iterator[Requirement]:
    """The layer in float64, which all ways are held against."""
    yield Requirement("step", Problem(batch, seq, dmodel, nhead, dtype).exact_bytes, dtype)


def lengths(longest: int, full: bool) -> Iterator[tuple[str, str, int]]:
    """The `op` of each cell, what is timed there, and how long its sequences are."""
    for sequence in sizes.sequences(longest, 2 if full else 4):
        for scope in (CORE, LAYER):
            if scope == CORE or sequence <= LAYER_LONGEST:
                yield f"{scope} T={sequence}", scope, sequence


@requires("autograd_graph.costs")
def costs(
    on: Capacity,
    dtype: str,
    batch: int,
    dmodel: int,
    nhead: int,
    longest: int,
    side: int,
    full: bool,
) -> Iterator[Requirement]:
    """Attention that is held against its exact result; ways that need more say so themselves."""
    item = ITEM_BYTES[dtype]
    for op, scope, sequence in lengths(longest, full):
        if scope == LAYER:
            need = Problem(batch, sequence, dmodel, nhead, dtype).exact_bytes
        else:
            shape = batch * nhead, sequence, dmodel // nhead, item
            need = sizes.attention_bytes(*shape, causal=True)
        yield Requirement(op, need, dtype)
    yield Requirement("views", 2**20)
    matrix = item * (OPERATIONS + 4) + 8 * 2 * OPERATIONS
    for op in SINGLE:
        yield Requirement(op, matrix * side**2 + sizes.check_bytes(side**2), dtype)
