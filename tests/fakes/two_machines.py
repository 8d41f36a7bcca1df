"""The toy machine and a second one, on which the sliced view costs nothing and all takes longer."""

from pathlib import Path
from shutil import copytree

from anatomy.record import recording
from tests.fakes import synthetic

OTHER = "other-gpu"


def made(root: Path, slower: float = 1.5) -> Path:
    """Write both machines' recordings of the layout's and the limits' experiments into a folder."""
    copytree(synthetic.shared(), root, dirs_exist_ok=True)
    for experiment in ("contiguity.bench", "limits.ceilings", "limits.floors"):
        for found in recording.all_recordings(root, synthetic.MACHINE):
            if found.experiment == experiment:
                recording.save(_second(found, slower), root)
    return root


def _second(found: recording.Recording, slower: float) -> dict:
    machine = found.data["machine"] | {"slug": OTHER, "gpu": "Other GPU", "driver": "600.1"}
    rows = []
    for row in found.data["rows"]:
        factor = slower
        if row.get("variant") == "sliced_offset_view" and row.get("op") == "matmul":
            factor /= synthetic.SLOWDOWN["sliced_offset_view"]["matmul"]
        blocks = [block * factor for block in row.get("blocks_s") or ()]
        rows.append(row | ({"blocks_s": blocks} if blocks else {}))
    return found.data | {"machine": machine, "rows": rows}
