"""What is timed: ten workloads from one element to a training step, and two pairs 2 % apart:
kernels shorter than an event pair, data that fits the cache or does not, power-limited products,
launch-bound chains. Each returns the same from call to call, so that `compare` can check it."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from anatomy.parts import models

Call = Callable[[], Tensor]

MIB = 2**20 // 4  # float32 elements
EFFECT = 1.02  # the slowdown that is put in, to see whether it is found
EFFECT_PART, EFFECT_PARTS = 5 * MIB, (50, 51)  # both end with a page: no tail for another kernel
SPIN_CYCLES = 200_000  # about 100 us at 1.98 GHz; on another clock another time, but still 2 %


def scaled(full: int, scale: float) -> int:
    """A size at a scale, 1 at the least."""
    return max(1, round(full * scale))


def workloads(device: torch.device, scale: float) -> dict[str, Callable[[], Call]]:
    """What builds each of the ten, on a scale (1: as named; less for a CPU)."""
    side = scaled(4096, scale)

    def bf16(*shape: int) -> Tensor:
        return torch.randn(shape, dtype=torch.bfloat16, device=device)

    def added(elements: int) -> Call:
        x, y = (torch.randn(elements, device=device) for _ in range(2))
        return lambda: x + y

    def copied(elements: int) -> Call:
        x = torch.randn(scaled(elements, scale), device=device)
        y = torch.empty_like(x)
        return seen_of(y, lambda: y.copy_(x))

    def softmax() -> Call:
        x = bf16(side, side)  # (rows, columns)
        return lambda: torch.softmax(x, dim=-1)

    def chain() -> Call:
        x, weight, bias = bf16(side, side), bf16(side), bf16(side)

        def call() -> Tensor:
            hidden = F.gelu(F.layer_norm(x, (side,), weight, bias))
            F.dropout(hidden, 0.1)
            return hidden  # dropout differs from call to call, what it was given does not

        return call

    def product(full: int) -> Call:
        a, b = (bf16(scaled(full, scale), scaled(full, scale)) for _ in range(2))
        return lambda: a @ b

    def attention() -> Call:
        q, k, v = (bf16(4, 16, side, 64) for _ in range(3))  # (B, H, T, D)
        return lambda: F.scaled_dot_product_attention(q, k, v)

    return {
        "W1 add 1 element": partial(added, 1),
        "W2 add 1 MiB": partial(added, scaled(MIB, scale)),
        "W3 copy 16 MiB": partial(copied, 16 * MIB),
        "W4 copy 2 GiB": partial(copied, 2048 * MIB),
        "W5 softmax": softmax,
        "W6 eager chain": chain,
        "W7 matmul 1024": partial(product, 1024),
        "W8 matmul 8192": partial(product, 8192),
        "W9 attention": attention,
        "W10 training step": partial(_training_step, device, scale),
    }


def seen_of(y: Tensor, act: Callable[[], object]) -> Call:
    """A call of `act`, which fills `y`, that returns only the beginning of it to be checked."""
    seen = y[:1024]

    def call() -> Tensor:
        act()
        return seen

    return call


def _training_step(device: torch.device, scale: float) -> Call:
    words, width, tokens = scaled(8192, scale), 64 * scaled(8, scale), scaled(512, scale)
    layers = models.transformer(width, 4, device, torch.bfloat16)
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


def effects(device: torch.device, scale: float) -> dict[str, Callable[[], tuple[Call, Call]]]:
    """What builds two calls each, of which the second does 2 % more of the same."""

    def copies() -> tuple[Call, Call]:
        # The copies are made by one kernel, whose time follows the bytes. `copy_` leaves them to
        # the driver, which goes other ways for other sizes: a real difference, but not of 2 %.
        x = torch.randn(EFFECT_PARTS[1] * scaled(EFFECT_PART, scale), device=device)
        y = torch.empty_like(x)
        sizes = (parts * scaled(EFFECT_PART, scale) for parts in EFFECT_PARTS)
        plain, more = (seen_of(y, partial(torch.mul, x[:n], 1.0, out=y[:n])) for n in sizes)
        return plain, more

    def spins() -> tuple[Call, Call]:
        if device.type != "cuda":
            raise RuntimeError("needs CUDA's spin kernel")
        done = torch.zeros(1, device=device)
        cycles = (SPIN_CYCLES, round(EFFECT * SPIN_CYCLES))
        plain, more = (seen_of(done, partial(torch.cuda._sleep, each)) for each in cycles)
        return plain, more

    return {"E1 copy 250 MiB": copies, "E2 spin": spins}
