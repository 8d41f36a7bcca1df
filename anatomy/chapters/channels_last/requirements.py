"""What convolutions take of a device: tensors in each layout, and the same in float64; of a network
also what it keeps for the backward pass."""

from collections.abc import Iterator, Sequence

from anatomy.parts import sizes
from anatomy.record.requirements import ITEM_BYTES, Capacity, Requirement, requires

DTYPES = ("fp32", "tf32", "fp16", "bf16")
NETWORK_DTYPES = ("fp32", "tf32", "bf16")  # fp16 is as bf16 but in the first convolution
# Channels in, channels out, side of the kernel, stride, side of the image: ResNet-50's first
# convolution, and its 3 x 3 ones of the first and the third stage.
LAYERS = ((3, 64, 7, 2, 224), (64, 64, 3, 1, 56), (256, 256, 3, 1, 14))
FINER_LAYERS = (*LAYERS, (32, 32, 3, 1, 56), (128, 128, 3, 1, 28), (512, 512, 3, 1, 7))
BATCHES, FINER_BATCHES = (8, 64), (1, 8, 64, 256)
NETWORK_BATCHES, FINER_NETWORK_BATCHES = (8, 32, 128), (1, 8, 32, 128)
PHASES = ("inference", "training")
CONVERSION = "conversion"
# Those with the largest batch, which a GPU is busy with long enough to set the pace, and in which
# cuDNN also searches: for all of them it would take a minute.
TUNED = ("bf16",)
DEEP, SHORT = (3, 4, 6, 3), (1, 1, 1, 1)  # blocks of the stages: ResNet-50's; for a quick look
WEIGHTS = 26_000_000  # of the network 64 channels wide; they grow with the square of its width

Cell = dict[str, object]


def cells(dtype: str, scale: float, full: bool) -> Iterator[Cell]:
    """The cells of the map of single convolutions, each with its `layer`."""
    batches = list(dict.fromkeys(scaled(n, scale) for n in (FINER_BATCHES if full else BATCHES)))
    formats = DTYPES if dtype == "all" else (dtype,)
    for layer in FINER_LAYERS if full else LAYERS:
        what = f"C={layer[0]}"
        for batch in batches:
            # Training costs three times as much, so the coarse map has it for large batches alone.
            for phase in PHASES if full or batch == batches[-1] else PHASES[:1]:
                for each in formats:
                    yield _cell(what, phase, each, batch) | {"channels": layer[0]}
        # A copy is a matter of bytes, so one format tells of all.
        yield _cell(what, CONVERSION, formats[-1], batches[-1]) | {"channels": layer[0]}


def network_cells(dtype: str, scale: float, full: bool) -> Iterator[Cell]:
    """The cells of the map of the network."""
    found = FINER_NETWORK_BATCHES if full else NETWORK_BATCHES
    batches = list(dict.fromkeys(scaled(n, scale) for n in found))
    formats = (dtype,) if dtype != "all" else DTYPES if full else NETWORK_DTYPES
    for batch in batches:
        for each in formats:
            for phase in PHASES if full else _phases(each, batch, batches):
                searched = batch == batches[-1] and (full or each in TUNED)
                for tuned in (False, True) if searched else (False,):
                    yield _cell("", phase, each, batch, tuned)


def _phases(dtype: str, batch: int, batches: Sequence[int]) -> tuple[str, ...]:
    """What the coarse map of the network has of one batch, in one number format."""
    if batch == batches[-1] and len(batches) == len(NETWORK_BATCHES) and dtype not in TUNED:
        return ()
    return PHASES[:1] if batch == batches[0] != batches[-1] else PHASES


def _cell(what: str, phase: str, dtype: str, batch: int, tuned: bool = False) -> Cell:
    op = f"{what} {phase} {dtype} N={batch}".strip() + (", tuned" if tuned else "")
    told = {"op": op, "phase": phase, "dtype": dtype, "batch": batch}
    return told | {"cudnn_benchmark": tuned}


def layer_of(cell: Cell) -> tuple[int, ...]:
    """The layer of a cell of `cells`: of all layers no two have as many channels."""
    return next(layer for layer in FINER_LAYERS if layer[0] == cell["channels"])


@requires("channels_last.map")
def map(on: Capacity, dtype: str, scale: float, full: bool) -> Iterator[Requirement]:
    """Input and result in three layouts, a copy for each call, and their like in float64."""
    for cell in cells(dtype, scale, full):
        before, after, _, stride, side = layer_of(cell)
        pixels = cell["batch"] * scaled(side, scale) ** 2
        taken, made = pixels * before, pixels * after // stride**2
        item = ITEM_BYTES[cell["dtype"]]
        wide = 8 * 3 * (taken + made) + sizes.check_bytes(max(taken, made))
        yield Requirement(cell["op"], item * 6 * (taken + made) + wide, cell["dtype"])


@requires("channels_last.network")
def network(
    on: Capacity, width: int, side: int, dtype: str, scale: float, short: bool, full: bool
) -> Iterator[Requirement]:
    """Four models and their gradients, the images in each layout, and the larger of two passes: in
    the cell's format, and in float32, which it is held against."""
    each = SHORT if short else DEEP
    weights = WEIGHTS * width**2 // 64**2 + 3 * width * 1000
    for cell in network_cells(dtype, scale, full):
        item, images = ITEM_BYTES[cell["dtype"]], cell["batch"] * 3 * side**2
        held = (12 + 6 * item) * weights + 4 * 4 * images
        training = cell["phase"] == "training"
        values = 1.2 * kept(width, side, each) if training else 2 * width * side**2
        yield Requirement(cell["op"], held + int(cell["batch"] * 4 * values), cell["dtype"])


def kept(width: int, side: int, blocks: Sequence[int]) -> int:
    """Values that a forward pass keeps of one image: each norm's input and each ReLU's result."""
    pixels = (side / 2) ** 2
    found = 2 * width * pixels + 3 * width * pixels / 4
    pixels /= 4
    for stage, count in enumerate(blocks):
        channels = width * 2**stage
        for block in range(count):
            before = pixels
            pixels /= 4 if stage and not block else 1
            found += 2 * channels * (before + pixels) + (8 if block else 12) * channels * pixels
    return int(found)


def scaled(value: int, scale: float) -> int:
    """A size times `scale`; of a part of it at least 4."""
    return max(4, int(scale * value)) if scale < 1 else int(scale * value)
