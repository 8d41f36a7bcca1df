"""Recordings measured once more: the same work on another card, everything slower by a factor."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from anatomy.record import occasions, recording, signatures

Factor = Callable[[Mapping[str, Any]], float]  # of a row
KEPT = ("content_sha", "columns", "occasions")


def again(file: Path, factor: Factor, *, day: int = 22, **changes: Any) -> Path:
    """Save what another occasion would have measured in the place of a recording, as the recorder
    does; `changes` are fields other than the recording's."""
    before = recording.load(file).data
    new = {name: value for name, value in before.items() if name not in KEPT} | changes
    new["started_at"] = f"2026-11-{day}T10:00:00+00:00"
    new["rows"] = [_slower(row, factor(row)) for row in new["rows"]]
    defaults, root = signatures.signature(new["experiment"]).defaults, file.parents[2]
    return recording.save(occasions.adding(new, root, defaults), root, defaults=defaults)


def _slower(row: Mapping[str, Any], factor: float) -> dict[str, Any]:
    if not row.get("blocks_s"):
        return dict(row)
    return dict(row) | {"blocks_s": [factor * block for block in row["blocks_s"]]}
