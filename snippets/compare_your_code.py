"""Compare two ways to write one computation, as you would in your own code.

Run it alone, where the package is installed:  python snippets/compare_your_code.py
"""

import torch
from torch.nn import functional as F

from anatomy import compare

DEVICE = "cuda:0" if torch.cuda.is_available() else "cpu"
SIDE = 4096 if DEVICE == "cuda:0" else 256  # a CPU shows the form, in seconds

# --8<-- [start:compare]
x = torch.randn(SIDE, SIDE, device=DEVICE)  # (rows, columns)


def by_hand() -> torch.Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5)


found = compare(
    {"layer_norm": lambda: F.layer_norm(x, (SIDE,)), "by hand": by_hand},
    reference=lambda: F.layer_norm(x.double(), (SIDE,)),  # checked before anything is timed
    quantity="gpu_cold",
    bytes=2 * x.numel() * x.element_size(),  # read x once, write the result once
    device=DEVICE,
)
print(found)
# --8<-- [end:compare]
