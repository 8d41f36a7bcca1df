"""The one door through which rows of a recording are read: judged, with the machine's ceilings."""

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anatomy import judge
from anatomy.judge import limits
from anatomy.judge.comparisons import Circumstances, Row
from anatomy.judge.limits import Ceilings
from anatomy.record import recording
from anatomy.record.provenance.canonical import DIGITS
from anatomy.table.errors import AnatomyError

if TYPE_CHECKING:
    from anatomy.record.recording import Recording


def rows_of(found: "Recording") -> list[Row]:
    """All rows of a recording, loaded or just measured, with what follows from them."""
    kept = found.data["rows"]
    columns = judge.following(kept, circumstances(found.data, found.path))
    return [
        row | {name: _rounded(value) for name, value in more.items()}
        for row, more in zip(kept, columns, strict=True)
    ]


def _rounded(value: Any) -> Any:
    """A number, or a list of them, with as many digits as a file would keep."""
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def circumstances(data: dict, path: Path | None = None) -> Circumstances:
    """What a recording says of how its rows were measured.

    Args:
        data: Its fields.
        path: Its file, in a folder of recordings that may hold the machine's ceilings.
    """
    machine = data["machine"]

    @cache  # many rows may ask
    def ceilings() -> Ceilings | None:
        if data["experiment"] == limits.EXPERIMENT:  # they can't be held against themselves
            return Ceilings(machine["slug"], limits.from_datasheet(machine.get("gpu")))
        return known_ceilings(machine["slug"], path.parents[2] if path else None)

    return Circumstances(data["experiment"], machine, data.get("method") or {}, ceilings)


def known_ceilings(slug: str, root: Path | None = None) -> Ceilings | None:
    """The ceilings of a machine: measured where they are recorded, the maker's for the rest.

    Args:
        slug: The machine.
        root: Folder of all recordings. By default that of the checkout, and outside of one
            ./recordings, where `pytorch-gpu-anatomy limits --save recordings` puts them.

    Returns:
        None where a recording of them can't be read.
    """
    if root is None:
        try:
            root = recording.default_root()
        except AnatomyError:
            root = Path("recordings")
    try:
        return ceilings(root, slug)
    except AnatomyError:
        return None


def ceilings(recordings_root: Path, machine: str) -> Ceilings:
    """Ceilings of a machine: measured where recorded, the maker's for the rest.

    Of the rows of one ceiling the best counts. A machine of several GPUs has the ceilings of one.

    Args:
        recordings_root: Folder of all recordings.
        machine: Slug of the machine.

    Raises:
        RecordingError: There is a recording of ceilings, and it can't be used.
    """
    one = _single(machine)
    folder = Path(recordings_root) / one / limits.EXPERIMENT
    recorded = [recording.load(file, recordings_root) for file in sorted(folder.glob("*.json"))]
    gpu = next((each.data["machine"]["gpu"] for each in recorded), None)
    rows = [
        (row, f"{one}/{limits.EXPERIMENT}/{each.path.name}")
        for each in recorded
        for row in each.rows
    ]
    return Ceilings(
        machine, (limits.from_datasheet(gpu) or limits.from_datasheet(one)) | limits.measured(rows)
    )


def _single(machine: str) -> str:
    """Slug of one of a machine's GPUs: `nvidia-h200` of `nvidia-h200-x4`."""
    return machine if machine.startswith("cpu-") else re.sub(r"-x\d+$", "", machine)
