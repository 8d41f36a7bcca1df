"""The rungs and the gates they pass. Their scripts are loaded from snippets/ladder/, so that what a
page shows is measured: functions `build`, `step`, `inference` and `optimizer_of`."""

import functools
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import torch
from torch import Tensor, nn

from anatomy.chapters.ladder.requirements import heads
from anatomy.numerics import formats
from anatomy.record.requirements import Capacity, without_format
from anatomy.table.errors import AnatomyError

Call = Callable[[], Tensor]  # a step, or a forward pass
FOLDER = Path(__file__).parents[3] / "snippets" / "ladder"


@dataclass(frozen=True)
class Rung:
    """One script of the ladder."""

    number: int
    script: str  # its name without its ending
    backend: Literal["eager", "inductor", "Transformer Engine"] = "eager"
    builds_on: "Way | None" = None  # the way of an earlier rung that it is held against
    # Number format of the weights, which are the same in all rungs of one format, and so are held
    # once; None where a library keeps what it makes of them in modules of its own.
    weights: Literal["fp32", "bf16"] | None = "fp32"
    keeps: bool = False  # its modules keep scales, or how they multiply: each way has its own model

    def way(self, name: str, products: str, **known: Any) -> "Way":
        """One way to run it, as its script knows it."""
        return Way(self, name, products, **known)


# What rounding the factors of each product adds up to over a few layers, in both passes; a way that
# computes something else is off by half or more. TF32 and float16 round by 2**-11 at most, bfloat16
# by 2**-8, FP8 weights and activations by 2**-4 and gradients by 2**-3, a third of it on average.
_LOSS = {"fp32": 2**-16, "tf32": 2**-10, "fp16": 2**-10, "bf16": 2**-8, "fp8": 2**-6}
_GRADIENTS = {"fp32": 2**-12, "tf32": 2**-7, "fp16": 2**-7, "bf16": 2**-5, "fp8": 2**-2}


@dataclass(frozen=True)
class Way:
    """One way to run one rung."""

    rung: Rung
    name: str  # as the script knows it
    products: str  # their number format, by which `limit` is named
    mode: str | None = None  # of torch.compile; None where nothing is compiled
    plain: "Way | None" = None  # of CUDA graphs: the same kernels, launched one by one
    adamw: bool = False  # timed with the optimizer's step as well
    delayed: bool = False  # its scales are those of the steps before

    @property
    def label(self) -> str:
        """What tables call it, such as `2 amp bf16`."""
        return f"{self.rung.number} {self.name}"

    @property
    def columns(self) -> dict[str, str]:
        """What it is, as columns of a table."""
        return {"rung": self.rung.script, "way": self.name, "products": self.products}

    @property
    def loss(self) -> float:
        """How far it may stray from rung 0's in float32, as a share of it."""
        return _LOSS[self.products]

    @property
    def gradients(self) -> float:
        """How far all together may, ||g - g0|| / ||g0||."""
        return _GRADIENTS[self.products]

    @property
    def graph(self) -> bool:
        """Whether it replays CUDA graphs, whose tensors the allocator's account does not show."""
        return self.plain is not None

    @property
    def same_code(self) -> bool:
        """Whether its graph is of what `plain` has compiled, in one mode and on one model."""
        return self.plain is not None and self.mode is not None and self.mode == self.plain.mode

    @property
    def model(self) -> tuple[str, str]:
        """What tells its model from those of other ways."""
        return self.rung.script, (self.plain or self).name if self.rung.keeps else ""


_0 = Rung(0, "0_baseline")
FP32 = _0.way("fp32", "fp32", adamw=True)
_1 = Rung(1, "1_cublas", builds_on=FP32)
AMP_BF16 = _1.way("amp bf16", "bf16", adamw=True)
_2 = Rung(2, "2_sdpa", builds_on=AMP_BF16)
FUSED = _2.way("amp bf16", "bf16", adamw=True)
_3 = Rung(3, "3_compile", "inductor", FUSED)
DEFAULT = _3.way("default", "bf16", mode="default", adamw=True)
REDUCED = _3.way("reduce-overhead", "bf16", mode="reduce-overhead", plain=DEFAULT, adamw=True)
TUNED = _3.way("max-autotune", "bf16", mode="max-autotune", plain=DEFAULT)  # takes minutes
_4 = Rung(4, "4_transformer_engine", "Transformer Engine", DEFAULT, weights=None, keeps=True)
CURRENT = _4.way("current", "fp8", adamw=True)
DELAYED = _4.way("delayed", "fp8", delayed=True)
_5 = Rung(5, "5_fastest", "inductor", DEFAULT, weights="bf16", keeps=True)
BF16 = _5.way("bf16 without a graph", "bf16", mode="default")
FP8 = _5.way("fp8 without a graph", "fp8", mode="default")
FP8_DELAYED = _5.way("fp8 delayed without a graph", "fp8", mode="default", delayed=True)
# All that a comparison of the rungs runs, in order; the first of a rung is the one that counts.
TRAINING = (
    FP32,
    AMP_BF16,
    _1.way("amp fp16", "fp16", adamw=True),
    _1.way("tf32", "tf32"),
    FUSED,
    DEFAULT,
    REDUCED,
    CURRENT,
    DELAYED,
    _4.way("block", "fp8"),
    _4.way("bf16", "bf16"),
    replace(CURRENT, name="current in a graph", plain=CURRENT, adamw=False),
    replace(DELAYED, name="delayed in a graph", plain=DELAYED),
    replace(BF16, name="bf16", plain=BF16, adamw=True),
    replace(FP8, name="fp8", plain=FP8, adamw=True),
    replace(FP8_DELAYED, name="fp8 delayed", plain=FP8_DELAYED, adamw=True),
    BF16,
    FP8,
    FP8_DELAYED,
)
BY_LABEL = {way.label: way for way in (*TRAINING, TUNED)}


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
    script = load(way.rung.script)
    script.DEVICE = where.type  # a machine with a GPU has a CPU too
    return script


def without(way: Way, where: torch.device) -> str | None:
    """Why a way's products can't run on this device, or None where they can."""
    engine = "Transformer Engine"
    if where.type != "cuda":
        return f"{engine} needs an NVIDIA GPU" if way.rung.backend == engine else None
    on = Capacity(capability=torch.cuda.get_device_capability(where))
    return without_format(way.products, on) or None


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
    script = load(way.rung.script)
    if way.products == "fp16":  # the optimizer takes the loss scale out again
        call = script.step(model, x, target, way.name, script.optimizer_of(model, lr=0.0))
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


def caches(layers: int, width: int, sequence: int, kind: torch.dtype, where: torch.device):
    """Keys and values of S tokens, (2, B, H, S, D) for each layer, as decoding goes on from."""
    made = torch.Generator(where).manual_seed(2)
    shape = (2, 1, heads(width), sequence, width // heads(width))
    drawn = (torch.randn(shape, device=where, generator=made) for _ in range(layers))
    return [each.to(kind) for each in drawn]


def reference(layers: int, width: int, x: Tensor, target: Tensor) -> Answer:
    """Rung 0 in float32, without TF32: what all others are held against."""
    with formats.products_in("fp32"):
        script = script_on(FP32, x.device)
        model = script.build(width, layers, x.device)
        return answer(FP32, model, script.step(model, x, target), x, target)
