"""Sets of recordings that tests pack, spoil and take in."""

import io
import tarfile
import zipfile
from pathlib import Path

from anatomy.record import recording, signatures
from anatomy.record.provenance.codehash import SCHEME, code_hash
from tests.fakes.toy_recording import made

NAME, PLACE = "contiguity.bench", "toy-gpu/contiguity.bench/default.json"


def save(root: Path, *, slug: str = "toy-gpu", day: int = 21, current: bool = True, **more) -> Path:
    """Save a small recording of `contiguity.bench`, made by the code that is there or by other."""
    params = signatures.signature(NAME).bind()
    hashed = code_hash(NAME, params).hash if current else "ab" * 32
    code = {"hash": hashed, "scheme": SCHEME, "files": [], "commit": None, "dirty": None}
    started = f"2026-11-{day}T10:00:00+00:00"
    told = made(experiment=NAME, params=params, code=code, started_at=started, **more)
    told["machine"]["slug"] = slug
    return recording.save(told, root)


def tar(target: Path, *entries: tuple[str, bytes] | tarfile.TarInfo) -> Path:
    """A .tar.gz of these files, or of headers alone."""
    with tarfile.open(target, "w:gz") as archive:
        for each in entries:
            if isinstance(each, tarfile.TarInfo):
                archive.addfile(each)
                continue
            header = tarfile.TarInfo(each[0])
            header.size = len(each[1])
            archive.addfile(header, io.BytesIO(each[1]))
    return target


def zipped(target: Path, *entries: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    """A .zip of these files."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return target
