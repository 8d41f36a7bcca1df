"""Ask what holds one training step back, as you would of your own.

Run it alone, where the package is installed:  python snippets/diagnose_your_step.py
Or leave it to the command:  pytorch-gpu-anatomy diagnose snippets/diagnose_your_step.py
"""

# --8<-- [start:diagnose]
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from anatomy import diagnose

device = "cuda:0" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)


def batches():
    """Batches without end, prepared by the host while the GPU has nothing to do."""
    draw = np.random.default_rng(0)
    while True:
        x = np.sort(draw.standard_normal((512, 256), dtype=np.float32), axis=1)
        yield torch.from_numpy(x).to(device), torch.from_numpy(draw.integers(0, 10, 512)).to(device)


def step(batch):
    """One step of training, with a loss that is read every time."""
    x, target = batch  # (samples, features) and (samples)
    loss = F.cross_entropy(model(x), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    print(diagnose(step, inputs=batches, device=device))
# --8<-- [end:diagnose]
