"""What experiments on several GPUs take of each, and the sizes that they try."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from anatomy.parts import sizes
from anatomy.parts.demands import heads_of
from anatomy.record.requirements import Capacity, Requirement, requires

# Names of the ways to train, as rows have them.
ONE, DATA_PARALLEL, DDP, FSDP, ZERO = "one GPU", "DataParallel", "DDP", "FSDP2", "ZeRO-1"
SMALL, WHOLE = f"{DDP}, 1 MB buckets", f"{DDP}, one bucket"
VIEW, STATIC = f"{DDP}, gradients as bucket view", f"{DDP}, static graph"
# FSDP2 gathers weights in bfloat16, but for one way, which gathers them in float32.
FULL, KEPT, PREFETCHED = f"{FSDP}, float32", f"{FSDP}, not resharded", f"{FSDP}, prefetched"
COMPILED, DDP_COMPILED, FSDP_COMPILED = (f"{each}, compiled" for each in (ONE, DDP, FSDP))
DDP_CHECKPOINTED, CHECKPOINTED = (f"{each}, checkpoints" for each in (DDP, FSDP))
OFF = "cuDNN's attention off"
ONE_OFF, PARALLEL_OFF = f"{ONE}, {OFF}", f"{DATA_PARALLEL}, {OFF}"
ALONE = (ONE, ONE_OFF, COMPILED)
ONE_DRIVES = (DATA_PARALLEL, PARALLEL_OFF)  # rank 0 drives all GPUs, and the others watch
TRAINED = (ONE, ONE_OFF, *ONE_DRIVES, DDP, SMALL, WHOLE, VIEW, STATIC, DDP_CHECKPOINTED, ZERO)
TRAINED += (FSDP, FULL, KEPT, PREFETCHED, CHECKPOINTED)
COMPILES = (COMPILED, DDP_COMPILED, FSDP_COMPILED)
TRAINED += COMPILES  # last, for nobody knows how long a compiler takes
PROFILED = (DDP, WHOLE, FSDP, FULL, KEPT)
WIDELY = (ONE, DDP, DDP_CHECKPOINTED, FSDP, FULL, KEPT, CHECKPOINTED)
WEAK, STRONG, ACCUMULATED = "weak scaling", "strong scaling", "accumulation"
WIDE = "weak scaling, wide layers"
SENT = "every time", "at the end"  # when accumulated gradients are sent
ACCUMULATING = tuple(f"{way}, {said}" for way in (DDP, FSDP) for said in SENT)
SCALED = {WEAK: TRAINED, STRONG: (ONE, DDP, FSDP), ACCUMULATED: ACCUMULATING}
TENSOR, PARTS = "tensor parallel", "forward of DataParallel"
# DataParallel's forward pass, and its parts. It starts a thread for each copy, which ends with it.
FORWARD, COPIES, SHARES, RUN = "forward", "copy the model", "share out the batch", "run the copies"
GATHER = "gather"
# Controls: with other threads, with a single copy, and without cuDNN's attention.
IN_TURN, STAYING = f"{RUN}, in one thread", f"{RUN}, in threads that stay"
SINGLE, NEW_THREAD = "run one copy", "run one copy, in a new thread"
FORWARD_OFF, RUN_OFF = f"{FORWARD}, {OFF}", f"{RUN}, {OFF}"
PARTS_TIMED = (FORWARD, COPIES, SHARES, RUN, GATHER)
PARTS_TIMED += (IN_TURN, STAYING, SINGLE, NEW_THREAD, FORWARD_OFF, RUN_OFF)
TOO_LARGE = "too large for one GPU"
ALL_GRADIENTS = "all gradients of a step"  # of the model that steps are timed with
STARTUP, GIGABYTE = "start-up, by the fit", "a gigabyte more, by the fit"

# Columns that pages read of steps, whether or not any could be measured.
FIGURES = ("throughput", "efficiency", "total_peak_bytes", "rank")

# Bytes of a weight: its gradient, that with itself and both averages of AdamW, and a copy in DDP's
# buckets.
GRADIENT, STATE, BUCKET = 4, 16, 4
LARGEST_MESSAGE, MESSAGES = 2**30, 10  # bytes, and how many sizes, each a quarter of the one above


@dataclass(frozen=True)
class Size:
    """A transformer, and what one GPU is given in a step."""

    width: int
    layers: int
    batch: int
    sequence: int

    @property
    def weights(self) -> int:
        """Elements of all weights."""
        return sizes.weights(self.width, self.layers)

    @property
    def tokens(self) -> int:
        """Tokens of one GPU's step."""
        return self.batch * self.sequence

    @property
    def columns(self) -> dict[str, int]:
        """The coordinates as columns of a table."""
        return asdict(self)

    @property
    def activation_bytes(self) -> int:
        """What a step needs beside weights, at most: half of it is in float32."""
        kept = sizes.kept(self.width, self.layers, self.tokens)
        return 3 * (kept + 2 * sizes.running(self.width, self.tokens))

    def scaled(self, scale: float, world_size: int) -> "Size":
        """Its share, with a batch that `world_size` GPUs can share."""
        width, sequence = heads_of(self.width * scale), max(8, int(self.sequence * scale))
        batch = -(-self.batch // world_size) * world_size
        return replace(self, width=width, sequence=sequence, batch=batch)


# About 200 million weights: NCCL has something to do, and 19 ways fit beside each other.
STEP = Size(width=2048, layers=4, batch=8, sequence=1024)
WIDE_STEP = Size(width=4096, layers=4, batch=8, sequence=1024)  # as many kernels, four times longer
BLOCKS = tuple(Size(width=4096, layers=1, batch=batch, sequence=2048) for batch in (2, 8))
LARGE = Size(width=4096, layers=1, batch=1, sequence=1024)
# Of the card, which the allocator may take. The rest is for CUDA and NCCL, so that all ranks run
# out of memory at the same call, whatever else lies on a card.
CAP = 0.9


def too_large(cap: int, size: Size) -> Size:
    """With so many layers that what DDP keeps at the least is an eighth more than the `cap`, the
    bytes that the allocator may take. FSDP2 shares all of that out."""
    return replace(size, layers=max(1, -(-cap * 9 // 8 // (STATE * size.weights))))


@requires("distributed.collectives")
def collectives(on: Capacity, scale: float, world_size: int) -> Iterator[Requirement]:
    """The message, what it becomes, and what is gathered."""
    for op, message in messages(scale, world_size).items():
        yield Requirement(op, 3 * message)


def messages(scale: float, world_size: int) -> dict[str, int]:
    """Bytes of the messages by their op: rising, and then as many as a step's gradients have."""
    found = [int(LARGEST_MESSAGE * scale) // 4**step for step in range(MESSAGES)]
    rising = [message // 1024 * 1024 for message in reversed(found) if message >= 1024]
    gradients = GRADIENT * STEP.scaled(scale, world_size).weights
    return {f"message of {each} bytes": each for each in rising} | {ALL_GRADIENTS: gradients}


@requires("distributed.training")
def training(on: Capacity, scale: float, world_size: int) -> Iterator[Requirement]:
    """All ways side by side, one of which computes at a time."""
    size = STEP.scaled(scale, world_size)
    for op in (WEAK, STRONG, ACCUMULATED):
        yield Requirement(op, _side_by_side(TRAINED, size, world_size), "bf16")
    wide = WIDE_STEP.scaled(scale, world_size)
    yield Requirement(WIDE, _side_by_side(WIDELY, wide, world_size), "bf16")
    for block in (each.scaled(scale, world_size) for each in BLOCKS):
        need = 5 * 4 * block.weights + block.activation_bytes
        yield Requirement(tensor_parallel(block), need, "bf16")
    one = 4 * GRADIENT * size.weights + world_size * size.activation_bytes
    yield Requirement(PARTS, one, "bf16")


def _side_by_side(names: Sequence[str], size: Size, world_size: int) -> int:
    """Bytes of what ways keep between steps, and of the step of one."""
    shared = (STATE - GRADIENT) // world_size + GRADIENT
    each = (shared if name.startswith(FSDP) else STATE - GRADIENT + BUCKET for name in names)
    return (sum(each) + 3 * GRADIENT) * size.weights + 2 * size.activation_bytes


def tensor_parallel(block: Size) -> str:
    """The op of a layer of that size in parts."""
    return f"{TENSOR}, {block.tokens} tokens"


@requires("distributed.overlap")
def overlap(on: Capacity, scale: float, world_size: int) -> Iterator[Requirement]:
    """One way at a time."""
    size = STEP.scaled(scale, world_size)
    for way in PROFILED:
        # Under FSDP2 beside its part of the state what is gathered, of all layers at the most.
        each = STATE // world_size + GRADIENT if way.startswith(FSDP) else STATE + BUCKET
        need = each * size.weights + size.activation_bytes
        yield Requirement(profile_of(way), need, "bf16")


def profile_of(way: str) -> str:
    """The op of a profiled step."""
    return f"profile of {way}"


@requires("distributed.memory")
def memory(on: Capacity, scale: float, world_size: int) -> Iterator[Requirement]:
    """Nearly all that there is: the model is made for it."""
    yield Requirement(TOO_LARGE, int(CAP * scale * (on.free_bytes or 0)), "bf16")
