"""Day 12: eight small functions and six ways to run them, each tried on two inputs.

    python snippets/days/day_12/ways.py

A way gets the function and the first input; what it made of them then gets both. It is right where
it returns what the function returns, and prints what the function prints. Needs no GPU.
"""

import contextlib
import io
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

FACTOR = {"now": 2.0}


# --8<-- [start:branch]
def if_on_a_tensor(x: Tensor):
    if x.sum() > 0:
        return x * 2
    return x - 1


# --8<-- [end:branch]


def while_on_a_tensor(x: Tensor):
    while x.abs().max() > 1:
        x = x / 2
    return x


def if_on_a_shape(x: Tensor):
    if x.shape[0] > 8:
        return x.sin()
    return x.cos()


def item(x: Tensor):
    return x * x.sum().item()


def global_that_changes(x: Tensor):
    return x * FACTOR["now"]


def prints(x: Tensor):
    y = x.sin()
    print("half way")
    return y.cos()


def numpy_in_between(x: Tensor):
    return torch.from_numpy(np.sort(x.cpu().numpy())).to(x.device)


def list_of_functions(x: Tensor):
    for function in (torch.sin, torch.cos):
        x = function(x)
    return x


FUNCTIONS: dict[str, Callable] = {
    "if on a tensor": if_on_a_tensor,
    "while on a tensor": while_on_a_tensor,
    "if on a shape": if_on_a_shape,
    ".item()": item,
    "global that changes": global_that_changes,
    "print": prints,
    "NumPy": numpy_in_between,
    "list of functions": list_of_functions,
}


class Module(nn.Module):
    """A function as a module, which is what torch.export takes."""

    def __init__(self, function: Callable):
        super().__init__()
        self.function = function

    def forward(self, x: Tensor):
        return self.function(x)


# --8<-- [start:ways]
WAYS: dict[str, Callable] = {
    "eager": lambda function, x: function,
    "jit.trace": lambda function, x: torch.jit.trace(function, (x,)),
    "jit.script": lambda function, x: torch.jit.script(function),
    "fx.symbolic_trace": lambda function, x: torch.fx.symbolic_trace(function),
    "export": lambda function, x: torch.export.export(Module(function), (x,)).module(),
    "compile": lambda function, x: torch.compile(function, backend="eager"),
}
# --8<-- [end:ways]


class Tried(NamedTuple):
    """What became of a function: `outcome` is `right`, `graph break` (right, in pieces), `left to
    Python` (right, and no graph of it runs), `wrong answer`, `print lost` or `error`; an `error`
    came at `capture` or at a `call`."""

    outcome: str
    failed_at: str | None = None
    error: BaseException | None = None
    breaks: int | None = None  # of torch.compile
    deprecated: bool = False  # whether the way warned that it is


def inputs(name: str, device: str | torch.device) -> tuple[Tensor, Tensor]:
    """Two inputs that should go different ways: their sums differ in sign, or their lengths."""
    first = torch.linspace(-1, 2, 64, device=device)
    return first, (first[:4] if name == "if on a shape" else -3 * first)


def tried(name: str, way: str, device: str | torch.device = "cpu") -> Tried:
    """Capture a function by a way with its first input, and call what came out with both."""
    function, given, ran, whole = FUNCTIONS[name], inputs(name, device), None, True
    FACTOR["now"] = 2.0
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                if way == "compile":
                    ran, whole = _pieces(function, given[0])
                captured = WAYS[way](function, given[0].clone())
        except Exception as error:
            return Tried("error", "capture", error, deprecated=_deprecated(said))
        outcome, stage, why = "right", None, None
        if not whole:
            outcome = "graph break" if ran else "left to Python"
        breaks = None if ran is None else max(ran - 1, int(ran and not whole))
        for FACTOR["now"], x in zip((2.0, 3.0), given, strict=True):
            wanted, printed = _heard(function, x)
            try:
                found, told = _heard(captured, x)
            except Exception as error:
                outcome, stage, why = "error", "call", error
                break
            if found.shape != wanted.shape or not torch.allclose(found, wanted):
                outcome = "wrong answer"
            elif told != printed and outcome != "wrong answer":
                outcome = "print lost"
    return Tried(outcome, stage, why, breaks, _deprecated(said))


def _pieces(function: Callable, x: Tensor) -> tuple[int, bool]:
    """How many graphs run in a call of the compiled function, and whether one holds all of it."""
    ran = 0

    def counted(graph: Callable, inputs: list) -> Callable:
        def run(*given: Tensor):
            nonlocal ran
            ran += 1
            return graph(*given)

        return run

    torch.compiler.reset()  # else graphs of another function's turn count
    torch.compile(function, backend=counted)(x.clone())
    torch.compiler.reset()
    try:  # Python may go on where the only graph ends
        torch.compile(function, backend="eager", fullgraph=True)(x.clone())
    except Exception:  # of many kinds: whatever it could not follow
        return ran, False
    finally:
        torch.compiler.reset()
    return ran, ran == 1


def _heard(call: Callable, x: Tensor) -> tuple[Tensor, str]:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        return call(x.clone()), printed.getvalue()


def _deprecated(said: list) -> bool:
    return any("deprecated" in str(each.message) for each in said)


if __name__ == "__main__":
    for name in FUNCTIONS:
        print(name)
        for way in WAYS:
            found = tried(name, way)
            place = f" at {found.failed_at}" if found.failed_at else ""
            print(f"    {way:18} {found.outcome}{place}")
