"""Where a step's GPU time goes: each kernel by what it computes. Its name says whether it
multiplies matrices or is a fused attention; of attention written out the operator that launched it
says so, for only attention has tensors of four axes, and products with a batch."""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from anatomy.chapters.ladder.copies import why
from anatomy.measure import census
from anatomy.measure.stopwatch import Stopwatch

KINDS = ("product", "attention", "pointwise", "other")
STEPS = 2  # profiled, all warm
FUSED_ATTENTION = re.compile(r"flash|fmha|attention|sdpa|mha_", re.IGNORECASE)
PRODUCT = re.compile(r"gemm|nvjet|cutlass|xmma|cublas|splitk|gemv|_mm_|matmul", re.IGNORECASE)
MOVE = re.compile(r"^Mem(cpy|set)")
# A fused attention by what its kernels are called, in this order: cuDNN's name a flash as well.
BACKENDS = (
    ("cudnn", re.compile("cudnn", re.IGNORECASE)),
    ("flash", re.compile("flash", re.IGNORECASE)),
    ("efficient", re.compile(r"fmha|cutlass[FB]|mem_?eff", re.IGNORECASE)),
)
LONGEST_NAME = 240  # those of templates go on for pages
BATCHED = ("aten::bmm", "aten::baddbmm")  # attention's alone here: all other products are `mm`


def kind_of(kernel: str, operator: str = "", shapes: Sequence[Any] = ()) -> str:
    """One of `KINDS`, by a kernel's name, and the operator that launched it with its inputs."""
    if MOVE.match(kernel):
        return "other"
    if kernel.startswith("triton_"):  # named after the operators whose inputs it makes
        return "product" if kernel.startswith("triton_tem") else "pointwise"
    if FUSED_ATTENTION.search(kernel) or operator in BATCHED:
        return "attention"
    if any(isinstance(shape, Sequence) and len(shape) >= 4 for shape in shapes):
        return "attention"
    if PRODUCT.search(kernel):
        return "product"
    return "pointwise"


def seconds_by_kind(call: Callable[[], object], watch: Stopwatch) -> dict[str, Any] | None:
    """Seconds of kernels of one warm step by kind, as `read` gives them; None without a GPU."""
    if watch.device.type != "cuda":
        return None
    watch.drain()
    kinds = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with warnings.catch_warnings():
        # The profiler announces that events of one cycle are kept; there is only one here.
        warnings.filterwarnings("ignore", message=".*Profiler clears events")
        with profile(activities=kinds, record_shapes=True) as profiler:
            for _ in range(STEPS):
                call()
            watch.drain()
    return read(list(profiler.events()))


def profiled(call: Callable[[], object], watch: Stopwatch) -> dict[str, Any]:
    """As `seconds_by_kind`, or nothing and a warning: only these figures are lost."""
    try:
        return seconds_by_kind(call, watch) or {}
    except Exception as error:
        watch.warnings.append(f"A call could not be profiled: {why(error)}")
        return {}


def read(events: Sequence[Any], steps: int = STEPS) -> dict[str, Any]:
    """Seconds of one step by kind, from the events of a profile of so many. `busy_s` is the time in
    which any kernel ran; `kernel_seconds` holds [name, kind, launches, seconds], the longest first;
    `backend` is whose attention that is, where the names tell."""
    # A kernel's name alone may stand for several operators, so each launch is counted by its own.
    launches: Counter = Counter()  # (name, kind) -> launches
    seconds: Counter = Counter()
    by_operator: Counter = Counter()
    for event in events:
        if event.device_type == DeviceType.CPU:
            for kernel in event.kernels:
                key = kernel.name, kind_of(kernel.name, event.name, event.input_shapes or ())
                launches[key] += 1
                seconds[key] += kernel.duration * 1e-6
                by_operator[kernel.name] += 1
    spans = []
    for event in events:
        if event.device_type != DeviceType.CUDA or getattr(event, "is_user_annotation", False):
            continue
        begin, end = event.time_range.start * 1e-6, event.time_range.end * 1e-6
        spans.append((begin, end, event.name))
        if by_operator[event.name] > 0:
            by_operator[event.name] -= 1
        else:  # no operator is known to have launched it: Triton's own launcher, or a memset
            key = event.name, kind_of(event.name)
            launches[key] += 1
            seconds[key] += end - begin
    kinds: Counter = Counter()
    for (_, kind), total in seconds.items():
        kinds[kind] += total
    found: dict[str, Any] = {f"{kind}_s": kinds[kind] / steps for kind in KINDS}
    found["busy_s"] = census.busy(sorted(spans)) / steps
    found["kernels_per_call"] = round(len(spans) / steps)
    found["kernel_seconds"] = [
        [name[:LONGEST_NAME], kind, round(launches[name, kind] / steps), total / steps]
        for (name, kind), total in seconds.most_common()
    ]
    found["backend"] = backend_of([name for name, kind in seconds if kind == "attention"])
    return found


def backend_of(kernels: Sequence[str]) -> str | None:
    """Whose fused attention ran, by the names of attention's kernels; None where none is fused."""
    fused = [name for name in kernels if FUSED_ATTENTION.search(name)]
    found = {
        next((backend for backend, pattern in BACKENDS if pattern.search(name)), None)
        for name in fused
    }
    return ", ".join(sorted(found - {None})) or None
