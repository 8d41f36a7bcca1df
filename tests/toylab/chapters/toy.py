"""Toy experiments. They return figures they were told, and misbehave on request."""

import atexit
import os
import signal
import subprocess
import sys
import time
from typing import Annotated, Literal

import pandas as pd

from anatomy.machine import host
from anatomy.record.bounds import Between
from anatomy.record.declare import experiment
from anatomy.table.errors import BadParameter

TILES = (1.0, 1.02, 0.98, 1.01, 0.99, 1.0)  # what blocks differ by; their median is 1


def told(variant: str, median_s: float, control_s: float, **more) -> dict:
    """A row in the words of `compare`, with figures that were told and not measured."""
    ratio = median_s / control_s
    return {
        "op": "matmul",
        "variant": variant,
        "role": "control" if variant == "contiguous" else "variant",
        "quantity": "gpu_warm",
        "median_s": median_s,
        "low_s": 0.98 * median_s,
        "high_s": 1.02 * median_s,
        "samples": 60,
        "blocks_s": [tile * median_s for tile in TILES],
        "ratio": None if variant == "contiguous" else ratio,
        "ratio_low": None if variant == "contiguous" else 0.99 * ratio,
        "ratio_high": None if variant == "contiguous" else 1.01 * ratio,
        "noise_floor": 0.004,
        "verdict": "control" if variant == "contiguous" else "slower",
        "flops": 2 * 4096**3,
        "limit": "matmul fp16",
    } | more


@experiment("toy.fine", page="benchmarks/toy.md", command="c01 toy-bench", timeout_s=60)
def fine(
    device: str = "cpu",
    dtype: Literal["fp16", "fp32"] = "fp16",
    size: Annotated[int, Between(1, 100_000)] = 4,
    slowdown: float = 2.0,
    quick: bool = True,
) -> pd.DataFrame:
    """Return three rows that were told, not measured.

    Args:
        device: Where it would be measured.
        dtype: Number format of the toy.
        size: Edge of the toy, in elements.
        slowdown: Time of the sliced variant over that of the control.
        quick: Not slow.
    """
    layout = {"shape": [size, size], "strides": [size, 1], "storage_offset": 0}
    rows = [
        told("contiguous", 1e-3, 1e-3, is_contiguous=True, offset_bytes=0, **layout),
        told("sliced", slowdown * 1e-3, 1e-3, is_contiguous=False, offset_bytes=2, **layout),
        told("again", 1e-3, 1e-3, role="again", verdict="again", is_contiguous=True, **layout),
    ]
    rows[2]["variant"] = "contiguous (again)"
    rows.append({"op": "matmul", "variant": "fp8", "quantity": "gpu_warm", "note": "No FP8 here."})
    return pd.DataFrame(rows)


@experiment("toy.prints")
def prints(device: str = "cpu", lines: int = 3) -> pd.DataFrame:
    """Print a lot, from this process and from a child.

    Args:
        device: Where.
        lines: How many lines.
    """
    print("noise on stdout\n" * lines)
    subprocess.run([sys.executable, "-c", "print('noise of a child')"], check=True)
    os.write(2, b"noise on stderr\n")
    return fine()


@experiment("toy.lingers")
def lingers(device: str = "cpu") -> pd.DataFrame:
    """Leave something to do for the end of the process that takes long.

    Args:
        device: Where.
    """
    atexit.register(time.sleep, 600)
    return fine()


@experiment("toy.crashes")
def crashes(device: str = "cpu") -> pd.DataFrame:
    """Die of a segmentation fault, after saying something.

    Args:
        device: Where.
    """
    print("last words", flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)
    return fine()


@experiment("toy.is_killed")
def is_killed(device: str = "cpu") -> pd.DataFrame:
    """Be killed from outside, as the kernel does when memory runs out.

    Args:
        device: Where.
    """
    os.kill(os.getpid(), signal.SIGKILL)
    return fine()


@experiment("toy.hangs", timeout_s=2)
def hangs(device: str = "cpu", pids: str = "") -> pd.DataFrame:
    """Start a child and never return.

    Args:
        device: Where.
        pids: File to write this process's number and the child's into.
    """
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with open(pids, "w") as file:
        file.write(f"{os.getpid()} {child.pid}")
    time.sleep(600)
    return fine()


@experiment("toy.is_greedy")
def is_greedy(device: str = "cpu") -> pd.DataFrame:
    """Ask the allocator for more than there is.

    Args:
        device: Where.
    """
    import torch

    torch.empty(1 << 55)
    return fine()


@experiment("toy.is_careful")
def is_careful(device: str = "cpu") -> pd.DataFrame:
    """Ask whether a petabyte is free, before allocating it.

    Args:
        device: Where.
    """
    host.require_bytes(device, 1 << 50, "toy.is_careful")
    return fine()


@experiment("toy.has_a_bug")
def has_a_bug(device: str = "cpu") -> pd.DataFrame:
    """Raise what nobody foresaw.

    Args:
        device: Where.
    """
    return pd.DataFrame([{"median_s": 1 / 0}])


@experiment("toy.returns_a_list")
def returns_a_list(device: str = "cpu") -> pd.DataFrame:
    """Return something that is no table.

    Args:
        device: Where.
    """
    return [1, 2, 3]


@experiment("toy.thrice", processes=3, timeout_s=2)
def thrice(
    device: str = "cpu",
    log: str = "",
    slowdown: float = 1.012,
    fails_in: int = 0,
    hangs_in: int = 0,
    loses_a_row_in: int = 0,
) -> pd.DataFrame:
    """Return a slowdown that differs a little from process to process.

    Args:
        device: Where it would be measured.
        log: File that each process leaves its number in, a line each.
        slowdown: Time of the sliced variant over that of the control, in the second process.
        fails_in: Number of the process that fails.
        hangs_in: Number of the process that never returns.
        loses_a_row_in: Number of the process that returns a row less.
    """
    with open(log, "a+") as file:
        file.write(f"{os.getpid()}\n")
        file.seek(0)
        number = len(file.readlines())
    if number == fails_in:
        print("last words", flush=True)
        raise BadParameter("It did not feel like it.")
    if number == hangs_in:
        time.sleep(600)
    ratio = slowdown + 0.001 * (number - 2)
    width = {"ratio_low": ratio - 0.001, "ratio_high": ratio + 0.001, "verdict": "undecided"}
    rows = [told("contiguous", 1e-3, 1e-3), told("sliced", ratio * 1e-3, 1e-3, **width)]
    return pd.DataFrame(rows[: -1 if number == loses_a_row_in else None])
