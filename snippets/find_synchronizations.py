"""Find the lines that make the host wait for the GPU, in two independent ways.

Run it alone, on a machine with a GPU:  python snippets/find_synchronizations.py
"""

import warnings
from collections.abc import Callable
from pathlib import Path

import torch


# --8<-- [start:lines]
def waiting_lines(call: Callable[[], object]) -> list[str]:
    """`file:line` of each wait that the debug mode sees in `call`."""
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("warn")  # "error" raises instead
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
    finally:
        torch.cuda.set_sync_debug_mode(before)  # it is the process's
    told = "synchronizing CUDA operation"
    seen = [each for each in caught if told in str(each.message)]
    return [f"{Path(w.filename).name}:{w.lineno}" for w in seen]


# --8<-- [end:lines]


# --8<-- [start:waits]
def waits(call: Callable[[], object]) -> bool:
    """Whether `call` returns only when earlier GPU work is done."""
    call()  # the first call loads and allocates, which may wait
    torch.cuda.synchronize()
    torch.cuda._sleep(200_000_000)  # clock cycles of doing nothing
    over = torch.cuda.Event()
    over.record()
    call()
    waited = over.query()  # is the sleep over already?
    torch.cuda.synchronize()
    return waited


# --8<-- [end:waits]


if __name__ == "__main__":
    if not torch.cuda.is_available():
        raise SystemExit("This asks a GPU, and there is none.")
    t = torch.randn(4096, device="cuda")
    for name, line in {
        "t.sum()": lambda: t.sum(),
        "t.sum().item()": lambda: t.sum().item(),
        "t[t > 0]": lambda: t[t > 0],
    }.items():
        print(f"{name:16} waits: {waits(line)}; the debug mode sees: {waiting_lines(line)}")
