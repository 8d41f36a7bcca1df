"""The rungs and the gates they pass. Their scripts are loaded from snippets/ladder/, so that what a
page shows is measured: functions `build`, `step`, `inference` and `optimizer_of`."""

import functools
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor, nn

from anatomy.numerics import formats
from anatomy.table.errors import AnatomyError

Call = Callable[[], Tensor]  # a step, or a forward pass
FOLDER = Path(__file__).parents[3] / "snippets" / "ladder"
BASELINE, FP32 = "0_baseline", "fp32"


@dataclass(frozen=True)
class Way:
    """One way to run one rung."""

    rung: str  # the script's name without its ending
    way: str  # as the script knows it
    products: str  # their number format, by which `limit` is named
    loss: float  # how far it may stray from rung 0's in float32, as a share of it
    gradients: float  # how far all together may, ||g - g0|| / ||g0||

    @property
    def label(self) -> str:
        """What tables call it, such as `2 amp bf16`."""
        return f"{self.rung[0]} {self.way}"


# What rounding the factors of each product adds up to over a few layers, in both passes; a way that
# computes something else is off by half or more. TF32 and float16 round by 2**-11 at most, bfloat16
# by 2**-8, FP8 weights and activations by 2**-4 and gradients by 2**-3, a third of it on average.
_LOSS = {"fp32": 2**-16, "tf32": 2**-10, "fp16": 2**-10, "bf16": 2**-8, "fp8": 2**-6}
_GRADIENTS = {"fp32": 2**-12, "tf32": 2**-7, "fp16": 2**-7, "bf16": 2**-5, "fp8": 2**-2}


def _way(rung: str, way: str, products: str) -> Way:
    return Way(rung, way, products, _LOSS[products], _GRADIENTS[products])


# All that a comparison of the rungs runs, in order; the first of a rung is the one that counts.
TRAINING = (
    _way(BASELINE, FP32, "fp32"),
    _way("1_cublas", "amp bf16", "bf16"),
    _way("1_cublas", "amp fp16", "fp16"),
    _way("1_cublas", "tf32", "tf32"),
    _way("2_sdpa", "amp bf16", "bf16"),
    _way("3_compile", "default", "bf16"),
    _way("3_compile", "reduce-overhead", "bf16"),
    _way("4_transformer_engine", "current", "fp8"),
    _way("4_transformer_engine", "delayed", "fp8"),
    _way("4_transformer_engine", "block", "fp8"),
    _way("4_transformer_engine", "bf16", "bf16"),
    _way("4_transformer_engine", "current in a graph", "fp8"),
    _way("4_transformer_engine", "delayed in a graph", "fp8"),
    _way("5_fastest", "bf16", "bf16"),
    _way("5_fastest", "fp8", "fp8"),
    _way("5_fastest", "fp8 delayed", "fp8"),
    _way("5_fastest", "bf16 without a graph", "bf16"),
    _way("5_fastest", "fp8 without a graph", "fp8"),
    _way("5_fastest", "fp8 delayed without a graph", "fp8"),
)
# Those that also take the optimizer's step: what counts, and what counts for something of its own.
WITH_ADAMW = (
    *("0 fp32", "1 amp bf16", "1 amp fp16", "2 amp bf16", "3 default", "3 reduce-overhead"),
    *("4 current", "5 bf16", "5 fp8", "5 fp8 delayed"),
)
# Rung -> the way of the rung before that it is held against; rungs 4 and 5 both start from rung 3.
BEFORE = {"1": "0 fp32", "2": "1 amp bf16", "3": "2 amp bf16", "4": "3 default", "5": "3 default"}
COMPILED = ("3", "5")  # rungs that torch.compile has a part in
# Ways that replay CUDA graphs, whose tensors the allocator's account does not show.
GRAPHS = (
    *("3 reduce-overhead", "5 bf16", "5 fp8", "5 fp8 delayed"),
    *("4 current in a graph", "4 delayed in a graph"),
)
# The same kernels launched one by one.
WITHOUT_GRAPHS = {
    "3 reduce-overhead": "default",
    "5 bf16": "bf16 without a graph",
    "5 fp8": "fp8 without a graph",
    "5 fp8 delayed": "fp8 delayed without a graph",
    "4 current in a graph": "current",
    "4 delayed in a graph": "delayed",
}


