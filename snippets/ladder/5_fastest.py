"""Rung 5: all that made this GPU faster, in PyTorch alone.

Changes from rung 3: the model's weights are bfloat16, so that no step casts them (the optimizer
keeps its own in float32); AdamW is one fused kernel; and the whole step, optimizer included, is
replayed as one CUDA graph. `fp8` also multiplies in 8 bits, with one scale for each tensor taken
from its largest element: in the same step, or with `delayed` in the step before.
Run it alone:  python snippets/ladder/5_fastest.py
Source: Micikevicius et al. 2022, arXiv:2209.05433, on the two formats of FP8.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# The ways this rung can run; the first is the one that the ladder counts. A way is made of words:
# `delayed` takes the scales from the step before, `fast` adds up in fewer bits going back too,
# `rows` gives each row a scale of its own, `tuned` has the compiler try more shapes of its own
# kernels, and `by blocks` compiles one layer for all.
WAYS = (
    *("bf16", "bf16 tuned", "bf16 by blocks", "bf16 without a graph"),
    *("fp8", "fp8 fast", "fp8 rows", "fp8 fast tuned", "fp8 by blocks", "fp8 without a graph"),
    *("fp8 delayed", "fp8 delayed fast", "fp8 delayed tuned", "fp8 delayed without a graph"),
)
HEAD = 128  # width D of one attention head
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2  # more digits, and more range for gradients


# --8<-- [start:fp8]
def largest_of(x: Tensor, rows: bool = False) -> Tensor:
    """The largest element of `x` (M, K), or of each row: the kernel that makes `x` finds these."""
    largest = x.abs().amax(1, keepdim=True).float()  # (M, 1)
    return largest if rows else largest.amax()


def to_fp8(x: Tensor, largest: Tensor, kind: torch.dtype = E4M3) -> tuple[Tensor, Tensor]:
    """`x` (M, K) in 8 bits with `largest` at the format's largest, and what undoes the scale.

    What is larger still, because `largest` is that of the step before, becomes the largest.
    """
    most = torch.finfo(kind).max
    scale = most / largest.clamp(min=1e-12)
    return (x.float() * scale).clamp(-most, most).to(kind), scale.reciprocal()


def multiply(a, b, a_scale, b_scale, dtype: torch.dtype, fast: bool) -> Tensor:
    """a (M, K) times b (N, K) transposed, both row by row: the one form that tensor cores take."""
    return torch._scaled_mm(a, b.t(), a_scale, b_scale.t(), out_dtype=dtype, use_fast_accum=fast)


class Product(torch.autograd.Function):
    """x (M, K) times w (N, K) transposed, with factors in FP8 in both passes, one scale for each.

    `seen` (3,) is how large x, w and the gradient of the product were in the step before, by which
    `delayed` scales. How large they are now is handed back as its gradient: so it leaves the
    backward pass with the others. With `fast` sums have fewer bits in the backward pass too.
    """

    @staticmethod
    def forward(ctx, x, w, seen: Tensor | None, delayed: bool, fast: bool) -> Tensor:
        now = largest_of(x), largest_of(w)
        used = seen if delayed else now
        (x8, x_scale), (w8, w_scale) = to_fp8(x, used[0]), to_fp8(w, used[1])
        ctx.noted, ctx.delayed, ctx.fast = seen is not None, delayed, fast
        kept = x8.t().contiguous(), w8.t().contiguous(), x_scale, w_scale
        ctx.save_for_backward(*kept, *((*now, seen[2]) if ctx.noted else ()))
        return multiply(x8, w8, x_scale, w_scale, x.dtype, fast=True)

    @staticmethod
    def backward(ctx, g: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None, None]:
        x8_t, w8_t, x_scale, w_scale, *rest = ctx.saved_tensors
        g = g.contiguous()
        now = largest_of(g)
        g8, g_scale = to_fp8(g, rest[2] if ctx.delayed else now, E5M2)
        dx = multiply(g8, w8_t, g_scale, w_scale, g.dtype, ctx.fast)
        dw = multiply(g8.t().contiguous(), x8_t, g_scale, x_scale, g.dtype, ctx.fast)
        return dx, dw, torch.stack((*rest[:2], now)) if ctx.noted else None, None, None


class ProductOfRows(torch.autograd.Function):
    """As `Product`, with a scale for each row; the gradient of w, a sum over rows, in bfloat16."""

    @staticmethod
    def forward(ctx, x: Tensor, w: Tensor, fast: bool) -> Tensor:
        (x8, x_scale), (w8, w_scale) = (to_fp8(f, largest_of(f, rows=True)) for f in (x, w))
        ctx.fast = fast
        ctx.save_for_backward(x, w)
        return multiply(x8, w8, x_scale, w_scale, x.dtype, fast=True)

    @staticmethod
    def backward(ctx, g: Tensor) -> tuple[Tensor, Tensor, None]:
        x, w = ctx.saved_tensors
        g = g.contiguous()
        factors = g, w.t().contiguous()
        (g8, g_scale), (w8_t, w_scale) = (to_fp8(f, largest_of(f, rows=True)) for f in factors)
        return multiply(g8, w8_t, g_scale, w_scale, g.dtype, ctx.fast), g.t() @ x, None


class Linear(nn.Linear):
    fp8 = rows = fast = noted = delayed = False
    ready: tuple[Tensor, Tensor] | None = None  # the weight in FP8, where it stays as it is
    seen: Tensor | None = None  # how large x, the weight and the gradient were in the step before

    def forward(self, x: Tensor) -> Tensor:
        if not self.fp8:
            return super().forward(x)
        flat = x.flatten(0, 1)  # (M, K)
        if self.ready is not None:
            largest = self.seen[0] if self.delayed else largest_of(flat, self.rows)
            (x8, x_scale), (w8, w_scale) = to_fp8(flat, largest), self.ready
            y = multiply(x8, w8, x_scale, w_scale, x.dtype, fast=True)
        elif self.rows:
            y = ProductOfRows.apply(flat, self.weight, self.fast)
        else:
            seen = self.seen if self.noted else None
            y = Product.apply(flat, self.weight, seen, self.delayed, self.fast)
        return y.unflatten(0, x.shape[:2])


def linears(model: nn.Module) -> list[Linear]:
    return [module for module in model.modules() if isinstance(module, Linear)]


@torch.no_grad()
def remember(model: nn.Module) -> None:
    """What was largest in this step sets the scales of the next."""
    seen = [linear.seen for linear in linears(model)]
    torch._foreach_copy_(seen, [each.grad for each in seen])
    for each in seen:
        each.grad = None


# --8<-- [end:fp8]


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = max(1, width // HEAD)
        self.qkv = Linear(width, 3 * width, bias=False)
        self.out = Linear(width, width, bias=False)

    # --8<-- [start:attention]
    def forward(self, x: Tensor, cache: Tensor | None = None) -> Tensor:
        B, T, C = x.shape  # sequences, tokens, width
        qkv = self.qkv(x).view(B, T, 3, self.heads, C // self.heads)
        qkv = qkv.permute(2, 0, 3, 1, 4)
        q, k, v = qkv  # three of (B, H, T, D)
        if cache is not None:  # (2, B, H, S, D): keys and values so far; the last ones are ours
            cache[:, :, :, -T:] = qkv[1:]
            k, v = cache
        # A newest token may look at all of them.
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)  # (B, H, T, D)
        return self.out(mixed.transpose(1, 2).reshape(B, T, C))

    # --8<-- [end:attention]


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.before, self.attention = nn.LayerNorm(width), Attention(width)
        self.between = nn.LayerNorm(width)
        self.up = Linear(width, 4 * width, bias=False)
        self.down = Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor, cache: Tensor | None = None) -> Tensor:
        x = x + self.attention(self.before(x), cache)  # (B, T, C)
        return x + self.down(F.gelu(self.up(self.between(x)), approximate="tanh"))


class Transformer(nn.Module):
    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))

    def forward(self, x: Tensor, caches: list[Tensor] | None = None) -> Tensor:
        for number, block in enumerate(self.blocks):
            x = block(x, None if caches is None else caches[number])
        return x


def build(width: int, layers: int, device: str = DEVICE) -> nn.Module:
    torch.manual_seed(0)  # every rung draws the same weights
    with torch.device(device):
        return Transformer(width, layers).to(torch.bfloat16)


def optimizer_of(model: nn.Module, lr: float = 1e-4) -> torch.optim.Optimizer:
    weights = list(model.parameters())
    masters = [weight.detach().float().requires_grad_() for weight in weights]
    for master in masters:
        master.grad = torch.zeros_like(master)
    on_gpu = weights[0].is_cuda
    optimizer = torch.optim.AdamW(masters, lr=lr, fused=on_gpu, capturable=on_gpu)

    @torch.no_grad()
    def before(*_) -> None:
        torch._foreach_copy_([master.grad for master in masters], [w.grad for w in weights])

    @torch.no_grad()
    def after(*_) -> None:
        torch._foreach_copy_(weights, masters)

    optimizer.register_step_pre_hook(before)
    optimizer.register_step_post_hook(after)
    return optimizer


# --8<-- [start:graph]
def replayed(call: Callable[[], Tensor]) -> Callable[[], Tensor]:
    """`call` as one CUDA graph: the same kernels on the same memory, launched at once."""
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for _ in range(3):  # compiles, and takes what memory and handles the libraries want
            call()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call()

    def replay() -> Tensor:
        graph.replay()
        return result

    replay.of = call  # a graph goes on using the memory of its tensors, so they must live on
    return replay


# --8<-- [end:graph]


def prepare(model: nn.Module, way: str, keep: bool = False) -> None:
    """Set every product to this way; with `keep` the weights are put into 8 bits once for all."""
    words = way.split()
    for linear in linears(model):
        linear.fp8, linear.rows = "fp8" in words, "rows" in words
        linear.fast, linear.delayed = "fast" in words, "delayed" in words
        linear.noted = linear.delayed or "noted" in words
        if linear.noted and linear.seen is None:
            linear.seen = torch.zeros(3, device=linear.weight.device, requires_grad=True)
        if not (keep and linear.fp8):
            linear.ready = None
        elif linear.ready is None:
            weight = linear.weight.detach()
            linear.ready = to_fp8(weight, largest_of(weight, linear.rows))


@torch.no_grad()
def calibrate(model: nn.Module, x: Tensor, caches: list[Tensor] | None = None) -> None:
    """One forward pass that only sees how large each product's input is."""

    def see(linear: Linear, given: tuple[Tensor]) -> None:
        linear.seen[0] = largest_of(given[0].flatten(0, 1))

    hooks = [linear.register_forward_pre_hook(see) for linear in linears(model)]
    model(x, caches)
    for hook in hooks:
        hook.remove()


