"""What is timed: ten workloads from one element to a training step, and two pairs 2 % apart:
kernels shorter than an event pair, data that fits the cache or does not, power-limited products,
launch-bound chains. Each returns the same from call to call, so that `compare` can check it."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Call = Callable[[], Tensor]
Build = Callable[[torch.device, float], Call]

MIB = 2**20 // 4  # float32 elements
EFFECT = 1.02  # the slowdown that is put in, to see whether it is found
EFFECT_PART, EFFECT_PARTS = 5 * MIB, (50, 51)  # both end with a page: no tail for another kernel
SPIN_CYCLES = 200_000  # about 100 us at 1.98 GHz; on another clock another time, but still 2 %


def _add_one(device: torch.device, scale: float) -> Call:
    x, y = torch.randn(1, device=device), torch.randn(1, device=device)
    return lambda: x + y


def _add(device: torch.device, scale: float) -> Call:
    x, y = (torch.randn(_scaled(MIB, scale), device=device) for _ in range(2))
    return lambda: x + y


def _copy(elements: int) -> Build:
    def build(device: torch.device, scale: float) -> Call:
        x = torch.randn(_scaled(elements, scale), device=device)
        return copy_of(x, torch.empty_like(x))

    return build


def copy_of(x: Tensor, y: Tensor) -> Call:
    """A call that copies `x` into `y`, and returns only the beginning of `y` to be checked."""
    seen = y[:1024]

    def call() -> Tensor:
        y.copy_(x)
        return seen

    return call


def _softmax(device: torch.device, scale: float) -> Call:
    side = _scaled(4096, scale)
    x = torch.randn(side, side, dtype=torch.bfloat16, device=device)  # (rows, columns)
    return lambda: torch.softmax(x, dim=-1)


def _chain(device: torch.device, scale: float) -> Call:
    side = _scaled(4096, scale)
    x = torch.randn(side, side, dtype=torch.bfloat16, device=device)  # (rows, columns)
    weight, bias = (torch.randn(side, dtype=torch.bfloat16, device=device) for _ in range(2))

    def call() -> Tensor:
        hidden = F.gelu(F.layer_norm(x, (side,), weight, bias))
        F.dropout(hidden, 0.1)
        return hidden  # dropout differs from call to call, what it was given does not

    return call


def _matmul(full: int) -> Build:
    def build(device: torch.device, scale: float) -> Call:
        side = _scaled(full, scale)
        a, b = (torch.randn(side, side, dtype=torch.bfloat16, device=device) for _ in range(2))
        return lambda: a @ b

    return build


def _attention(device: torch.device, scale: float) -> Call:
    shape = (4, 16, _scaled(4096, scale), 64)  # (B, H, T, D)
    q, k, v = (torch.randn(shape, dtype=torch.bfloat16, device=device) for _ in range(3))
    return lambda: F.scaled_dot_product_attention(q, k, v)


class _Block(nn.Module):
    """One layer of a GPT: attention and a multilayer perceptron, each behind a layer norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        qkv = self.qkv(self.before(x)).view(B, T, 3, self.heads, C // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # three of (B, H, T, D)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # (B, H, T, D)
        x = x + self.out(y.transpose(1, 2).reshape(B, T, C))
        return x + self.down(F.gelu(self.up(self.between(x))))


def _training_step(device: torch.device, scale: float) -> Call:
    words, width, tokens = _scaled(8192, scale), 64 * _scaled(8, scale), _scaled(512, scale)
    layers = [_Block(width, width // 64) for _ in range(4)]
    model = nn.Sequential(nn.Embedding(words, width), *layers, nn.Linear(width, words))
    model = model.to(device, torch.bfloat16)
    parameters = list(model.parameters())
    text = torch.randint(words, (4, tokens + 1), device=device)  # (B, T + 1)

    def call() -> Tensor:
        logits = model(text[:, :-1])  # (B, T, words)
        loss = F.cross_entropy(logits.flatten(0, 1).float(), text[:, 1:].flatten())
        # Not `backward`: gradients that add up from step to step would be another workload.
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            # The rate is 0: the same kernels run, and the loss stays what was checked.
            torch._foreach_add_(parameters, gradients, alpha=0.0)
        return loss.detach()

    return call


# Name -> what builds it for a device and a scale (1: as named; less for a CPU).
WORKLOADS: dict[str, Build] = {
    "W1 add 1 element": _add_one,
    "W2 add 1 MiB": _add,
    "W3 copy 16 MiB": _copy(16 * MIB),
    "W4 copy 2 GiB": _copy(2048 * MIB),
    "W5 softmax": _softmax,
    "W6 eager chain": _chain,
    "W7 matmul 1024": _matmul(1024),
    "W8 matmul 8192": _matmul(8192),
    "W9 attention": _attention,
    "W10 training step": _training_step,
}


def _copy_effect(device: torch.device, scale: float) -> tuple[Call, Call]:
    # The copies are made by one kernel, whose time follows the bytes. `copy_` leaves them to the
    # driver, which goes other ways for other sizes: that is a real difference, but not of 2 %.
    part = _scaled(EFFECT_PART, scale)
    x = torch.randn(EFFECT_PARTS[1] * part, device=device)
    y = torch.empty_like(x)

    def copy(elements: int) -> Call:
        source, target, seen = x[:elements], y[:elements], y[:1024]

        def call() -> Tensor:
            torch.mul(source, 1.0, out=target)
            return seen

        return call

    plain, more = (copy(parts * part) for parts in EFFECT_PARTS)
    return plain, more


def _spin_effect(device: torch.device, scale: float) -> tuple[Call, Call]:
    done = torch.zeros(1, device=device)

    def spin(cycles: int) -> Call:
        def call() -> Tensor:
            torch.cuda._sleep(cycles)
            return done

        return call

    return spin(SPIN_CYCLES), spin(round(EFFECT * SPIN_CYCLES))


# Name -> what builds two calls, of which the second does 2 % more of the same.
EFFECTS: dict[str, Callable[[torch.device, float], tuple[Call, Call]]] = {
    "E1 copy 250 MiB": _copy_effect,
    "E2 spin": _spin_effect,
}
CUDA_ONLY = ("E2 spin",)  # those that a CPU can't run


def _scaled(full: int, scale: float) -> int:
    return max(1, round(full * scale))
