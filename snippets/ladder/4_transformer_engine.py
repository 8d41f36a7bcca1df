"""Rung 4: multiply in 8 bits, with NVIDIA's Transformer Engine.

Changes from rung 3: each layer is one module of Transformer Engine, whose products take factors
in FP8; its weights are bfloat16, and the optimizer keeps its own in float32. The ways differ in
where a scale comes from: `current` takes it from the tensor itself, `delayed` from the largest
elements of the steps before, `block` gives every small block its own; `bf16` is the same module
without FP8. `attention too` lets attention multiply in FP8, `in a graph` replays the whole step as
one CUDA graph.
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
except Exception as error:  # a library of its own may be missing too, or made for another torch
    raise SystemExit(
        f"Rung 4 needs Transformer Engine, which can't be imported here: {error}. On a machine "
        "with an NVIDIA GPU and the CUDA toolkit: "
        "pip install --no-build-isolation 'transformer-engine[pytorch]'"
    ) from error

DEVICE = "cuda"  # Transformer Engine has no other
# The ways this rung can run; the first is the one that the ladder counts.
WAYS = (
    *("current", "delayed", "block", "bf16", "delayed, attention too"),
    *("current in a graph", "delayed in a graph", "block in a graph", "bf16 in a graph"),
)
HEAD = 128  # width D of one attention head


# --8<-- [start:build]
def build(width: int, layers: int, device: str = DEVICE) -> nn.Module:
    model = nn.Sequential(*(_layer(width, number, device) for number in range(layers)))
    load(model, width, device)
    return model


def _layer(width: int, number: int, device: str) -> nn.Module:
    return te.TransformerLayer(
        hidden_size=width,
        ffn_hidden_size=4 * width,
        num_attention_heads=max(1, width // HEAD),
        layer_number=number + 1,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        self_attn_mask_type="causal",
        attn_input_format="bshd",
        bias=False,  # of the products; the norms keep theirs
        activation="gelu",  # the approximation by tanh
        fuse_qkv_params=True,  # one weight (3 C, C)
        qkv_weight_interleaved=False,  # all of q's rows, then k's, then v's
        params_dtype=torch.bfloat16,
        device=device,
    )


# --8<-- [end:build]


@torch.no_grad()
def load(model: nn.Module, width: int, device: str = DEVICE) -> None:
    """Give `model` the weights that every other rung draws, in the order in which they are drawn.

    Its norms begin with ones and zeros, as theirs do.
    """
    torch.manual_seed(0)
    shapes = ((3 * width, width), (width, width), (4 * width, width), (width, 4 * width))
    for layer in model:
        attention, perceptron = layer.self_attention, layer.layernorm_mlp
        weights = (attention.layernorm_qkv.weight, attention.proj.weight)
        weights += (perceptron.fc1_weight, perceptron.fc2_weight)
        for weight, (n, k) in zip(weights, shapes, strict=True):
            weight.copy_(nn.Linear(k, n, bias=False, device=device).weight)


def optimizer_of(model: nn.Module, lr: float = 1e-4) -> torch.optim.Optimizer:
    """AdamW as in the other rungs, whose weight decay is PyTorch's default."""
    return te.optimizers.FusedAdam(
        model.parameters(), lr=lr, weight_decay=0.01, master_weights=True, capturable=True
    )


# --8<-- [start:recipes]
def scaling(way: str) -> recipe.Recipe | None:
    """The recipe by which this way makes its scales; None for bfloat16."""
    if way.startswith("delayed"):
        too = "attention too" in way
        return recipe.DelayedScaling(fp8_dpa=too, fp8_mha=too)
    if way.startswith("block"):
        return recipe.Float8BlockScaling()
    return recipe.Float8CurrentScaling() if way.startswith("current") else None


# --8<-- [end:recipes]


def replayed(call: Callable[[], Tensor]) -> Callable[[], Tensor]:
    """`call` as one CUDA graph: the same kernels on the same memory, launched at once."""
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for _ in range(3):  # takes what memory and handles the libraries want
            call()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call()

    def replay() -> Tensor:
        graph.replay()
        return result

    replay.of = call  # a graph goes on using the memory of its tensors, so they must live on
    replay.graph = graph  # its reset() gives its memory back
    return replay


