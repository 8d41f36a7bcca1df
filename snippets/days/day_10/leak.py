"""A training loop that takes more memory in every round. Which line keeps it?

python leak.py
"""

import resource
import sys

import torch
from torch import nn

where = "cuda" if torch.cuda.is_available() else "cpu"
MIB = 2**20


# --8<-- [start:loop]
def main(rounds=6):
    model = nn.Sequential(*(nn.Sequential(nn.Linear(512, 512), nn.GELU()) for _ in range(8)))
    model = model.to(where)
    optimizer = torch.optim.AdamW(model.parameters())
    train, held_out = torch.randn(2, 4096, 512, device=where)
    history = {"train": [], "held out": []}
    for number in range(rounds):
        optimizer.zero_grad()
        loss = model(train).square().mean()
        loss.backward()
        optimizer.step()
        history["train"].append(loss)
        model.eval()
        history["held out"].append(model(held_out).square().mean())
        model.train()
        print(f"round {number}: {memory() / MIB:.0f} MiB")


# --8<-- [end:loop]


def memory():
    """Bytes that tensors hold; on a CPU the most that the process has had, in whole pages."""
    if where == "cuda":
        return torch.cuda.memory_allocated()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main()
