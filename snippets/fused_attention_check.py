"""Ask an output whether attention was fused on the way to it, and by which backend.

Run it alone:  python snippets/fused_attention_check.py
Source: PyTorch documentation, Autograd mechanics: an output's grad_fn leads to all nodes behind it.
"""

import torch
from torch import Tensor
from torch.nn import functional as F


# --8<-- [start:check]
def fused_nodes(output: Tensor) -> list[str]:
    """Names of the nodes of fused attention behind `output`,
    each as often as it is there."""
    found, seen, waiting = [], set(), [output.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        found += [node.name()] if "ScaledDotProduct" in node.name() else []
        waiting += [following for following, _ in node.next_functions]
    return found


# --8<-- [end:check]


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    q, k, v = (torch.randn(2, 12, 128, 64, device=device).requires_grad_() for _ in range(3))
    print("fused:      ", fused_nodes(F.scaled_dot_product_attention(q, k, v)))
    print("written out:", fused_nodes((q @ k.mT / 8).softmax(-1) @ v))
