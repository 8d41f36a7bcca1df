"""Ask what holds one training step back, as you would of your own.

Run it alone, where the package is installed:  python snippets/diagnose_your_step.py
Or leave it to the command:  pytorch-gpu-anatomy diagnose snippets/diagnose_your_step.py
"""

# --8<-- [start:diagnose]
import numpy as np
import torch
from torch import nn

from anatomy import diagnose

device = "cuda:0" if torch.cuda.is_available() else "cpu"
model = nn.Linear(256, 256).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)


def batches():  # endless, by the CPU
    draw = np.random.default_rng(0)
    while True:
        x = draw.random((512, 256), dtype=np.float32)
        yield torch.from_numpy(np.sort(x, axis=1)).to(device)


def step(batch):  # reads its loss each time
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


# --8<-- [end:diagnose]


if __name__ == "__main__":
    print(diagnose(step, inputs=batches, device=device))
