"""Rung 5: all that made this GPU faster, in PyTorch and Triton.

Changes from rung 3: the model's weights are bfloat16, so that no step casts them (the optimizer
keeps its own in float32); AdamW is one fused kernel; and the whole step, optimizer included, is
replayed as one CUDA graph. `fp8` also multiplies in 8 bits, with one scale for each tensor taken
from its largest element: in the same step, or with `delayed` in the step before. Both passes want
a factor by rows and by columns; a kernel of our own writes both while it reads once.
Run it alone:  python snippets/ladder/5_fastest.py
Source: Micikevicius et al. 2022, arXiv:2209.05433, on the two formats of FP8.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

try:
    import triton
    import triton.language as tl
except ImportError:  # it comes with PyTorch for GPUs; on a CPU operators do the same
    triton = None

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# The ways this rung can run; the first is the one that the ladder counts. A way is made of words:
# `delayed` takes the scales from the step before, `fast` adds up in fewer bits going back too,
# `by compiler` leaves the casts to torch.compile, and `by blocks` compiles one layer for all.
WAYS = (
    *("bf16", "bf16 by blocks", "bf16 without a graph"),
    *("fp8", "fp8 by compiler", "fp8 by blocks", "fp8 without a graph"),
    *("fp8 delayed", "fp8 delayed fast", "fp8 delayed by compiler", "fp8 delayed without a graph"),
)
HEAD = 128  # width D of one attention head
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2  # more digits, and more range for gradients
PROGRAMS = 1024  # of our kernel


# --8<-- [start:cast]
def largest_of(x: Tensor) -> Tensor:
    return x.abs().amax().float().view(1)


def to_fp8(x: Tensor, seen: Tensor, kind: torch.dtype = E4M3) -> tuple[Tensor, Tensor]:
    """`x` in 8 bits, with the largest of `seen` and all beyond at the most; and what undoes it."""
    most = torch.finfo(kind).max
    undo = seen.amax(0, keepdim=True).clamp(min=1e-12) / most
    return (x.float() * undo.reciprocal()).clamp(-most, most).to(kind), undo


def gelu(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


def cast_by_operators(x: Tensor, seen: Tensor, kind: torch.dtype, active: bool):
    """x (M, K), or its GELU, in 8 bits; the same transposed; what undoes the scale; the largest."""
    x = gelu(x) if active else x
    x8, undo = to_fp8(x, seen, kind)
    return x8, x8.t().contiguous(), undo, largest_of(x).expand(PROGRAMS).contiguous()


if triton:
    ROWS, COLUMNS = tl.constexpr(128), tl.constexpr(64)  # of the tiles that programs take in turn
    NAN = tl.constexpr(tl.PropagateNan.ALL)  # without it Triton drops one for the other number

    @triton.jit
    def largest_in(x):
        lost = tl.max((x != x).to(tl.int32))
        return tl.where(lost > 0, float("nan"), tl.max(x))

    @triton.jit
    def cast_kernel(
        x, seen, x8, x8_t, undo, largest, M, K, most, SEEN: tl.constexpr, ACTIVE: tl.constexpr
    ):
        first, step = tl.program_id(0), tl.num_programs(0)
        before = tl.maximum(largest_in(tl.load(seen + tl.arange(0, SEEN))), 1e-12, NAN)
        tl.store(undo, before / most, first == 0)
        scale, across = most / before, tl.cdiv(K, COLUMNS)
        found = tl.zeros((ROWS, COLUMNS), tl.float32)
        for tile in range(first, tl.cdiv(M, ROWS) * across, step):
            m = (tile // across * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
            k = (tile % across * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)[None, :]
            inside = (m < M) & (k < K)
            value = tl.load(x + m * K + k, inside, 0.0).to(tl.float32)
            if ACTIVE:  # GELU, as v (1 + tanh u) / 2 is v times the sigmoid of 2 u
                value *= tl.sigmoid(1.5957691216 * (value + 0.044715 * value * value * value))
            found = tl.maximum(found, tl.abs(value), NAN)
            eight = tl.clamp(value * scale, -most, most, NAN).to(x8.dtype.element_ty)
            tl.store(x8 + m * K + k, eight, inside)
            tl.store(x8_t + tl.trans(k * M + m), tl.trans(eight), tl.trans(inside))
        tl.store(largest + first, largest_in(found))


def _cast(
    x: Tensor, seen: Tensor, kind: torch.dtype, active: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The same in one kernel, which reads x once."""
    if not (triton and x.is_cuda):
        return cast_by_operators(x, seen, kind, active)
    (M, K), x = x.shape, x.contiguous()
    made = _shapes(x, seen, kind, active)
    with torch.cuda.device(x.device):
        numbers = M, K, torch.finfo(kind).max, seen.numel(), active
        cast_kernel[(PROGRAMS,)](x, seen, *made, *numbers, num_warps=8)
    return made


