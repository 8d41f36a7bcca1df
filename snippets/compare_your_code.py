"""Compare two ways to write one computation, as you would in your own code.

Run it alone, where the package is installed:  python snippets/compare_your_code.py
"""

# --8<-- [start:compare]
import torch
from torch.nn import functional as F

from anatomy import compare

on_gpu = torch.cuda.is_available()
device = "cuda:0" if on_gpu else "cpu"
side = 4096 if on_gpu else 256  # on a CPU: seconds
dtype = torch.bfloat16 if on_gpu else torch.float32
like = {"dtype": dtype, "device": device}

tokens, features, outputs = 2 * side, side, side
x = torch.randn(tokens, features, **like)
w = torch.randn(outputs, features, **like)
b = torch.randn(outputs, **like)
results = tokens * outputs

found = compare(
    {"linear": lambda: F.linear(x, w, b), "by hand": lambda: x @ w.t() + b},
    # Both are checked against this first.
    reference=lambda: F.linear(x.double(), w.double(), b.double()),
    quantity="gpu_cold",
    # Two operations a feature of each result.
    flops=2 * results * features,
    # Each input and result once.
    bytes=(x.numel() + w.numel() + b.numel() + results) * x.element_size(),
    device=device,
)
print(found)
# --8<-- [end:compare]
