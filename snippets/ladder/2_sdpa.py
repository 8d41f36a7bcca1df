"""Rung 2: let one kernel do the attention.

Changes from rung 1: scores, mask, softmax and weighted sum become one call, which PyTorch hands
to one of several kernels; `amp bf16` lets it choose, the other ways name one.
What it saves: the (B, H, T, T) scores are never written to memory, unless `math` runs.
Run it alone:  python snippets/ladder/2_sdpa.py
Source: FlashAttention, Dao et al. 2022, arXiv:2205.14135, algorithm 1.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# The ways this rung can run; the first is the one that the ladder counts.
WAYS = ("amp bf16", "flash", "cudnn", "efficient", "math")
HEAD = 128  # width D of one attention head


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = max(1, width // HEAD)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

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
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

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
        return Transformer(width, layers)


def optimizer_of(model: nn.Module, lr: float = 1e-4) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=lr)


# --8<-- [start:precision]
# Each way's one backend; the first way leaves the choice to PyTorch.
BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}


@contextmanager
def precision(way: str) -> Iterator[None]:
    """Products in bfloat16 and attention on this way's backend, inside of this block alone."""
    backend = BACKENDS.get(way)
    with (
        torch.autocast(DEVICE, torch.bfloat16),
        sdpa_kernel(backend) if backend else nullcontext(),
    ):
        yield


# --8<-- [end:precision]


# --8<-- [start:step]
def step(
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    way: str = WAYS[0],
    optimizer: torch.optim.Optimizer | None = None,
) -> Callable[[], Tensor]:
    """One training step as a call that returns the loss; gradients stay in `.grad`."""

    def call() -> Tensor:
        model.zero_grad(set_to_none=True)
        with precision(way):
            loss = F.mse_loss(model(x).float(), target)
        loss.backward()
        if optimizer is not None:
            optimizer.step()
        return loss.detach()

    return call


# --8<-- [end:step]


def inference(
    model: nn.Module, x: Tensor, way: str = WAYS[0], caches: list[Tensor] | None = None
) -> Callable[[], Tensor]:
    """The forward pass as a call; with `caches`, (2, B, H, S, D) a layer, of the newest tokens."""

    @torch.inference_mode()
    def call() -> Tensor:
        with precision(way):
            return model(x, caches)

    return call


if __name__ == "__main__":
    from anatomy import compare
    from anatomy.table import formulas

    width, layers, tokens = (1024, 4, 1024) if DEVICE == "cuda" else (128, 2, 64)
    x, target = torch.randn(2, 4, tokens, width, device=DEVICE)  # two of (B, T, C)
    model = build(width, layers)
    ways = WAYS if DEVICE == "cuda" else WAYS[:1]  # not every backend is there on a CPU
    found = compare(
        {way: step(model, x, target, way) for way in ways},
        quantity="step_wall",
        op="forward and backward",
        allowed=2**-6,  # of the loss: what rounding to 16 bits may move it by
        flops=3 * layers * formulas.layer_flops(width, 4 * tokens, tokens),
        limit="matmul bf16",
        device=DEVICE,
    )
    print(found)