@functools.cache
def load(rung: str) -> ModuleType:
    """The script of a rung as a module; AnatomyError where it, or what it imports, is not there."""
    if not (FOLDER / f"{rung}.py").exists():
        raise AnatomyError(f"{rung}.py belongs to the checkout; clone it, and run this there.")
    spec = importlib.util.spec_from_file_location(f"ladder_{rung}", FOLDER / f"{rung}.py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except SystemExit as refusal:
        raise AnatomyError(str(refusal)) from None
    return module


def script_on(way: Way, where: torch.device) -> ModuleType:
    """The script of a way's rung, which from now on runs on `where`."""
    script = load(way.rung)
    script.DEVICE = where.type  # a machine with a GPU has a CPU too
    return script


def without(way: Way, where: torch.device) -> str | None:
    """Why a way's products can't run on this device, or None where they can."""
    if where.type != "cuda":
        return "Transformer Engine needs an NVIDIA GPU" if way.rung.startswith("4") else None
    if way.products == "fp8" and (have := torch.cuda.get_device_capability(where)) < (8, 9):
        return f"FP8 products need sm_89; this is sm_{have[0]}{have[1]}"
    return None


@dataclass(frozen=True)
class Answer:
    """What one step found: its loss, and all gradients in the order of rung 0's parameters."""

    loss: float
    gradients: list[Tensor]


def gradients(model: nn.Module) -> list[Tensor]:
    """Those of its last step, in float32."""
    return [p.grad.detach().float().clone() for p in model.parameters()]


def answer(way: Way, model: nn.Module, call: Call, x: Tensor, target: Tensor) -> Answer:
    """The loss and gradients of a step that changes no weight, in float32. `call` is the model's
    step on `x` (B, T, C), which has run before: some scales are those of the step before."""
    script = load(way.rung)
    if way.products == "fp16":  # the optimizer takes the loss scale out again
        call = script.step(model, x, target, way.way, script.optimizer_of(model, lr=0.0))
    loss = float(call())
    return Answer(loss, gradients(model))


def strays(found: Answer, wanted: Answer) -> tuple[float, float]:
    """Relative errors of the loss, and of all gradients in norm; AnatomyError for another model."""
    shapes = [tuple(g.shape) for g in found.gradients]
    if shapes != [tuple(g.shape) for g in wanted.gradients]:
        raise AnatomyError(f"Its parameters have other shapes than rung 0's: {shapes[:8]}.")
    pairs = list(zip(found.gradients, wanted.gradients, strict=True))
    off = sum(float((g - w).double().square().sum()) for g, w in pairs)
    norm = sum(float(w.double().square().sum()) for _, w in pairs)
    return abs(found.loss / wanted.loss - 1), (off / norm) ** 0.5


def void(way: Way, loss_error: float, gradient_error: float) -> str | None:
    """Why a way is void, or None where it passes: a wrong answer is not slow, but none."""
    for what, error, allowed in (
        ("loss strays", loss_error, way.loss),
        ("gradients stray", gradient_error, way.gradients),
    ):
        if not error <= allowed:  # NaN too
            return f"void: its {what} {error:.2g} from rung 0's; {allowed:.2g} is allowed"
    return None


def problem(width: int, batch: int, sequence: int, where: torch.device) -> tuple[Tensor, Tensor]:
    """Input and target, two of (B, T, C) in float32, the same each time."""
    made = torch.Generator(where).manual_seed(1)
    shape = (2, batch, sequence, width)
    x, target = torch.randn(shape, device=where, generator=made)
    return x, target


def heads(width: int) -> int:
    """Attention heads H of a model of this width C; the scripts' own are wider than `models`'."""
    return max(1, width // load(BASELINE).HEAD)


def caches(layers: int, width: int, sequence: int, kind: torch.dtype, where: torch.device):
    """Keys and values of S tokens, (2, B, H, S, D) for each layer, as decoding goes on from."""
    made = torch.Generator(where).manual_seed(2)
    shape = (2, 1, heads(width), sequence, width // heads(width))
    drawn = (torch.randn(shape, device=where, generator=made) for _ in range(layers))
    return [each.to(kind) for each in drawn]


def reference(layers: int, width: int, x: Tensor, target: Tensor) -> Answer:
    """Rung 0 in float32, without TF32: what all others are held against."""
    with formats.products_in("fp32"):
        script = script_on(TRAINING[0], x.device)
        model = script.build(width, layers, x.device)
        return answer(TRAINING[0], model, script.step(model, x, target), x, target)


def batch_of(width: int) -> int:
    """Sequences of a step, where nobody says how many."""
    return 8 if width <= 1024 else 4
