"""Rung 4: multiply in 8 bits, with NVIDIA's Transformer Engine.

Changes from rung 3: each layer is one module of Transformer Engine, whose products take factors
in FP8. The ways differ in where a scale comes from: `current` takes it from the tensor itself,
`delayed` from the largest elements of the steps before, `block` gives every small block its own;
`bf16` is the same module without FP8.
Run it alone:  python snippets/ladder/4_transformer_engine.py
Source: Micikevicius et al. 2022, arXiv:2209.05433; the library's user guide on its recipes.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

try:
    import transformer_engine.pytorch as te
    from transformer_engine.common import recipe
except ImportError as error:
    raise SystemExit(
        f"Rung 4 needs Transformer Engine, which can't be imported here: {error}. On a machine "
        "with an NVIDIA GPU and the CUDA toolkit: "
        "pip install --no-build-isolation 'transformer-engine[pytorch]'"
    ) from error

DEVICE = "cuda"  # Transformer Engine has no other
WAYS = ("current", "delayed", "block", "bf16")
HEAD = 128  # width D of one attention head

RECIPES = {
    "current": recipe.Float8CurrentScaling,
    "delayed": recipe.DelayedScaling,
    "block": recipe.Float8BlockScaling,
}


# --8<-- [start:build]
def build(width: int, layers: int, device: str = DEVICE) -> nn.Module:
    model = nn.Sequential(*(_layer(width, device) for _ in range(layers)))
    load(model, width, layers, device)
    return model


def _layer(width: int, device: str) -> nn.Module:
    return te.TransformerLayer(
        hidden_size=width,
        ffn_hidden_size=4 * width,
        num_attention_heads=max(1, width // HEAD),
        hidden_dropout=0.0,
        attention_dropout=0.0,
        self_attn_mask_type="causal",
        attn_input_format="bshd",
        bias=False,
        activation="gelu",  # the approximation by tanh
        fuse_qkv_params=True,
        qkv_weight_interleaved=False,
        params_dtype=torch.bfloat16,
        device=device,
    )


# --8<-- [end:build]


@torch.no_grad()
def load(model: nn.Module, width: int, layers: int, device: str = DEVICE) -> None:
    """Give `model` the weights that every other rung draws, in the order in which they are drawn.

    A layer's parameters stand in the same order as theirs: norm, q with k and v, out, norm, up,
    down.
    """
    torch.manual_seed(0)
    parameters = iter(model.parameters())
    shapes = ((3 * width, width), (width, width), (4 * width, width), (width, 4 * width))
    for _ in range(layers):
        drawn_here = (nn.Linear(k, n, bias=False, device=device).weight for n, k in shapes)
        qkv, out, up, down = drawn_here
        one, zero = torch.ones(width), torch.zeros(width)
        for drawn in (one, zero, qkv, out, one, zero, up, down):
            next(parameters).copy_(drawn)


def optimizer_of(model: nn.Module, lr: float = 1e-4) -> torch.optim.Optimizer:
    return te.optimizers.FusedAdam(model.parameters(), lr=lr, master_weights=True)


# --8<-- [start:step]
def step(
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    way: str = WAYS[0],
    optimizer: torch.optim.Optimizer | None = None,
) -> Callable[[], Tensor]:
    """One training step as a call that returns the loss; gradients stay in `.grad`."""
    x, scaling = x.to(torch.bfloat16), RECIPES[way]() if way in RECIPES else None

    def call() -> Tensor:
        model.zero_grad(set_to_none=True)
        with te.autocast(enabled=scaling is not None, recipe=scaling):
            y = model(x)
        loss = F.mse_loss(y.float(), target)
        loss.backward()
        if optimizer is not None:
            optimizer.step()
        return loss.detach()

    return call


# --8<-- [end:step]


def inference(
    model: nn.Module, x: Tensor, way: str = WAYS[0], caches: list[Tensor] | None = None
) -> Callable[[], Tensor]:
    """The forward pass as a call; its own cache of keys and values is not that of the others."""
    if caches is not None:
        raise NotImplementedError("Transformer Engine keeps keys and values in a form of its own.")
    x, scaling = x.to(torch.bfloat16), RECIPES[way]() if way in RECIPES else None

    @torch.inference_mode()
    def call() -> Tensor:
        with te.autocast(enabled=scaling is not None, recipe=scaling):
            return model(x)

    return call


if __name__ == "__main__":
    from anatomy import compare, models

    width, layers, tokens = 1024, 4, 1024
    x, target = torch.randn(2, 4, tokens, width, device=DEVICE)  # two of (B, T, C)
    found = compare(
        {way: step(build(width, layers), x, target, way) for way in WAYS},
        control="bf16",
        quantity="step_wall",
        op="forward and backward",
        allowed=2**-6,  # of the loss: what rounding to 8 bits may move it by
        flops=3 * layers * models.layer_flops(width, 4 * tokens, tokens),
        device=DEVICE,
    )
    print(found)
