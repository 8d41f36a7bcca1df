"""The one door through which rows of a recording are read: judged, with the machine's ceilings."""

import re
from contextlib import suppress
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
    """What the fields of a recording say of how its rows were measured; the folder of recordings
    that its file, `path`, is in may hold the machine's ceilings."""
    machine = data["machine"]

    @cache  # many rows may ask
    def ceilings() -> Ceilings | None:
        if data["experiment"] == limits.EXPERIMENT:  # they can't be held against themselves
            return Ceilings(machine["slug"], limits.from_datasheet(machine.get("gpu")))
        return known_ceilings(machine["slug"], path.parents[2] if path else None)

    return Circumstances(data["experiment"], machine, data.get("method") or {}, ceilings)


def known_ceilings(slug: str, root: Path | None = None) -> Ceilings | None:
    """As `ceilings`, but None where a recording of them can't be read.

    `root` is by default the checkout's folder of recordings, and outside of a checkout
    ./recordings, where `pytorch-gpu-anatomy limits --save recordings` puts them.
    """
    if root is None:
        try:
            root = recording.default_root()
        except AnatomyError:
            root = Path("recordings")
    with suppress(AnatomyError):
        return ceilings(root, slug)
    return None


def ceilings(recordings_root: Path, machine: str) -> Ceilings:
    """Ceilings of a machine: measured where recorded, the maker's for the rest.

    Of the rows of one ceiling the best counts; those of a quick look, below `limits.LEAST_SCALE`,
    do not. A machine of several GPUs, such as `nvidia-h200-x4`, has the ceilings of one.
    RecordingError where a recording of them can't be used.
    """
    one = machine if recording.of_a_cpu(machine) else re.sub(r"-x\d+$", "", machine)
    folder = Path(recordings_root) / one / limits.EXPERIMENT
    found = map(recording.load, sorted(folder.glob("*.json")))
    recorded = [each for each in found if each.params.get("scale", 1) >= limits.LEAST_SCALE]
    gpu = next((each.data["machine"]["gpu"] for each in recorded), None)
    rows = [
        (row, f"{one}/{limits.EXPERIMENT}/{each.path.name}")
        for each in recorded
        for row in each.rows
    ]
    datasheet = limits.from_datasheet(gpu) or limits.from_datasheet(one)
    return Ceilings(machine, datasheet | limits.measured(rows))
