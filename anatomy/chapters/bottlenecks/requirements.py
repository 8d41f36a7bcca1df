"""What the workloads of known bottleneck take of a device."""

from collections.abc import Iterator

from anatomy.parts import sizes
from anatomy.parts.demands import HEAD_WIDTH
from anatomy.record.requirements import ITEM_BYTES, Capacity, Requirement, requires

FORMAT = "bf16"  # of large layers on a GPU


def sized(length: float, scale: float, multiple: int = 8) -> int:
    """A length times `scale`, as a multiple of `multiple` that is not 0."""
    return max(multiple, int(length * scale) // multiple * multiple)


@requires("bottlenecks.confusion")
def confusion(on: Capacity, scale: float) -> Iterator[Requirement]:
    """Inputs, and three answers: a call's, the reference's, and in float64 what these are held
    against each other in."""

    def answered(op: str, inputs: int, answer: int, dtype: str = "fp32") -> Requirement:
        need = _item(dtype, on) * (inputs + 3 * answer) + sizes.check_bytes(answer)
        return Requirement(op, need, dtype)

    side = sized(8192, scale)
    yield answered("matmul", 2 * side**2, side**2, FORMAT)
    heads = 4 * 16 * sized(4096, scale) * 128
    yield answered("attention", 3 * heads, heads, FORMAT)
    copied = sized(2**27, scale)
    yield answered("copy", copied, copied)
    norm = sized(2**16, scale) * sized(4096, scale)
    yield answered("layer_norm", norm, norm, FORMAT)
    yield answered("embedding", 256 * sized(2**20, scale), 256 * sized(2**19, scale))
    yield answered("additions", 1024, 1024)
    yield answered("training", 2**20, 2**20)
    yield answered("item", sized(2**22, scale), sized(2**22, scale))
    yield answered("nonzero", 2 * sized(2**22, scale), 2 * sized(2**22, scale))
    yield answered("loading", 2**20 + 1024 * sized(1024, scale), 1024 * sized(1024, scale))
    yield answered("transfer", sized(2**25, scale), sized(2**25, scale))


def _item(dtype: str, on: Capacity) -> int:
    """Bytes of an element; a CPU has large layers in float32."""
    return 4 if on.capability is None else ITEM_BYTES[dtype]


@requires("bottlenecks.profiled_call")
def profiled_call(on: Capacity, scale: float) -> Iterator[Requirement]:
    """A small transformer, and two convolutions of a few images."""
    width, tokens = sized(1024, scale, HEAD_WIDTH), 4 * sized(1024, scale)
    values = sizes.weights(width, 2) + sizes.running(width, tokens)
    yield Requirement("transformer", _item(FORMAT, on) * values, FORMAT)
    width, side = sized(128, scale), sized(128, scale)
    values = 9 * width**2 + 16 * 8 * width * side**2
    yield Requirement("convolutions", _item(FORMAT, on) * values, FORMAT)
