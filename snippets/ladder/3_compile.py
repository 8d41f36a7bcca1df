"""Rung 3: let a compiler fuse what lies between the products.

Changes from rung 2: forward pass, loss and backward pass are compiled. Norms, GELU, residuals and
casts become a few Triton kernels; products stay with cuBLAS and attention with its own kernel.
`reduce-overhead` also replays them as CUDA graphs, and `max-autotune` tries other kernels for the
products first, for minutes.
Run it alone:  python snippets/ladder/3_compile.py
Source: PyTorch 2, Ansel et al. 2024, doi:10.1145/3620665.3640366.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# The ways this rung can run; the first is the one that the ladder counts.
WAYS = ("default", "reduce-overhead", "max-autotune")
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


# --8<-- [start:step]
def step(
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    way: str = WAYS[0],
    optimizer: torch.optim.Optimizer | None = None,
) -> Callable[[], Tensor]:
    """One training step as a call that returns the loss; gradients stay in `.grad`."""

    @torch.compile(mode=way)
    def loss_of(x: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(model(x).float(), target)

    def call() -> Tensor:
        model.zero_grad(set_to_none=True)
        torch.compiler.cudagraph_mark_step_begin()  # what the last step returned may be overwritten
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = loss_of(x, target)
        loss.backward()
        if optimizer is not None:
            optimizer.step()
        return loss.detach().clone()

    return call


# --8<-- [end:step]


def inference(
    model: nn.Module, x: Tensor, way: str = WAYS[0], caches: list[Tensor] | None = None
) -> Callable[[], Tensor]:
    """The forward pass as a call; with `caches`, (2, B, H, S, D) a layer, of the newest tokens."""
    for cache in caches or ():  # a CUDA graph may write into it only if it stays where it is
        torch._dynamo.mark_static_address(cache)
    compiled = torch.compile(model, mode=way)

    @torch.inference_mode()
    def call() -> Tensor:
        torch.compiler.cudagraph_mark_step_begin()
        with torch.autocast(DEVICE, torch.bfloat16):
            return compiled(x, caches).clone()

    return call


if __name__ == "__main__":
    from anatomy import compare
    from anatomy.table import formulas

    width, layers, tokens = (1024, 4, 1024) if DEVICE == "cuda" else (128, 2, 64)
    x, target = torch.randn(2, 4, tokens, width, device=DEVICE)  # two of (B, T, C)
    model = build(width, layers)
    # CUDA graphs need a GPU, and max-autotune patience.
    ways = WAYS[:2] if DEVICE == "cuda" else WAYS[:1]
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
