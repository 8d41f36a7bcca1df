"""PyTorch's debug mode on a training loop: which of its lines it warns of."""

import runpy
import warnings
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch

from anatomy.chapters.sync_points.synchronizations import SEEN, sync_debug_mode
from anatomy.table.errors import AnatomyError

# The script that pages show and this experiment runs.
SCRIPT = Path(__file__).parents[3] / "snippets" / "waits_in_a_loop.py"
LOOPS = ("careless", "careful")


def found_in(where: torch.device) -> pd.DataFrame:
    """The lines of both loops of the script that the debug mode warns of."""
    if where.type != "cuda":
        note = f"needs a GPU that runs behind its host; this is {where.type}"
        return pd.DataFrame([{"variant": loop, "loop": loop, "note": note} for loop in LOOPS])
    if not SCRIPT.exists():
        raise AnatomyError(f"{SCRIPT.name} belongs to the checkout; clone it, and run this there.")
    script = runpy.run_path(str(SCRIPT))
    source = SCRIPT.read_text(encoding="utf-8").splitlines()
    rows = []
    for loop in LOOPS:
        model, batches = script["prepared"](str(where))

        def run(loop=loop, model=model, batches=batches) -> None:
            script[loop](model, batches, str(where))

        run()  # the first batches load and allocate, which may wait for reasons of their own
        torch.cuda.synchronize(where)
        rows += told(loop, warned(run), source, len(batches))
    return pd.DataFrame(rows)


def warned(call: Callable[[], object]) -> list[warnings.WarningMessage]:
    """The debug mode's warnings of waits during one call, in order."""
    with warnings.catch_warnings(record=True) as caught, sync_debug_mode("warn"):
        warnings.simplefilter("always")
        call()
    return [each for each in caught if SEEN in str(each.message)]


def told(
    loop: str, found: list[warnings.WarningMessage], source: list[str], batches: int
) -> list[dict]:
    """A row for each line that was warned of, in the order of the file."""
    named = {"loop": loop, "batches": batches}
    counted: dict[int, list[str]] = {}
    elsewhere = 0
    for each in found:
        if Path(each.filename).name == SCRIPT.name:
            counted.setdefault(each.lineno, []).append(str(each.message))
        else:
            elsewhere += 1  # inside PyTorch, which a reader of the loop can't change
    rows = [
        named
        | {"variant": f"{loop}, line {line}", "line": line, "code": source[line - 1].strip()}
        | {"warned": len(messages), "message": messages[0].split(" (")[0], "note": None}
        for line, messages in sorted(counted.items())
    ]
    if elsewhere:
        rows.append(
            named | {"variant": f"{loop}, in PyTorch", "code": "in PyTorch", "warned": elsewhere}
        )
    return rows or [named | {"variant": loop, "code": "no line was warned of", "warned": 0}]
