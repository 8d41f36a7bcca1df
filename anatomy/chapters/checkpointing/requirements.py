"""What steps with checkpoints and in micro-batches take of a device: most by the ordinary way, with
which all others are compared. Where that does not fit, a cell with fewer sequences is measured too,
under its own name."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from anatomy.parts import sizes
from anatomy.parts.demands import HEAD_WIDTH
from anatomy.record.requirements import ITEM_BYTES, Capacity, Requirement, requires

STEPS = (2, 4, 8)  # micro-batches that a batch is cut into; 1 is the full batch


@dataclass(frozen=True)
class Cell:
    """One point of the map: the model's width and depth, and what a step is given."""

    width: int
    depth: int
    batch: int
    sequence: int

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return self.batch * self.sequence

    @property
    def op(self) -> str:
        """Its name, which no other cell has."""
        return f"train C={self.width} L={self.depth} T={self.batch}x{self.sequence}"

    @property
    def in_steps(self) -> str:
        """Its name where the batch is cut into micro-batches."""
        return f"train {self.batch} sequences of {self.sequence}"


def frontier_cells(
    on: Capacity, width: int, depth: int, batch: int, sequence: int, dtype: str, full: bool
) -> list[Cell]:
    """The points of the map: depths at one width, half of it, and one with few tokens."""
    half, quarter = max(2, depth // 2), max(2, depth // 4)
    # Whole heads, as far as there is more than one.
    narrow = HEAD_WIDTH * (width // (2 * HEAD_WIDTH)) or max(1, width // 2)
    depths, widths = [quarter, half, depth], [(narrow, half)]
    if full:
        depths = [2, quarter, half, depth, 2 * depth, 3 * depth]
        widths += [(narrow, depth), (narrow, 3 * depth), (2 * width, quarter)]
    found = [Cell(width, each, batch, sequence) for each in depths]
    found += [Cell(wide, each, batch, sequence) for wide, each in widths]
    # With so few tokens the host sets the pace, and what it does twice counts.
    found.append(Cell(width, half, 1, max(1, sequence // 8)))
    return _with_smaller(list(dict.fromkeys(found)), on, 1, lambda cell: of_frontier(cell, dtype))


def step_cells(
    on: Capacity, width: int, layers: int, batch: int, sequence: int, dtype: str, full: bool
) -> list[Cell]:
    """Batches of sequences of several lengths, from the longest down."""
    parts = (1, 2, 4, 8, 16, 32) if full else (1, 4, 16)
    lengths = dict.fromkeys(max(1, sequence // part) for part in parts)
    found = [Cell(width, layers, batch, length) for length in lengths]
    return _with_smaller(found, on, max(STEPS), lambda cell: of_steps(cell, dtype))


def _with_smaller(
    cells: Sequence[Cell], on: Capacity, least: int, of: Callable[[Cell], Requirement]
) -> list[Cell]:
    """Behind each cell that does not fit, the one with most sequences, `least` times a power of
    two, that does."""
    found = {}
    for cell in cells:
        found[cell] = None
        batch = cell.batch // 2
        while batch >= least and of(cell).why_not(on) and batch % least == 0:
            smaller = replace(cell, batch=batch)
            if not of(smaller).why_not(on):
                found[smaller] = None
                break
            batch //= 2
    return list(found)


def of_frontier(cell: Cell, dtype: str) -> Requirement:
    """The weights, three answers with all their gradients, and what the ordinary way keeps."""
    weights = sizes.weights(cell.width, cell.depth)
    kept = sizes.kept(cell.width, cell.depth, cell.tokens)
    need = 4 * weights + kept + sizes.running(cell.width, cell.tokens)
    wide = sizes.check_bytes(4 * cell.width**2)
    return Requirement(cell.op, need * ITEM_BYTES[dtype] + wide, dtype)


def of_steps(cell: Cell, dtype: str) -> Requirement:
    """As of the frontier: the full batch keeps most."""
    return replace(of_frontier(cell, dtype), op=cell.in_steps)


@requires("checkpointing.frontier")
def frontier(
    on: Capacity, width: int, depth: int, batch: int, sequence: int, dtype: str, full: bool
) -> list[Requirement]:
    """Of each cell, and of the smaller one that is taken where it does not fit."""
    cells = frontier_cells(on, width, depth, batch, sequence, dtype, full)
    return [of_frontier(cell, dtype) for cell in cells]


@requires("accumulation.steps")
def steps(
    on: Capacity, width: int, layers: int, batch: int, sequence: int, dtype: str, full: bool
) -> list[Requirement]:
    """Of each cell, and of the smaller one that is taken where it does not fit."""
    cells = step_cells(on, width, layers, batch, sequence, dtype, full)
    return [of_steps(cell, dtype) for cell in cells]


@requires("accumulation.gradients")
def gradients(
    on: Capacity, width: int, layers: int, vocabulary: int, batch: int, sequence: int
) -> Iterator[Requirement]:
    """In float64: the model, a few vectors of all gradients, and what its scores need."""
    weights = sizes.weights(width, layers) + 2 * vocabulary * width
    tokens = batch * sequence
    kept = sizes.kept(width, layers, tokens) + sizes.running(width, tokens)
    yield Requirement("gradients", 8 * (10 * weights + kept + 8 * tokens * vocabulary))


@requires("checkpointing.traps")
def traps(on: Capacity, width: int, batch: int) -> Iterator[Requirement]:
    """Two linear layers, twice."""
    yield Requirement("traps", 4 * (16 * width**2 + 32 * batch * width))
