"""What of a set of recordings from elsewhere is taken in: looked at one by one, written together.

A file is a recording if `recording.load` reads it where it would lie, it tells nobody's names, its
rows can be judged, and this version knows its experiment and parameters. What one that is here
gives way to is the newer one of the code that is here. All are put beside their places first, and
change places together: who interrupts that finds the folder as it was.
"""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from anatomy.record import loading, occasions, recording, signatures
from anatomy.record.provenance import schema
from anatomy.record.provenance.freshness import freshness
from anatomy.record.recording import Recording
from anatomy.table.errors import BadParameter, RecordingError, UnknownName

ADDED, REPLACED, KEPT, REFUSED = "added", "replaced", "kept", "refused"
WORDS = (ADDED, REPLACED, KEPT, REFUSED)


@dataclass(frozen=True)
class Incoming:
    """One file of a set, and what becomes of the recording in its place here."""

    file: Path  # in the unpacked set
    word: str  # one of `WORDS`
    why: str
    present: Recording | Path | None = None  # the one here, or its file if it can't be used

    @property
    def place(self) -> str:
        """MACHINE/EXPERIMENT/KEY.json."""
        return loading.place(self.file)


def look(folder: Path, root: Path) -> list[Incoming]:
    """What would become of every recording of the set in `folder`, in order; `root` is where the
    recordings are that it would be added to. Nothing is written."""
    with signatures.unchanging():
        return [_looked_at(file, root) for file in loading.files(folder)]


def take(found: Sequence[Incoming], root: Path) -> list[Path]:
    """Write what is added or replaces another, all or nothing, and return the files. RecordingError
    where the disk refuses; the folder then is as it was."""
    wanted = [each for each in found if each.word in (ADDED, REPLACED)]
    recording.make_ready(root)
    try:
        with TemporaryDirectory(dir=root, prefix=".import-") as beside:
            staged = [put(each, root, Path(beside) / "new") for each in wanted]
            _change_places(wanted, staged, root, Path(beside) / "old")
    except OSError as error:
        raise RecordingError(
            f"The set could not be written: {error.strerror or error}. Nothing was changed. Make "
            "room or give write access there, or choose another folder with --save DIR."
        ) from None
    for slug in {Path(each.place).parts[0] for each in wanted}:
        occasions.commit(root, slug, recording.all_recordings(root, slug, broken=[]))
    return [root / each.place for each in wanted]


def put(incoming: Incoming, root: Path, folder: Path) -> Path:
    """Write into another folder what a recording's place in `root` is to hold, and return the file.

    The one place that decides what becomes of two recordings of one call: where both are of the
    same work the newer one is one more occasion, else it replaces the other. A recording that
    stands alone keeps its bytes, and with them what it was hashed over."""
    new = recording.load(incoming.file).data
    defaults = signatures.signature(new["experiment"]).defaults
    here = occasions.adding({**new, "occasions": []}, root, defaults)["occasions"]
    if here:
        # Either may know the other's: a set that was exported from here has been measured since.
        told = {each["started_at"]: each for each in (*new.get("occasions", ()), *here)}
        every = [told[began] for began in sorted(told) if began != new["started_at"]]
        joined = {**new, "occasions": every[-schema.MOST :]}
        return recording.save(joined, folder, defaults=defaults)
    target = folder / incoming.place
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(incoming.file, target)
    return target


def _looked_at(file: Path, root: Path) -> Incoming:
    try:
        new = recording.load(file)
        schema.scrub(new.data)
        _ = new.rows  # which judges them
        call = signatures.signature(new.experiment).bind(**new.params)
    except (UnknownName, BadParameter) as error:
        other = "This version can't show it"
        return Incoming(file, REFUSED, f"{other}: {error}")
    except (RecordingError, ValueError) as error:
        why = str(error).partition(" Make it anew: ")[0]
        return Incoming(file, REFUSED, why.removeprefix(loading.place(file)).strip())
    try:
        present = recording.find(root, new.machine, new.experiment, **call)
    except RecordingError:
        return Incoming(file, REPLACED, "The one here can't be used.", root / loading.place(file))
    return Incoming(file, *_fate(new, present), present)


def _fate(new: Recording, present: Recording | None) -> tuple[str, str]:
    """What becomes of a recording that can be used, and why."""
    fresh = freshness(new)
    old_code = "" if fresh.current else f" {fresh.reason}"
    if present is None:
        return ADDED, f"It was not recorded here.{old_code}"
    if new.data["content_sha"] == present.data["content_sha"]:
        return KEPT, "It is here already."
    if freshness(present).current != fresh.current:
        if fresh.current:
            return REPLACED, "The one here was made by other code."
        return KEPT, f"The one here was made by the present code.{old_code}"
    began, then = (datetime.fromisoformat(each.data["started_at"]) for each in (new, present))
    day = then.date().isoformat()
    if began <= then:
        return KEPT, f"The one here is newer, of {day}."
    return REPLACED, f"The one here is older, of {day}.{old_code}"


def _change_places(
    wanted: Sequence[Incoming], staged: Sequence[Path], root: Path, aside: Path
) -> None:
    """Move staged files into their places, and what was there aside; back again if one fails."""
    done: list[tuple[Path, Path]] = []  # where a file is now, and where it was
    try:
        for number, (each, file) in enumerate(zip(wanted, staged, strict=True)):
            target = root / each.place
            # One that is named by the defaults of another day lies beside the new one.
            was = getattr(each.present, "path", each.present)
            for old in dict.fromkeys(path for path in (was, target) if path):
                if os.path.lexists(old):
                    kept = aside / f"{number}-{old.name}"
                    kept.parent.mkdir(exist_ok=True)
                    os.replace(old, kept)
                    done.append((kept, old))
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(file, target)
            done.append((target, file))
    except BaseException:  # Ctrl-C, too
        for now, before in reversed(done):
            os.replace(now, before)
        raise