# --8<-- [start:step]
def step(
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    way: str = WAYS[0],
    optimizer: torch.optim.Optimizer | None = None,
) -> Callable[[], Tensor]:
    """One training step as a call that returns the loss; gradients stay in `.grad`."""
    x, fp8 = x.to(torch.bfloat16), scaling(way)
    model.train()

    def call() -> Tensor:
        model.zero_grad(set_to_none=True)
        with te.autocast(enabled=fp8 is not None, recipe=fp8):
            y = model(x)
        loss = F.mse_loss(y.float(), target)
        loss.backward()
        if optimizer is not None:
            optimizer.step()
        return loss.detach()

    return replayed(call) if "in a graph" in way else call


# --8<-- [end:step]


def inference(
    model: nn.Module, x: Tensor, way: str = WAYS[0], caches: list[Tensor] | None = None
) -> Callable[[], Tensor]:
    """The forward pass as a call; with `caches`, (2, B, H, S, D) a layer, of the newest tokens."""
    x, fp8 = x.to(torch.bfloat16), scaling(way)
    tokens = x.shape[0] * x.shape[1]
    if fp8 is not None and tokens % 8:
        raise NotImplementedError(f"Its FP8 products need a multiple of 8 tokens, not {tokens}.")
    how: dict = {} if caches is None else remembering(x, caches)
    model.train(way.startswith("delayed"))

    def forward(first: bool | None) -> Tensor:
        y = x
        with te.autocast(enabled=fp8 is not None, recipe=fp8):
            for layer in model:  # its FP8 weights stay as they were made for the first call
                y = layer(y, is_first_microbatch=first, **how)
        return y

    if way.startswith("delayed"):  # scales come from steps before, and only training has such
        for _ in range(2):
            forward(None)
        model.eval()
    # Not inference_mode: what the library keeps from call to call could not be used elsewhere.
    with torch.no_grad():
        forward(True)
    call = torch.no_grad()(lambda: forward(False))
    return replayed(call) if "in a graph" in way else call


# --8<-- [start:cache]
def remembering(x: Tensor, caches: list[Tensor]) -> dict:
    """Arguments by which every layer looks at keys and values so far; the last are those of `x`."""
    B, T = x.shape[:2]
    H, S, D = caches[0].shape[2:]
    if T != 1:
        raise NotImplementedError(f"Its cache takes tokens one by one, not {T} at once.")
    kept = te.InferenceParams(B, S, num_heads_kv=H, head_dim_k=D, dtype=torch.bfloat16)
    for number, cache in enumerate(caches, 1):
        kept.allocate_memory(number)
        for mine, theirs in zip(kept.cache_manager.cache[number], cache, strict=True):
            mine.copy_(theirs.transpose(1, 2))  # (B, S, H, D)
    # Two steps: the tokens before the last, which are there, and the last, which each call brings.
    for tokens in (S - 1, 1):
        kept.pre_step(dict.fromkeys(range(B), tokens))
    return {"inference_params": kept, "self_attn_mask_type": "padding_causal"}


# --8<-- [end:cache]


if __name__ == "__main__":
    from anatomy import compare
    from anatomy.table import formulas

    width, layers, tokens = 1024, 4, 1024
    x, target = torch.randn(2, 4, tokens, width, device=DEVICE)  # two of (B, T, C)
    found = compare(
        # Each way has a model of its own: a graph goes on using the gradients it was made with.
        {way: step(build(width, layers), x, target, way) for way in WAYS},
        control="bf16",
        quantity="step_wall",
        op="forward and backward",
        allowed=2**-6,  # of the loss: what rounding to 8 bits may move it by
        flops=3 * layers * formulas.layer_flops(width, 4 * tokens, tokens),
        limit={way: f"matmul {'bf16' if 'bf16' in way else 'fp8'}" for way in WAYS},
        device=DEVICE,
    )
    print(found)
