"""Rung 0: a transformer's training step as one writes it first, in float32.

What it costs: products run on the float32 units, not on the tensor cores, and attention writes a
score for every pair of tokens to memory and reads it back for each of its small operations.
Run it alone:  python snippets/ladder/0_baseline.py
Source: Vaswani et al. 2017, arXiv:1706.03762; norms in front of each part as in GPT-2.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# The ways this rung can run; the first is the one that the ladder counts.
WAYS = ("fp32",)
HEAD = 128  # width D of one attention head


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = max(1, width // HEAD)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, cache: Tensor | None = None) -> Tensor:
        # --8<-- [start:queries]
        B, T, C = x.shape  # sequences, tokens, width
        qkv = self.qkv(x).view(B, T, 3, self.heads, C // self.heads)
        qkv = qkv.permute(2, 0, 3, 1, 4)
        q, k, v = qkv  # three of (B, H, T, D)
        # --8<-- [end:queries]
        if cache is not None:  # (2, B, H, S, D): keys and values so far; the last ones are ours
            cache[:, :, :, -T:] = qkv[1:]
            k, v = cache
        # --8<-- [start:attention]
        S = k.shape[2]  # tokens that can be looked at
        future = torch.ones(T, S, dtype=torch.bool, device=x.device).triu(S - T + 1)
        scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5  # (B, H, T, S)
        shares = scores.masked_fill(future, float("-inf")).softmax(dim=3)
        return self.out((shares @ v).transpose(1, 2).reshape(B, T, C))
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
        loss = F.mse_loss(model(x), target)
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
    return torch.inference_mode()(lambda: model(x, caches))


if __name__ == "__main__":
    from anatomy import compare
    from anatomy.table import formulas

    width, layers, tokens = (1024, 4, 1024) if DEVICE == "cuda" else (128, 2, 64)
    x, target = torch.randn(2, 4, tokens, width, device=DEVICE)  # two of (B, T, C)
    model = build(width, layers)
    found = compare(
        {way: step(model, x, target, way) for way in WAYS},
        quantity="step_wall",
        op="forward and backward",
        flops=3 * layers * formulas.layer_flops(width, 4 * tokens, tokens),
        device=DEVICE,
    )
    print(found)
