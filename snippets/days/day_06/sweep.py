"""Day 6: find your own ridge. More and more multiply-adds on each element of one large tensor, in
one kernel and in many.

    python snippets/days/day_06/sweep.py            # a GPU, or else the CPU
    python snippets/days/day_06/sweep.py eager      # the same without a compiler

Compiling takes some seconds for each line; on a CPU it needs a C++ compiler.
"""

import sys
import time
from collections.abc import Callable

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ELEMENTS = 2**27 if DEVICE == "cuda" else 2**24  # far more than any cache holds
COUNTS = (1, 4, 16, 32, 64, 128)


def chain(fmas: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """So many multiply-adds on each element, as straight-line code."""

    def run(x: torch.Tensor) -> torch.Tensor:
        for _ in range(fmas):
            x = x * -0.9990234375 + 0.5
        return x

    return run


def seconds(run: Callable, x: torch.Tensor, times: int = 5) -> float:
    """The shortest of some calls; the first ones compile."""
    found = []
    for _ in range(times + 2):
        wait = torch.cuda.synchronize if x.is_cuda else lambda: None
        wait()
        begun = time.perf_counter()
        run(x)
        wait()
        found.append(time.perf_counter() - begun)
    return min(found[2:])


def main(eager: bool, elements: int = ELEMENTS, counts: tuple[int, ...] = COUNTS) -> None:
    """One line for each number of multiply-adds."""
    x = torch.randn(elements, device=DEVICE)
    print(f"{elements:,} elements on {DEVICE}, {'eager' if eager else 'compiled'}")
    print(" FMAs   FLOP/B        time   GFLOP/s      GB/s")
    for fmas in counts:
        run = chain(fmas) if eager else torch.compile(chain(fmas))
        took = seconds(run, x)
        rate, moved = 2 * fmas * elements / took / 1e9, 8 * elements / took / 1e9
        print(f"{fmas:5d} {fmas / 4:8.2f} {1e3 * took:8.3f} ms {rate:9,.0f} {moved:9,.1f}")


if __name__ == "__main__":
    with torch.no_grad():
        main("eager" in sys.argv[1:])
