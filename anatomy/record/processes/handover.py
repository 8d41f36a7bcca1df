"""What `compare` found, handed to a parent that runs the same script in several fresh processes:
each comparison is one line of JSON in the file that the environment names as ANATOMY_REPLICATE."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from anatomy.record.provenance.canonical import plain_fields
from anatomy.table.errors import MeasurementError

VARIABLE = "ANATOMY_REPLICATE"


def hand_over(table: pd.DataFrame, noise_floor: float, warnings: Sequence[str] = ()) -> None:
    """Add a comparison, its noise floor as a share of 1, to the file that ANATOMY_REPLICATE names;
    MeasurementError where that can't be written."""
    if not (file := os.environ.get(VARIABLE)):
        return
    rows = plain_fields({"rows": table})["rows"]  # rounded as in a recording; what is missing, null
    comparison = {"noise_floor": noise_floor, "warnings": list(warnings), "rows": rows}
    try:
        with open(file, "a", encoding="utf-8") as lines:
            lines.write(json.dumps(comparison, allow_nan=False) + "\n")
    except OSError as error:
        raise MeasurementError(
            f"The comparison could not be handed over to {file}, which the environment names as "
            f"{VARIABLE}: {error.strerror}. Unset it, or make room there."
        ) from None


def handed_over(file: Path) -> list[dict[str, Any]]:
    """The comparisons in a file, in order: `rows`, `noise_floor` and `warnings` of each."""
    if not file.is_file():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
