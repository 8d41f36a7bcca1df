"""Start-up time and bandwidth of collectives, and what follows for more GPUs: numbers alone.

A collective of a message of n bytes takes start + n * share / bandwidth, where share is the part
of the message that each GPU sends (in a ring of N: 2 (N - 1) / N for an all-reduce). That is the
usual model of latency and bandwidth (Hockney 1994; Thakur et al., "Optimization of Collective
Communication Operations in MPICH", 2005, section 3)."""

from collections.abc import Sequence
from dataclasses import dataclass

# What one GPU's links carry in one direction, in bytes per second, by the name of the card: half of
# what NVIDIA states for both directions together, 900 GB/s (datasheets of H100 SXM and H200 SXM)
# and 600 GB/s (A100 SXM).
LINKS = {"H200": 450e9, "H100 80GB HBM3": 450e9, "A100-SXM": 300e9}


@dataclass(frozen=True)
class Fit:
    """A collective among `gpus`: seconds to start, and bytes that each GPU sends in a second."""

    start_s: float
    rate: float
    gpus: int

    def seconds(self, message: float, gpus: int, rounds: int = 2) -> float:
        """What a message of so many bytes takes among so many GPUs, in a ring: its steps grow with
        N - 1, and so does the start."""
        start_s = self.start_s * (gpus - 1) / max(self.gpus - 1, 1)
        return start_s + message * rounds * (gpus - 1) / gpus / self.rate


def fitted(points: Sequence[tuple[float, float]], gpus: int) -> Fit | None:
    """The line through (bytes sent by each GPU, seconds) whose errors, as shares of the times, have
    the least sum of squares: else the largest message alone would count. None where there is no
    line with a positive slope."""
    ones = [(1 / t, sent / t) for sent, t in points if t > 0]
    aa = sum(a * a for a, _ in ones)
    ab = sum(a * b for a, b in ones)
    bb = sum(b * b for _, b in ones)
    a1, b1 = sum(a for a, _ in ones), sum(b for _, b in ones)
    if (determinant := aa * bb - ab * ab) <= 1e-12 * aa * bb:
        return None
    start_s = (a1 * bb - b1 * ab) / determinant
    slope = (b1 * aa - a1 * ab) / determinant
    return Fit(max(start_s, 0.0), 1 / slope, gpus) if slope > 0 else None


def link(gpu: str | None) -> float | None:
    """What a card's links carry in one direction, in bytes per second; None where not known."""
    return next((rate for name, rate in LINKS.items() if name in (gpu or "")), None)


@dataclass(frozen=True)
class Step:
    """A training step under DDP as predicted for a number of GPUs."""

    gpus: int
    all_reduce_s: float  # of all gradients in one message
    exposed_s: float  # of communication that nothing hides
    step_s: float
    efficiency: float  # throughput of a GPU over that of one alone


def predicted(fit: Fit, gradients: float, alone_s: float, step_s: float, gpus: int) -> Step:
    """The step of more GPUs, of the same batch each, from that of `fit.gpus`: what communication
    adds to it grows as the all-reduce of its gradients, in bytes, does."""
    before, after = (fit.seconds(gradients, n) for n in (fit.gpus, gpus))
    exposed_s = max(step_s - alone_s, 0.0) * after / before
    whole = alone_s + exposed_s
    return Step(gpus, after, exposed_s, whole, alone_s / whole)
