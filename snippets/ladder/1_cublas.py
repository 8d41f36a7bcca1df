"""Rung 1: let the tensor cores multiply.

Changes from rung 0: the number format of the products, and nothing else. Weights, gradients and
optimizer stay in float32; `amp bf16` and `amp fp16` cast the factors of each product to 16 bits,
`tf32` has the tensor cores round them to TF32. cuBLAS multiplies here as it does in rung 0.
Run it alone:  python snippets/ladder/1_cublas.py
Source: Micikevicius et al. 2018, arXiv:1710.03740, on loss scaling; PyTorch's notes on TF32.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# The ways this rung can run; the first is the one that the ladder counts.
WAYS = ("amp bf16", "amp fp16", "tf32")
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


# --8<-- [start:precision]
@contextmanager
def precision(way: str) -> Iterator[None]:
    """Products in this way's number format, inside of this block alone."""
    if way == "tf32":  # a switch of the process: what it was comes back
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)
    else:
        kinds = {"amp bf16": torch.bfloat16, "amp fp16": torch.float16}
        with torch.autocast(DEVICE, kinds[way]):
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
    """One training step as a call that returns the loss; gradients stay in `.grad`.

    Those of `amp fp16` are multiplied by the loss scale until an optimizer has taken its step.
    """
    scaler = torch.amp.GradScaler(DEVICE, enabled=way == "amp fp16")

    def call() -> Tensor:
        model.zero_grad(set_to_none=True)
        with precision(way):
            loss = F.mse_loss(model(x).float(), target)
            # Autocast does not reach the backward pass, but the switch for TF32 does.
            scaler.scale(loss).backward()
        if optimizer is not None:
            scaler.step(optimizer)
            scaler.update()
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
    found = compare(
        {way: step(model, x, target, way) for way in WAYS},
        quantity="step_wall",
        op="forward and backward",
        allowed=2**-6,  # of the loss: what rounding to 16 bits may move it by
        flops=3 * layers * formulas.layer_flops(width, 4 * tokens, tokens),
        limit={way: f"matmul {way.split()[-1]}" for way in WAYS},
        device=DEVICE,
    )
    print(found)