def _shapes(x: Tensor, seen: Tensor, kind: torch.dtype, active: bool):
    M, K = x.shape
    both = (x.new_empty(shape, dtype=kind) for shape in ((M, K), (K, M)))
    return *both, seen.new_empty(1), seen.new_empty(PROGRAMS)


if not hasattr(torch.ops.ladder, "cast"):  # a second copy of this script would free the first one's
    torch.library.custom_op("ladder::cast", _cast, mutates_args=()).register_fake(_shapes)
cast_by_kernel = torch.ops.ladder.cast


# --8<-- [end:cast]
# --8<-- [start:product]
def multiply(a, b, a_undo, b_undo, dtype: torch.dtype, fast: bool) -> Tensor:
    """a (M, K) times b (N, K) transposed, both row by row: the one form that tensor cores take."""
    return torch._scaled_mm(a, b.t(), a_undo, b_undo, out_dtype=dtype, use_fast_accum=fast)


class Product(torch.autograd.Function):
    """x (M, K), or its GELU, times w (N, K) transposed, with factors in FP8 in both passes.

    Three `seen` hold what was largest in x, w and g in the step before; with None scales are of
    this step. What is largest now is handed back as their gradients, to leave with the others.
    """

    @staticmethod
    def forward(ctx, x, w, x_seen, w_seen, g_seen, active: bool, fast: bool, own: bool) -> Tensor:
        cast = cast_by_kernel if own else cast_by_operators
        if x_seen is None:
            x_seen, w_seen = largest_of(gelu(x) if active else x), largest_of(w)
        x8, x8_t, x_undo, x_now = cast(x, x_seen, E4M3, active)
        w8, w8_t, w_undo, w_now = cast(w, w_seen, E4M3, False)
        ctx.active, ctx.fast, ctx.own, ctx.delayed = active, fast, own, g_seen is not None
        scales = x_undo, w_undo, x_now, w_now, g_seen
        ctx.save_for_backward(x8_t, w8_t, x if active else None, *scales)
        return multiply(x8, w8, x_undo, w_undo, x.dtype, fast=True)

    @staticmethod
    def backward(ctx, g: Tensor) -> tuple[Tensor | None, ...]:
        x8_t, w8_t, x, x_undo, w_undo, x_now, w_now, g_seen = ctx.saved_tensors
        cast, g = cast_by_kernel if ctx.own else cast_by_operators, g.contiguous()
        g_seen = g_seen if ctx.delayed else largest_of(g)
        g8, g8_t, g_undo, g_now = cast(g, g_seen, E5M2, False)
        dx = multiply(g8, w8_t, g_undo, w_undo, g.dtype, ctx.fast)
        dw = multiply(g8_t, x8_t, g_undo, x_undo, g.dtype, ctx.fast)
        if ctx.active:
            dx = torch.ops.aten.gelu_backward(dx, x, approximate="tanh")
        now = (x_now, w_now, g_now) if ctx.delayed else (None, None, None)
        return dx, dw, *now, None, None, None


class Linear(nn.Linear):
    """Multiplies `x`, or with `active` its GELU."""

    fp8 = fast = delayed = False
    own = True  # casts by the kernel
    ready: tuple[Tensor, Tensor] | None = None  # the weight in FP8, where it stays as it is
    seen: tuple[Tensor, ...] = ()  # of x, the weight and the gradient: the largest by program

    def forward(self, x: Tensor, active: bool = False) -> Tensor:
        if not self.fp8:
            return super().forward(gelu(x) if active else x)
        flat = x.flatten(0, 1)  # (M, K)
        if self.ready is None:
            seen = self.seen if self.delayed else (None, None, None)
            y = Product.apply(flat, self.weight, *seen, active, self.fast, self.own)
        else:
            flat = gelu(flat) if active else flat
            x8, undo = to_fp8(flat, self.seen[0][:1] if self.delayed else largest_of(flat))
            y = multiply(x8, self.ready[0], undo, self.ready[1], x.dtype, fast=True)
        return y.unflatten(0, x.shape[:2])


def linears(model: nn.Module) -> list[Linear]:
    return [each for each in model.modules() if isinstance(each, Linear)]


