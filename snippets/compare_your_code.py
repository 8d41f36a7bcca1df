"""Compare two ways to write one computation, as you would in your own code.

Run it alone, where the package is installed:  python snippets/compare_your_code.py
"""

# --8<-- [start:compare]
import torch
from torch.nn import functional as F

from anatomy import compare

DEVICE = "cuda:0" if torch.cuda.is_available() else "cpu"
# A CPU shows the form, in seconds.
SIDE, DTYPE = (4096, torch.bfloat16) if DEVICE == "cuda:0" else (256, torch.float32)

x = torch.randn(2 * SIDE, SIDE, dtype=DTYPE, device=DEVICE)  # (tokens, features)
w = torch.randn(SIDE, SIDE, dtype=DTYPE, device=DEVICE)  # (outputs, features)
b = torch.randn(SIDE, dtype=DTYPE, device=DEVICE)  # (outputs)
results = len(x) * len(w)

found = compare(
    {"linear": lambda: F.linear(x, w, b), "by hand": lambda: x @ w.t() + b},
    # Both are checked against this before anything is timed.
    reference=lambda: F.linear(x.double(), w.double(), b.double()),
    quantity="gpu_cold",
    # A multiplication and an addition for each feature of each result.
    flops=2 * results * SIDE,
    # Each input read once, each result written once.
    bytes=(x.numel() + w.numel() + b.numel() + results) * x.element_size(),
    device=DEVICE,
)
print(found)
# --8<-- [end:compare]
