"""The one door through which rows of a recording are read: judged, with the machine's ceilings."""

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
    """All rows of a recording, with what follows from them.

    Args:
        found: As loaded, or as just measured.
    """
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
            return Ceilings(machine["slug"], limits.stated(machine.get("gpu")))
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
        return limits.ceilings(root, slug)
    except AnatomyError:
        return None
