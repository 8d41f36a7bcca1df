"""What holds one step back: from measured quantities to the name of a bottleneck, and why. A
bottleneck is what would save most time if it were gone. That is asked of a model of one step: a
host that never waits runs ahead, so the step takes as long as the slower side; a host that waits
adds up with the GPU. What the GPU's own time goes into is told by its share of the machine's
ceilings. What was not measured is None, and takes the certainty of the answer with it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from typing import Any

from anatomy.table import units

COMPUTE, MEMORY, LAUNCH, SYNC = "compute", "memory", "launch", "sync"
INPUT, COMMUNICATION, LATENCY, UNKNOWN = "input", "communication", "latency", "unknown"
CAUSES = (COMPUTE, MEMORY, LAUNCH, SYNC, INPUT, COMMUNICATION, LATENCY, UNKNOWN)
# What a CPU can't tell apart: its host and its device are the same cores.
NOT_ON_A_CPU = (LAUNCH, SYNC, COMMUNICATION, COMPUTE, MEMORY, LATENCY)

# A cause whose removal saves less than this is none: other shares of a step vary as much.
LEAST_SAVING = 0.10
# A second cause that would save this share of what the first would is named as a rival.
RIVAL = 0.75
# A wait can be taken out altogether; a launch can only be made cheaper, and the tools for that (a
# CUDA graph, a compiled graph) can't cross a wait. So a wait counts this many times what it saves.
SYNC_WEIGHT = 2.0
# Waits of less than this share of a step do not keep the host from running ahead.
WAITS_SHARE = 0.02
# An eager operator costs its host about a tenth of this. A host that spends more on each kernel
# does something else than launching: it loads, sorts, or computes in Python.
HOST_PER_KERNEL_S = 100e-6
# Kernels that reach this share of a ceiling are held back by it. Plain kernels of a library reach
# half of the peak of products, and three quarters of the bandwidth, or more.
NEAR_LIMIT = 0.4
# Two shares that differ by less than this factor do not tell compute and memory apart.
CLOSE = 1.25
# Share of a CPU's step, spent in getting its input, that makes the input the bottleneck.
INPUT_SHARE_ON_CPU = 0.5

# What a GPU would tell, where there is none.
ON_A_GPU = "Diagnose it on a GPU, with --device cuda:0: a CPU tells the input alone."
WAITS_FIRST = (
    "First take out what makes the host wait: a CUDA graph or a compiled graph can't contain it. "
    "Then: "
)

# The seed's three kinds in numbers that it does not give: many small kernels, high bandwidth, and
# high kernel time.
MANY_KERNELS, SMALL_KERNEL_S, HIGH_BANDWIDTH, HIGH_KERNEL_TIME = 50, 10e-6, 0.5, 0.5
NONE_OF_THREE = "none of the three"

ADVICE = {
    COMPUTE: "Do less arithmetic, or do it in a format that the tensor cores take faster (bf16, "
    "TF32, fp8). Check that the sizes are multiples of 16 bytes.",
    MEMORY: "Move fewer bytes: fuse elementwise operators (torch.compile), store in 16 bits, avoid "
    "copies.",
    LAUNCH: "Launch less often: torch.compile, a CUDA graph, foreach or fused optimizers, or a "
    "larger batch.",
    SYNC: "Take out what makes the host wait: .item(), .cpu(), printing, nonzero, boolean "
    "indexing, a Python if on a tensor. Read results every so many steps.",
    INPUT: "Prepare batches in worker processes and ahead of time, in pinned memory, and copy them "
    "with non_blocking=True.",
    COMMUNICATION: "Overlap collectives with the computation, send fewer bytes (16 bits, larger "
    "buckets, less often), and look at the links between the GPUs.",
    LATENCY: "Give each kernel more to do: a larger batch, independent work on several streams, "
    "fewer and larger operators.",
    UNKNOWN: "Look at a trace of a few steps, after a warm-up, with torch.profiler.",
}


@dataclass(frozen=True)
class Quantities:
    """What was measured of one step. Seconds are per step; None is not measured."""

    period_s: float | None = None  # steady, from step to step, as the host sees it
    enqueue_s: float | None = None  # until the step returns, nothing queued before; without input
    input_s: float | None = None  # the host gets the input from its iterator; 0 where it has none
    wait_s: float | None = None  # the host is in calls that wait for the GPU
    transfer_wait_s: float | None = None  # it is inside copies from or to the GPU that return late
    synchronizes: bool | None = None  # whether the step makes the host wait
    profiled_s: float | None = None  # a step under the profiler: how much that slows the host
    busy_s: float | None = None  # the GPU works on anything
    copy_s: float | None = None  # part of it: nothing but copies from or to the host
    communication_s: float | None = None  # part of it: nothing but collectives of several GPUs
    kernels: float | None = None  # kernels, copies and memsets
    flops: float | None = None  # of products, convolutions and attention
    bytes: float | None = None  # that the operators read and write, each by itself
    compute_s: float | None = None  # least time of `flops` at the machine's ceilings
    memory_s: float | None = None  # least time of `bytes` at its bandwidth
    device: str = "cuda"  # or `cpu`

    def known(self, name: str) -> float | None:
        """One of them as a number; None where it is missing, not finite, or negative."""
        value = getattr(self, name)
        if units.missing(value) or not isfinite(value) or value < 0:
            return None
        return float(value)

    def share(self, name: str) -> float | None:
        """One of the times as a share of the period, at most 1."""
        value, period = self.known(name), self.known("period_s")
        return None if value is None or not period else min(value / period, 1.0)

    @property
    def idle_share(self) -> float | None:
        """Share of the period in which the GPU does nothing."""
        busy = self.share("busy_s")
        return None if busy is None else 1.0 - busy

    @property
    def kernel_s(self) -> float | None:
        """Time of the GPU's own kernels: busy, less copies and collectives."""
        busy = self.known("busy_s")
        if busy is None:
            return None
        return max(busy - (self.known("copy_s") or 0) - (self.known("communication_s") or 0), 0.0)

    @property
    def flop_share(self) -> float | None:
        """Share of the ceiling of products that the kernels reach while they run."""
        return self._of_kernels("compute_s")

    @property
    def byte_share(self) -> float | None:
        """Share of the bandwidth that they reach; above 1 where the cache serves them."""
        return self._of_kernels("memory_s")

    def _of_kernels(self, name: str) -> float | None:
        least, kernels = self.known(name), self.kernel_s
        return None if least is None or not kernels else least / kernels

    def shares(self) -> dict[str, float | None]:
        """All shares that evidence is told in, by their columns."""
        return {
            "idle_share": self.idle_share,
            "enqueue_share": self.share("enqueue_s"),
            "sync_share": self.share("wait_s"),
            "input_share": self.share("input_s"),
            "transfer_share": self.share("copy_s"),
            "communication_share": self.share("communication_s"),
            "flop_share": self.flop_share,
            "byte_share": self.byte_share,
        }


