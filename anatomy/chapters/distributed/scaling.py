"""Start-up time and bandwidth of collectives, and what follows for more GPUs: numbers alone.

A collective of a message of n bytes takes start + n * share / bandwidth, where share is the part
of the message that each GPU sends (in a ring of N: 2 (N - 1) / N for an all-reduce). That is the
usual model of latency and bandwidth (Hockney 1994; Thakur et al., "Optimization of Collective
Communication Operations in MPICH", 2005, section 3)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Fit:
    """A collective among `gpus`: seconds to start, and bytes that each GPU sends in a second."""

    start_s: float
    rate: float
    gpus: int

    def seconds(self, message: float, gpus: int, rounds: int = 2) -> float:
        """What a message of so many bytes takes among so many GPUs, in a ring. The start stays: it
        is what the host takes to ask, behind which the ring's own latency was not seen."""
        return self.start_s + message * rounds * (gpus - 1) / gpus / self.rate


def fitted(points: Sequence[tuple[float, float]], gpus: int) -> Fit | None:
    """The line through (bytes sent by each GPU, seconds) whose errors, as shares of the times, have
    the least sum of squares: else the largest message alone would count. None where there is no
    line with a positive slope."""
    if len({sent for sent, _ in points}) < 2:
        return None
    sent, taken = np.array(points, dtype=float).T
    unit = sent.max()  # so that both unknowns are about as large
    (start_s, slope), *_ = np.linalg.lstsq(
        np.stack([1 / taken, sent / unit / taken], axis=1), np.ones_like(taken), rcond=None
    )
    return Fit(max(float(start_s), 0.0), float(unit / slope), gpus) if slope > 0 else None


@dataclass(frozen=True)
class Step:
    """A training step under DDP as predicted for a number of GPUs."""

    gpus: int
    all_reduce_s: float  # of all gradients in one message
    added_s: float  # what communication adds to the step of one alone
    step_s: float
    efficiency: float  # throughput of a GPU over that of one alone


def predicted(fit: Fit, gradients: float, alone_s: float, step_s: float, gpus: int) -> Step:
    """The step of more GPUs, of the same batch each, from that of `fit.gpus`: what communication
    adds to it grows as the all-reduce of its gradients, in bytes, does."""
    all_reduce_s = fit.seconds(gradients, gpus)
    added_s = added_share(fit, gradients, alone_s, step_s) * all_reduce_s
    whole = alone_s + added_s
    return Step(gpus, all_reduce_s, added_s, whole, alone_s / whole)


def added_share(fit: Fit, gradients: float, alone_s: float, step_s: float) -> float:
    """What a step among `fit.gpus` takes beyond that of one alone, over the all-reduce of all its
    gradients, in bytes, in one message: 1 where nothing hides it."""
    return max(step_s - alone_s, 0.0) / fit.seconds(gradients, fit.gpus)
