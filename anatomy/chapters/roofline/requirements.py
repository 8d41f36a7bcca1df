"""What the layer, the chain of FMAs and the operations take of a device; their sizes."""

from collections.abc import Iterator

from anatomy.chapters.roofline import counts
from anatomy.parts.sizes import attention_bytes, check_bytes
from anatomy.record.requirements import Capacity, Requirement, requires

# FMAs on an element. Around the ridge they are close together; each is at most three runs of the
# loops that the kernel has written out.
FMAS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 80, 96, 128, 256, 512, 1024)
CHAIN = "FMAs on each element"
CACHES = 12  # that a tensor and its result fill, so that nothing is left there for the next call
# Rows and width of the layer relu(x @ W + b): one that is over in microseconds, and one that fills
# the GPU.
ON_CPU = "on the CPU"  # ends the op of a layer that the host runs
LAYERS = {"small layer": (64, 256), "large layer": (8192, 4096)}


def fma_name(count: int) -> str:
    """What a row is called."""
    return f"{count} FMA{'s' * (count > 1)}"


def chain_elements(cache_bytes: int, scale: float) -> int:
    """Elements of the tensor, whole blocks of threads that take four each."""
    return max(1024, int(scale * CACHES * cache_bytes / 8) // 1024 * 1024)


def layer_sides(name: str, scale: float) -> tuple[int, int]:
    """Rows M and width N = K of a layer, scaled."""
    rows, width = LAYERS[name]
    return max(4, int(scale * rows)), max(8, int(scale * width))


@requires("roofline.first_layer")
def first_layer(on: Capacity, scale: float) -> Iterator[Requirement]:
    """In two formats, with the results of three kernels, and in float64."""
    for name in LAYERS:
        rows, width = layer_sides(name, scale)
        values = 2 * rows * width + width**2
        yield Requirement(name, (4 + 2) * (values + 4 * rows * width) + 8 * values
                          + check_bytes(rows * width), "bf16")  # fmt: skip
        yield Requirement(f"{name}, {ON_CPU}", 0)


@requires("roofline.intensity")
def intensity(on: Capacity, scale: float) -> Iterator[Requirement]:
    """The tensor and its result, and what that is held against in float64."""
    n = chain_elements(on.cache_bytes, scale)
    yield Requirement(CHAIN, 2 * 4 * n + 8 * n + check_bytes(n))


@requires("roofline.operations")
def operations(on: Capacity, scale: float) -> Iterator[Requirement]:
    """What stands in memory for those timed together, and one of them with its exact result."""
    s = counts.sizes(on.cache_bytes, scale)
    n, square, read = s.n, 4 * s.m**2, s.side**2
    # What is taken and given in fp32, and in float64 what is taken, what it becomes, and between.
    for op, tensors in (("elementwise", 4), ("reductions", 4), ("movement", 3), ("optimizer", 10)):
        wide = check_bytes(n) + (0 if op == "optimizer" else 3 * 8 * n)
        yield Requirement(op, 4 * tensors * n + wide)
    yield Requirement("short", 2**20 + 8 * 4 * s.cached)
    for dtype, side2 in (("fp32", s.m**2), ("tf32", s.m**2), ("bf16", square), ("fp8", square)):
        held = 4 * 4 * side2 + (2 * read if dtype == "bf16" else 0)
        wide = max(3 * 8 * side2 + check_bytes(side2), 8 * read)
        yield Requirement(f"matmul {dtype}", held + wide, dtype)
    tensors = attention_bytes(s.heads, s.tokens, counts.HEAD, 2, causal=False)
    yield Requirement("attention", tensors, "bf16")