@dataclass(frozen=True)
class Verdict:
    """The name of the bottleneck, and what speaks for it."""

    cause: str  # one of `CAUSES`
    second: str | None  # the second most likely; None where nothing else would save anything
    certain: bool  # not where the second is close, or something that matters was not measured
    savings: Mapping[str, float] = field(default_factory=dict)  # see the function
    evidence: tuple[str, ...] = ()  # sentences with numbers
    advice: str = ""  # what to try next

    def as_dict(self) -> dict[str, Any]:
        """The verdict as plain values."""
        return asdict(self) | {"savings": dict(self.savings), "evidence": list(self.evidence)}


def judge(seen: Quantities) -> Verdict:
    """Name what holds a step back."""
    period = seen.known("period_s")
    if not period:
        return _verdict(UNKNOWN, None, False, {}, ["The time of a step was not measured."])
    if seen.device == "cpu":
        return _on_cpu(seen)
    busy, enqueue = seen.known("busy_s"), seen.known("enqueue_s")
    if busy is None or enqueue is None:
        return _without_profile(seen)
    if not seen.known("kernels"):
        told = "Nothing ran on the GPU, so the step is the host's own work."
        return _verdict(UNKNOWN, None, False, {}, [told, *_host_in_words(seen)])
    saved = savings(seen)
    kind, rival, told_kind, sure = _kind_of_kernels(seen)
    scores = {kind if cause == "kernels" else cause: saved[cause] for cause in saved}
    scores[SYNC] = min(1.0, SYNC_WEIGHT * saved[SYNC])
    ranked = sorted(scores, key=scores.__getitem__, reverse=True)
    first, others = ranked[0], [name for name in ranked[1:] if scores[name] >= LEAST_SAVING]
    second = others[0] if others else rival if first == kind else None
    certain = scores[first] >= LEAST_SAVING and (
        not others or scores[others[0]] < RIVAL * scores[first]
    )
    certain = certain and (sure or first != kind)
    told = [*_host_in_words(seen), *_device_in_words(seen)]
    if first == kind or second == kind:
        told.append(told_kind)
    if scores[first] < LEAST_SAVING:
        first, second = kind, next(name for name in ranked if name != kind)
        told.append(
            f"Host and GPU take equally long: without any one cause less than "
            f"{units.percent(LEAST_SAVING)} of the step would be saved."
        )
    elif first != kind:
        told.append(
            f"Without {_cause_in_words(first)} a step would be about "
            f"{units.percent(saved[first])} shorter, by a model of these times."
        )
    shown = {kind if cause == "kernels" else cause: saved[cause] for cause in saved}
    found = _verdict(first, second, certain, shown, told)
    if (first, second) == (LAUNCH, SYNC):
        return replace(found, advice=WAITS_FIRST + found.advice)
    return found