def through(block: nn.Module, x: Tensor) -> Tensor:
    return block(x)


def distance(y: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(y.float(), target)


# --8<-- [start:step]
def step(
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    way: str = WAYS[0],
    optimizer: torch.optim.Optimizer | None = None,
) -> Callable[[], Tensor]:
    """One training step as a call that returns the loss; gradients stay in `.grad`."""
    prepare(model, way)
    x = x.to(torch.bfloat16)
    options = {"coordinate_descent_tuning": True} if "tuned" in way else None
    compiled = partial(torch.compile, dynamic=False, options=options)

    if "by blocks" in way:  # what is compiled for the first layers serves all others
        layer, loss_of_output = compiled(through), compiled(distance)

        def loss_of(x: Tensor, target: Tensor) -> Tensor:
            for block in model.blocks:
                x = layer(block, x)
            return loss_of_output(x, target)
    else:
        loss_of = compiled(lambda x, target: distance(model(x), target))

    if "delayed" in way:  # a first step, not compiled, with scales of its own
        prepare(model, "fp8 noted")
        distance(model(x), target).backward()
        remember(model)
        prepare(model, way)

    def call() -> Tensor:
        model.zero_grad(set_to_none=True)
        loss = loss_of(x, target)
        loss.backward()
        if "delayed" in way:
            remember(model)
        if optimizer is not None:
            optimizer.step()
        return loss.detach()

    return call if not x.is_cuda or "without a graph" in way else replayed(call)


# --8<-- [end:step]


def inference(
    model: nn.Module, x: Tensor, way: str = WAYS[0], caches: list[Tensor] | None = None
) -> Callable[[], Tensor]:
    """The forward pass as a call; with `caches`, (2, B, H, S, D) a layer, of the newest tokens."""
    prepare(model, way, keep=True)
    x = x.to(torch.bfloat16)
    if "delayed" in way:
        calibrate(model, x, caches)
    compiled = torch.compile(model, dynamic=False)

    @torch.inference_mode()
    def call() -> Tensor:
        return compiled(x, caches)

    return call if not x.is_cuda or "without a graph" in way else replayed(call)


if __name__ == "__main__":
    from anatomy import compare, models

    width, layers, tokens = (1024, 4, 1024) if DEVICE == "cuda" else (128, 2, 64)
    x, target = torch.randn(2, 4, tokens, width, device=DEVICE)  # two of (B, T, C)
    ways = WAYS if DEVICE == "cuda" else WAYS[:1]
    found = compare(
        # Each way has a model of its own: a graph goes on using the gradients it was made with.
        {way: step(build(width, layers), x, target, way) for way in ways},
        quantity="step_wall",
        op="forward and backward",
        allowed=2**-6,  # of the loss: what rounding to 16 bits may move it by
        flops=3 * layers * models.layer_flops(width, 4 * tokens, tokens),
        limit={way: f"matmul {way.split()[0]}" for way in ways},
        device=DEVICE,
    )
    print(found)
