"""Made-up recordings of looking back: an array that is indexed by a variable lies in memory."""

from pathlib import Path
from typing import Any

from anatomy.chapters.reflection.registers import CONSTANT, VARIABLE
from tests.fakes import synthetic

SLOWER = 6.0


@synthetic.makes("reflection.registers")
def registers(root: Path, slower: float = SLOWER, **params: Any) -> Path:
    """A recording of `reflection.registers`."""
    op = "32 numbers a thread"
    rows = synthetic.compared(op, "gpu_warm", 2e-4, {VARIABLE: slower}, control=CONSTANT)
    for row in rows:
        held = row["variant"] == VARIABLE
        row |= {"thread_registers": 24 if held else 48, "local_bytes": 128 * held}
    return synthetic.record(root, "reflection.registers", rows, **params)
