"""Print the dispatch keys of a few calls, and see every operator of a model pass by.

python snippets/days/day_09/keys.py
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Seen(TorchDispatchMode):
    """Counts the operators that come by below autograd, and passes them on."""

    def __init__(self) -> None:
        super().__init__()
        self.operators: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.operators.append(str(func))
        return func(*args, **(kwargs or {}))


def main() -> None:
    """Keys of tensors, then the operators of one layer."""
    where = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.ones(4, 8, device=where)
    with torch.inference_mode():
        made_there = x + 1
    tensors = {"a tensor": x, "one of inference_mode": made_there, "sparse": x.to_sparse()}
    for name, tensor in tensors.items():
        print(f"{name}: {torch._C._dispatch_keys(tensor)}")
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, device=where)
    with Seen() as seen:
        layer(x[None]).sum().backward()
    print(f"one layer, forward and backward: {len(seen.operators)} calls of operators")


if __name__ == "__main__":
    main()
