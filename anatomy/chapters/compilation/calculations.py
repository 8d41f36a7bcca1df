"""What the bytes of a chain of elementwise layers take, at the rate of a copy."""

from anatomy.chapters.compilation.fusion import LEAST_TRIPS, trips
from anatomy.chapters.compilation.requirements import LAYERS
from anatomy.figures.curriculum.calculations import calculation

FUSED = 'compilation.breaks."large elementwise"."0 breaks".'


@calculation("fused-chain-bytes", unit="s", moved=FUSED + "bytes", copy="limit:copy")
def fused_bytes(moved: float, copy: float) -> float:
    """One read and one write of the tensor over the bandwidth of a copy."""
    return moved / copy


@calculation("eager-chain-bytes", unit="s", moved=FUSED + "bytes", copy="limit:copy")
def eager_bytes(moved: float, copy: float) -> float:
    """All trips of the eager layers over the bandwidth of a copy."""
    return moved / LEAST_TRIPS * trips(LAYERS) / copy