def calibrate(model: nn.Module, run: Callable[[], object]) -> None:
    """Run once in bfloat16, and see how large the factors of each product are."""

    def forward(linear: Linear, given: tuple) -> None:
        linear.seen[0].data[:] = largest_of(gelu(given[0]) if given[1:] else given[0])
        linear.seen[1].data[:] = largest_of(linear.weight)

    def back(linear: Linear, _, given: tuple[Tensor]) -> None:
        linear.seen[2].data[:] = largest_of(given[0])

    hooks = []
    for each in linears(model):
        each.fp8 = False
        hooks += each.register_forward_pre_hook(forward), each.register_full_backward_hook(back)
    run()
    for each, hook in zip(linears(model) * 2, hooks, strict=True):
        each.fp8 = True
        hook.remove()


# --8<-- [end:product]


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
        return x + self.down(self.up(self.between(x)), True)


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
    own = weights[0].is_cuda  # one fused kernel, which a graph can hold
    optimizer = torch.optim.AdamW(masters, lr=lr, fused=own, capturable=own)

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

    # A graph goes on using the memory of its tensors, so they must live on, until its reset().
    replay.of, replay.graph = call, graph
    return replay


# --8<-- [end:graph]


def prepare(model: nn.Module, way: str, run: Callable[[], object], keep: bool = False) -> None:
    """Set every product to this way; with `keep` the weights are put into 8 bits once for all."""
    words = way.split()
    for linear in linears(model):
        linear.fp8, linear.fast, linear.delayed = (w in words for w in ("fp8", "fast", "delayed"))
        linear.own, weight = "compiler" not in words, linear.weight.detach()
        if linear.delayed and not linear.seen:
            seen = (torch.zeros(PROGRAMS, device=weight.device) for _ in range(3))
            linear.seen = tuple(each.requires_grad_() for each in seen)
        if not (keep and linear.fp8):
            linear.ready = None
        elif linear.ready is None:
            linear.ready = to_fp8(weight, largest_of(weight))
    if "delayed" in words:
        calibrate(model, run)


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
    x, weights = x.to(torch.bfloat16), list(model.parameters())
    prepare(model, way, lambda: distance(model(x), target).backward())
    seen = [each for linear in linears(model) if linear.delayed for each in linear.seen]
    compiled = partial(torch.compile, dynamic=False)
    if "by blocks" in way:  # what is compiled for the first layers serves all others
        layer, loss_of_output = compiled(lambda block, x: block(x)), compiled(distance)

        def loss_of(x: Tensor, target: Tensor) -> Tensor:
            for block in model.blocks:
                x = layer(block, x)
            return loss_of_output(x, target)
    else:
        loss_of = compiled(lambda x, target: distance(model(x), target))

    def call() -> Tensor:
        for each in (*weights, *seen):  # what a step that failed has left would be added up
            each.grad = None
        loss = loss_of(x, target)
        loss.backward()
        if seen:  # what was largest in this step sets the scales of the next
            torch._foreach_copy_([each.data for each in seen], [each.grad for each in seen])
            for each in seen:
                each.grad = None
        if optimizer is not None:
            optimizer.step()
        return loss.detach()

    return call if not x.is_cuda or "without a graph" in way else replayed(call)


# --8<-- [end:step]


def inference(
    model: nn.Module, x: Tensor, way: str = WAYS[0], caches: list[Tensor] | None = None
) -> Callable[[], Tensor]:
    """The forward pass as a call; with `caches`, (2, B, H, S, D) a layer, of the newest tokens."""
    x = x.to(torch.bfloat16)
    prepare(model, way, torch.no_grad()(lambda: model(x, caches)), keep=True)
    compiled = torch.compile(model, dynamic=False)

    call = torch.inference_mode()(lambda: compiled(x, caches))
    return call if not x.is_cuda or "without a graph" in way else replayed(call)


if __name__ == "__main__":
    from anatomy import compare
    from anatomy.table import formulas

    width, layers, tokens = (1024, 4, 1024) if DEVICE == "cuda" else (128, 2, 64)
    x, target = torch.randn(2, 4, tokens, width, device=DEVICE)  # two of (B, T, C)
    ways = WAYS if DEVICE == "cuda" else WAYS[:1]
    found = compare(
        # Each way has a model of its own: a graph goes on using the gradients it was made with.
        {way: step(build(width, layers), x, target, way) for way in ways},
        quantity="step_wall",
        op="forward and backward",
        allowed=2**-6,  # of the loss: what rounding to 16 bits may move it by
        flops=3 * layers * formulas.layer_flops(width, 4 * tokens, tokens),
        limit={way: f"matmul {way.split()[0]}" for way in ways},
        device=DEVICE,
    )
    print(found)
