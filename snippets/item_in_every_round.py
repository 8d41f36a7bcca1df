"""A step that waits for the GPU in every round, to try `diagnose` on: its bottleneck is known.

pytorch-gpu-anatomy diagnose snippets/item_in_every_round.py
"""

# --8<-- [start:step]
import torch

device = "cuda:0" if torch.cuda.is_available() else "cpu"
x = torch.randn(2**22, device=device)
y = torch.empty_like(x)


def step():
    for _ in range(30):
        torch.add(x, 1.0, out=y)
        first = y[:1].item()  # waits until the addition is done
    return first


# --8<-- [end:step]
