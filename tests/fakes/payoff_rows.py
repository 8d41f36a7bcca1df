"""Synthetic recordings of pay-off maps: several comparisons whose outcome follows from a rule.

They are saved under an experiment that the package has, because pages know no other.
"""

from pathlib import Path
from typing import Any

from tests.fakes import synthetic

EXPERIMENT = "remedies.compiled"
WIDTHS = (256, 512, 1024, 2048, 4096)
TOKENS = (256, 1024, 4096, 16384)
# The rule: `compiled` saves half a cost that is fixed and adds 5 % to what grows with the work, so
# that it breaks even where width x tokens is EVEN.
EVEN = 2**21
FAILED = (4096, 16384)
WHY = "out of memory: the activations need 150 GiB"


def slowdown(width: int, tokens: int) -> float:
    """Time of `compiled` over the control's: a power of how far the cell is from EVEN."""
    return (width * tokens / EVEN) ** 0.2


def rows(width: int, tokens: int, seed: int, **common: Any) -> list[dict]:
    """One cell's comparison; `graphed` costs the same everywhere."""
    op = f"train C={width} T={tokens}"
    place = {"width": width, "tokens": tokens, "waits": True} | common
    if (width, tokens) == FAILED:
        failed = {"op": op, "quantity": "step_wall", "role": "variant", "note": WHY}
        return [
            failed | {"variant": "eager", "role": "control"} | place,
            failed | {"variant": "compiled"} | place,
            failed | {"variant": "graphed"} | place,
        ]
    found = synthetic.compared(
        op,
        "step_wall",
        2e-4 + width * tokens * 1e-10,
        {"compiled": slowdown(width, tokens), "graphed": 1.0},
        control="eager",
        seed=seed,
        **place,
    )
    for row in found:
        most = width * tokens * 8
        row["peak_bytes"] = most // 2 if row["variant"] == "compiled" else most
    first = {"op": f"first call {op}", "variant": "compiled", "role": "variant", "median_s": 4.5}
    first |= {"quantity": "step_wall", "samples": 1, "blocks_s": [4.5]}
    return [*found, first | place]


def table() -> list[dict]:
    """The whole map."""
    return [
        row
        for number, (width, tokens) in enumerate((w, t) for w in WIDTHS for t in TOKENS)
        for row in rows(width, tokens, number)
    ]


def recorded(root: Path, table_: list[dict] | None = None) -> Path:
    """The map as a recording."""
    synthetic.record(root, EXPERIMENT, table() if table_ is None else table_)
    return root