def savings(seen: Quantities) -> dict[str, float]:
    """The share of a step, 0 to 1, that the model says is saved where each cause is gone. `kernels`
    stands for the GPU's own work, whatever its limit."""
    period = seen.known("period_s")
    host, inputs = _host_parts(seen)
    wait, transfer = seen.known("wait_s") or 0.0, seen.known("transfer_wait_s") or 0.0
    busy, copies = seen.known("busy_s") or 0.0, seen.known("copy_s") or 0.0
    talks = seen.known("communication_s") or 0.0
    kernels = max(busy - copies - talks, 0.0)
    own = host + inputs + transfer
    waits = wait + transfer > WAITS_SHARE * period
    left = {
        LAUNCH: inputs + max(wait + transfer, busy) if waits else max(inputs, busy),
        SYNC: max(own, busy) if waits else period,
        # A wait for a copy is over once the copy is gone.
        INPUT: max(host + max(wait - copies, 0.0), busy - copies),
        COMMUNICATION: max(own + max(wait - talks, 0.0), busy - talks),
        "kernels": max(own + max(wait - kernels, 0.0), busy - kernels),
    }
    if not copies and not inputs and not transfer:
        left[INPUT] = period
    if not talks:
        left[COMMUNICATION] = period
    return {cause: min(max(1.0 - rest / period, 0.0), 1.0) for cause, rest in left.items()}


def three_kinds(seen: Quantities) -> str:
    """What the three kinds of the seed would call it (seeds/002:18; the numbers are ours)."""
    kernels, busy = seen.known("kernels"), seen.known("busy_s")
    many = kernels is not None and kernels >= MANY_KERNELS
    if many and busy is not None and busy / kernels < SMALL_KERNEL_S:
        return LAUNCH
    if (seen.byte_share or 0.0) >= HIGH_BANDWIDTH:
        return MEMORY
    period = seen.known("period_s")
    in_kernels = ((busy or 0.0) - (seen.known("copy_s") or 0.0)) / period if period else 0.0
    return COMPUTE if in_kernels >= HIGH_KERNEL_TIME else NONE_OF_THREE


def _host_parts(seen: Quantities) -> tuple[float, float]:
    """Host time of dispatch, and of getting the input, seconds; waits are in neither."""
    waited = (seen.known("wait_s") or 0.0) + (seen.known("transfer_wait_s") or 0.0)
    host = max((seen.known("enqueue_s") or 0.0) - waited, 0.0)
    dispatch = HOST_PER_KERNEL_S * (seen.known("kernels") or 0.0)
    # What launching does not explain is work of the host: input, made inside of the step.
    elsewhere = max(host - dispatch, 0.0)
    return host - elsewhere, (seen.known("input_s") or 0.0) + elsewhere


