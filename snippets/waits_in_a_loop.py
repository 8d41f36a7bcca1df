"""One training loop twice: with lines that wait for the GPU, and with what to write instead.

Run it alone, on a machine with a GPU:  python snippets/waits_in_a_loop.py
PyTorch's debug mode then prints a warning at each line of the first loop that it sees waiting.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Batches = list[tuple[Tensor, Tensor]]
Epoch = tuple[float, float]  # the mean of the loss, and the number of wrong answers

BATCHES = 8


# --8<-- [start:careless]
def careless(model: nn.Module, batches: Batches, device: str) -> Epoch:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    losses, wrong = [], 0
    for x, y in batches:
        x, y = x.to(device), y.to(device)
        output = model(x)
        loss = F.cross_entropy(output, y)
        if torch.isnan(loss):
            break
        wrong += len(y[output.argmax(1) != y])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses), wrong


# --8<-- [end:careless]


# --8<-- [start:careful]
def careful(model: nn.Module, batches: Batches, device: str) -> Epoch:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    total, wrong = torch.zeros(2, device=device)
    for step, (x, y) in enumerate(batches, start=1):  # pinned memory
        x = x.to(device, non_blocking=True)
        y = y.to(device, non_blocking=True)
        output = model(x)
        loss = F.cross_entropy(output, y)
        wrong += (output.argmax(1) != y).sum()  # one number, always
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
        if step % 4 == 0 and math.isnan(total.item()):  # a sum keeps a NaN
            break
    return total.item() / step, wrong.item()


# --8<-- [end:careful]


def prepared(device: str) -> tuple[nn.Module, Batches]:
    """A model on the device, and batches in pinned memory of the host where there is a GPU."""
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)).to(device)
    batches = [(torch.randn(32, 64), torch.randint(10, (32,))) for _ in range(BATCHES)]
    if torch.device(device).type == "cuda":
        batches = [(x.pin_memory(), y.pin_memory()) for x, y in batches]
    return model, batches


if __name__ == "__main__":
    if not torch.cuda.is_available():
        raise SystemExit("This asks a GPU, and there is none.")
    model, batches = prepared("cuda")
    for loop in (careless, careful):
        loop(model, batches, "cuda")  # what happens once has then happened
        torch.cuda.set_sync_debug_mode("warn")
        loop(model, batches, "cuda")
        torch.cuda.set_sync_debug_mode("default")
