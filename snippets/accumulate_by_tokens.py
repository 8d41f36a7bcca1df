"""Accumulate gradients over micro-batches of different size, and get those of the full batch.

The loss is a mean over tokens, so a micro-batch counts by its share of all tokens.
Run it alone:  python snippets/accumulate_by_tokens.py
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

PADDING = -100  # a label that cross_entropy leaves out


# --8<-- [start:accumulate]
def backward_in_steps(model, inputs: Tensor, labels: Tensor, steps: int):
    """Add the gradient of the mean over all tokens to `.grad`."""
    tokens = (labels != PADDING).sum()  # of the full batch
    parts = zip(inputs.chunk(steps), labels.chunk(steps), strict=True)
    for some, wanted in parts:  # (B / steps, T) each
        scores = model(some).flatten(0, 1)  # (B T / steps, vocabulary)
        wanted = wanted.flatten()
        total = F.cross_entropy(
            scores,
            wanted,
            ignore_index=PADDING,
            reduction="sum",
        )
        (total / tokens).backward()  # a sum over tokens; no mean of means


# --8<-- [end:accumulate]


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(100, 32), nn.Linear(32, 100)).double()
    inputs, labels = torch.randint(100, (2, 8, 16))  # (B, T) each
    labels[torch.arange(16) >= torch.arange(2, 17, 2)[:, None]] = PADDING  # 2, 4, ... 16 tokens

    def gradient(steps: int) -> Tensor:
        model.zero_grad()
        backward_in_steps(model, inputs, labels, steps)
        return torch.cat([each.grad.flatten() for each in model.parameters()])

    full = gradient(1)
    for steps in (2, 4, 8):
        error = (gradient(steps) - full).norm() / full.norm()
        print(f"{steps} steps: the gradient differs by {error.item():.1e} of its length")