def _kind_of_kernels(seen: Quantities) -> tuple[str, str | None, str, bool]:
    """What limits the kernels, its rival, a sentence, and whether that is sure."""
    flop, byte = seen.flop_share, seen.byte_share
    if flop is None and byte is None:
        told = "How near the kernels come to the machine's limits is not known."
        return UNKNOWN, None, told, False
    told = (
        f"While they run, the kernels reach {_share(flop)} of the ceiling of products and "
        f"{_share(byte)} of the copy bandwidth."
    )
    if (byte or 0.0) > 1.0:
        told += " More than all of it: the cache serves a part."
    high, low = max(flop or 0.0, byte or 0.0), min(flop or 0.0, byte or 0.0)
    if high < NEAR_LIMIT:
        told += f" Below {units.percent(NEAR_LIMIT)} neither explains their time."
        nearer = COMPUTE if (flop or 0.0) > (byte or 0.0) else MEMORY
        return LATENCY, nearer, told, False
    first, second = (COMPUTE, MEMORY) if (flop or 0.0) >= (byte or 0.0) else (MEMORY, COMPUTE)
    sure = None not in (flop, byte) and high >= CLOSE * low
    return first, second if low >= NEAR_LIMIT or not sure else None, told, sure


def _without_profile(seen: Quantities) -> Verdict:
    """What can be said without the GPU's own account: whether the host sets the pace."""
    enqueue, told = seen.share("enqueue_s"), _host_in_words(seen)
    told.append("What the GPU did was not seen: no profile.")
    inputs = seen.share("input_s") or 0.0
    if inputs >= INPUT_SHARE_ON_CPU:
        return _verdict(INPUT, UNKNOWN, False, {}, told)
    if enqueue is not None and enqueue >= 1 - LEAST_SAVING and seen.synchronizes is not None:
        return _verdict(SYNC if seen.synchronizes else LAUNCH, UNKNOWN, False, {}, told)
    return _verdict(UNKNOWN, None, False, {}, told)


def _on_cpu(seen: Quantities) -> Verdict:
    inputs = seen.share("input_s")
    told = [f"Getting the input takes {_share(inputs)} of a step."] if inputs else []
    told.append(
        f"On a CPU host and device are one: {', '.join(NOT_ON_A_CPU)} can't be told apart there."
    )
    if inputs is not None and inputs >= INPUT_SHARE_ON_CPU:
        return _verdict(INPUT, None, True, {INPUT: inputs}, told)
    return replace(_verdict(UNKNOWN, None, False, {}, told), advice=ON_A_GPU)


def _host_in_words(seen: Quantities) -> list[str]:
    period = units.seconds(seen.known("period_s"))
    told = [f"A step takes {period}; the host needs {_share(seen.share('enqueue_s'))} of it."]
    inputs, wait = seen.share("input_s"), seen.share("wait_s")
    transfer = seen.share("transfer_wait_s")
    if inputs:
        told.append(f"Before it, getting the input takes {_share(inputs)}.")
    if wait:
        told.append(f"It waits for the GPU in {_share(wait)}.")
    elif wait == 0 and inputs and seen.synchronizes:
        told.append("It waits for the GPU only while it gets the input.")
    elif seen.synchronizes:
        told.append("The step makes the host wait; for how long was not seen.")
    if transfer and transfer > WAITS_SHARE:
        told.append(f"Copies between host and GPU hold it for {_share(transfer)}.")
    inside = _host_parts(seen)[1] - (seen.known("input_s") or 0.0)
    if seen.known("kernels") and inside > LEAST_SAVING * (seen.known("period_s") or 0.0):
        told.append(
            f"{units.seconds(inside)} of the host's time is more than launching explains "
            f"({units.seconds(HOST_PER_KERNEL_S)} for each kernel): it prepares something."
        )
    return told


def _device_in_words(seen: Quantities) -> list[str]:
    kernels = seen.known("kernels") or 0.0
    told = [
        f"The GPU is idle for {_share(seen.idle_share)} of the step; it runs "
        f"{units.significant(kernels)} kernels and copies, "
        f"{units.seconds((seen.known('busy_s') or 0.0) / kernels)} on average."
    ]
    for name, what in (
        ("copy_s", "It does nothing but copy between host and GPU"),
        ("communication_s", "It does nothing but communicate with other GPUs"),
    ):
        share = seen.share(name)
        if share and share >= WAITS_SHARE:
            told.append(f"{what} for {_share(share)}.")
    return told


def _cause_in_words(cause: str) -> str:
    words = {LAUNCH: "the host's launches", SYNC: "the waits", INPUT: "the wait for its input"}
    return words.get(cause, cause)


def _share(value: float | None) -> str:
    return "an unknown share" if value is None else units.percent(value)


def _verdict(cause, second, certain, saved, told) -> Verdict:
    second = None if second == cause else second
    return Verdict(cause, second, certain, saved, tuple(told), ADVICE[cause])
