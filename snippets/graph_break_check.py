"""Ask a function where torch.compile breaks its graph, and why.

Run it alone:  python snippets/graph_break_check.py
Needs no GPU and compiles no kernel: the function is traced, and run once.
Source: PyTorch's own documentation of torch._dynamo.explain, docs.pytorch.org.
"""

import logging
from collections.abc import Callable

import torch
import torch._dynamo
from torch import Tensor

LOG = logging.getLogger(__name__)
DOUBLE = True


# --8<-- [start:check]
def graph_breaks(function: Callable, *inputs: Tensor) -> list[str]:
    """Why the graph of `function` breaks: one line for each break."""
    torch.compiler.reset()  # else graphs of an earlier call are used
    found = torch._dynamo.explain(function)(*inputs)
    reasons = [str(each.reason).strip() for each in found.break_reasons]
    return [reason.splitlines()[0] for reason in reasons]


# --8<-- [end:check]


# --8<-- [start:cases]
def if_on_a_tensor(x: Tensor) -> Tensor:
    return x + 1 if x.sum() > 0 else x - 1


def where_instead_of_if(x: Tensor) -> Tensor:
    return torch.where(x.sum() > 0, x + 1, x - 1)


def item(x: Tensor) -> Tensor:
    return x * x.sum().item()


def print_of_a_text(x: Tensor) -> Tensor:
    y = x.sin()
    print("half way")
    return y.cos()


# --8<-- [end:cases]


def print_of_a_tensor(x: Tensor) -> Tensor:
    y = x.sin()
    print(y.sum())
    return y.cos()


def mask_of_unknown_size(x: Tensor) -> Tensor:
    return x[x > 0].sin()


def logging_call(x: Tensor) -> Tensor:
    y = x.sin()
    LOG.info("half way")
    return y.cos()


def asked_for(x: Tensor) -> Tensor:
    y = x.sin()
    torch._dynamo.graph_break()
    return y.cos()


def assert_on_a_tensor(x: Tensor) -> Tensor:
    assert x.isfinite().all()
    return x.sin()


def if_on_a_shape(x: Tensor) -> Tensor:
    return x.sin() if x.shape[0] > 8 else x.cos()


def if_on_a_flag(x: Tensor) -> Tensor:
    return x * 2 if DOUBLE else x


def loop_of_known_length(x: Tensor) -> Tensor:
    for _ in range(4):
        x = x.sin()
    return x


CASES = {
    "if on a tensor": if_on_a_tensor,
    "print of a text": print_of_a_text,
    "print of a tensor": print_of_a_tensor,
    ".item()": item,
    "mask of unknown size": mask_of_unknown_size,
    "logging call": logging_call,
    "graph_break()": asked_for,
    "torch.where instead of if": where_instead_of_if,
    "assert on a tensor": assert_on_a_tensor,
    "if on a shape": if_on_a_shape,
    "if on a flag": if_on_a_flag,
    "loop of known length": loop_of_known_length,
}


if __name__ == "__main__":
    x = torch.randn(64)
    for name, case in CASES.items():
        reasons = graph_breaks(case, x)
        print(f"{name:26} {'; '.join(reasons) or 'one graph'}")
