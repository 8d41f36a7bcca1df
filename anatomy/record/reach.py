"""The file that keeps how far a later occasion's figure may lie beyond those of a machine, by who
paces it: RECORDINGS/MACHINE/occasions.json. What it holds says `anatomy.judge.occasions`; it is
made of all recordings of the machine by `anatomy.record.occasions`."""

import json
from collections.abc import Mapping
from math import isfinite
from pathlib import Path

from anatomy.judge.pace import EITHER, GPU, HOST, MIXED
from anatomy.table.errors import RecordingError

FILE = "occasions.json"
FIGURES = ("median_s", "ratio")
LARGEST_BYTES = 10_000
FARTHEST = 1e6  # a factor; no host is so slow


def read(root: Path, machine: str) -> dict[str, dict[str, float]] | None:
    """Factor by class and figure; None where the machine has no such file. RecordingError where it
    can't be used, with the command that makes it anew."""
    file = Path(root) / machine / FILE
    if not file.is_file() or file.is_symlink():
        return None
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            raise ValueError("it is too large")
        return _checked(json.loads(content)["reach"])
    except (OSError, RecursionError, TypeError, ValueError, KeyError, AttributeError) as error:
        raise RecordingError(
            f"{machine}/{FILE} can't be used ({error}). Make it anew: pytorch-gpu-anatomy "
            f"occasions --machine {machine} --write"
        ) from None


def _checked(reach: Mapping) -> dict[str, dict[str, float]]:
    for pace, factors in reach.items():
        if pace not in (GPU, HOST, EITHER, MIXED):
            raise ValueError(f"{pace!r} paces nothing")
        for figure, factor in factors.items():
            number = isinstance(factor, int | float) and isfinite(factor)
            if figure not in FIGURES or not number or not 1 <= factor <= FARTHEST:
                raise ValueError(f"{figure} may not have the factor {factor!r}")
    return {pace: dict(factors) for pace, factors in reach.items()}
