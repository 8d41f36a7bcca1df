"""Sets of recordings as one file: packed, and unpacked as if somebody meant harm.

A set is a `.tar.gz`, a `.zip` or a folder in which recordings lie as they do here, in
MACHINE/EXPERIMENT/KEY.json, with any folders around that. What would lead out of a folder or is no
plain file ends the whole set; what is no recording's place is passed over. What a file says is not
looked at here: whoever asks gets a folder, and reads it through `anatomy.record.loading`.
"""

import gzip
import io
import os
import re
import stat
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import BinaryIO

from anatomy.record import loading, signatures
from anatomy.record.recording import SLUG, Recording
from anatomy.table.errors import BadParameter, RecordingError

# A machine's recordings are some MiB in a hundred files: these leave room for all that there will
# be, and bound what a small file can make of itself.
MOST_FILES = 4096  # of all kinds
MOST_MIB = 64  # of a set when it is unpacked
LARGEST_MIB = 32  # of its archive
FOLDER = "recordings"  # in the archives that we make
LONGEST_NAME = 400  # characters
LONGEST_NAMING = 4096  # bytes of what a tar says of one file beside its header
_NAMING = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_NAMING += (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_KEY = r"[A-Za-z0-9_=+,-][A-Za-z0-9_.,=+-]*"
_PLACE = re.compile(rf"{SLUG.pattern}/{signatures.NAME.pattern}/{_KEY}(?<!\.failed)\.json")
_GZIP, _ZIP = b"\x1f\x8b", (b"PK\x03\x04", b"PK\x05\x06")
_PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# The end of a zip's table of contents, which Python reads as a whole however long it is.
_END, _END_BYTES, _LONG_END = b"PK\x05\x06", 22, b"PK\x06\x07"
_ENTRY_BYTES = 512  # of that table, for each file


@dataclass(frozen=True)
class Unpacked:
    """A set of recordings in a folder of its own, laid out as a folder of recordings."""

    folder: Path
    passed_over: int  # files that are in no recording's place


@contextmanager
def unpacked(source: Path) -> Iterator[Unpacked]:
    """The set in an archive or a folder, in a temporary folder. BadParameter where there is nothing
    of that name, RecordingError where it can't be unpacked or is not to be trusted."""
    if not source.exists():
        raise BadParameter(f"There is no {source.name}. Name an archive or a folder of recordings.")
    with TemporaryDirectory() as temporary:
        folder, passed_over = Path(temporary), 0
        try:
            for name, file in _limited(source):
                place = _place(name)
                if place is None:
                    passed_over += 1
                    continue
                _write(folder / place, file)
        except RecordingError as error:
            raise RecordingError(f"{source.name} is refused: {error} Nothing was read.") from None
        except Exception as error:  # whatever decoders raise at what was made to break them
            why = f"{type(error).__name__}: {error}".rstrip(".")
            raise RecordingError(f"{source.name} can't be unpacked: {why}.") from None
        if not loading.files(folder):
            raise RecordingError(
                f"{source.name} holds no recording: none of its {passed_over} files lies in "
                "MACHINE/EXPERIMENT/KEY.json. `pytorch-gpu-anatomy export --archive` makes one."
            )
        yield Unpacked(folder, passed_over)


def pack(recordings: Sequence[Recording], target: Path) -> None:
    """Write recordings into a `.tar.gz`, the same bytes for the same recordings. RecordingError
    where the disk refuses."""
    held = io.BytesIO()
    with (
        gzip.GzipFile("", "wb", fileobj=held, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archive,
    ):
        for each in recordings:
            content = each.path.read_bytes()
            entry = tarfile.TarInfo(str(PurePosixPath(FOLDER, loading.place(each.path))))
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    try:
        target.write_bytes(held.getvalue())
    except OSError as error:
        raise RecordingError(f"{target.name} could not be written: {error.strerror}.") from None


def _place(name: str) -> str | None:
    """MACHINE/EXPERIMENT/KEY.json, which a file's name ends in; None where it does not.
    RecordingError for a name that leads elsewhere."""
    parts = PurePosixPath(name).parts
    odd = name.startswith("/") or "\\" in name or "\0" in name or ".." in parts
    if odd or re.match(r"[A-Za-z]:", name) or len(name) > LONGEST_NAME:
        raise RecordingError(f"the name {name[:80]!r} leads out of it, or is none.")
    place = "/".join(parts[-3:])
    fits = _PLACE.fullmatch(place) and len(Path(place).stem) <= loading.LONGEST_KEY
    return place if fits else None


def _write(target: Path, file: BinaryIO) -> None:
    """Put one file of a set into its place, of which there is one."""
    content = file.read(loading.LARGEST_MIB * 2**20 + 1)
    if len(content) > loading.LARGEST_MIB * 2**20:
        most = f"{loading.LARGEST_MIB} MiB, the most that a recording may have"
        raise RecordingError(f"{loading.place(target)} has more than {most}.")
    if target.exists():
        raise RecordingError(f"{loading.place(target)} is in it twice.")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)


def _limited(source: Path) -> Iterator[tuple[str, BinaryIO]]:
    """Name and content of each plain file of a set, as long as they are few and small enough."""
    left = MOST_MIB * 2**20
    for count, (name, file) in enumerate(_files(source), 1):
        if count > MOST_FILES:
            raise RecordingError(f"it has more than {MOST_FILES:,} files.")
        with file:
            counted = _Counted(file, left)
            yield name, counted
            left = counted.left


class _Counted:
    """A file of which no more is given than is left of a set's size."""

    def __init__(self, file: BinaryIO, left: int) -> None:
        self.file, self.left = file, left

    def read(self, size: int) -> bytes:
        """So many bytes; RecordingError where that is too much."""
        content = self.file.read(size)
        self.left -= len(content)
        if self.left < 0:
            raise RecordingError(f"it has more than {MOST_MIB} MiB when it is unpacked.")
        return content


def _files(source: Path) -> Iterator[tuple[str, BinaryIO]]:
    if source.is_dir():
        yield from _of_folder(source)
        return
    if not source.is_file():  # a pipe would be waited for
        raise RecordingError("it is neither a plain file nor a folder.")
    with source.open("rb") as file:
        if os.fstat(file.fileno()).st_size > LARGEST_MIB * 2**20:
            raise RecordingError(f"it has more than {LARGEST_MIB} MiB.")
        begin = file.read(4)
        file.seek(0)
        if begin.startswith(_GZIP):
            yield from _of_tar(file)
        elif begin in _ZIP:
            yield from _of_zip(file)
        else:
            raise RecordingError("it is neither a .tar.gz nor a .zip.")


class _Header(tarfile.TarInfo):
    """A header of a tar, refused before what belongs to it is read and searched."""

    @classmethod
    def frombuf(cls, buf: bytes, encoding: str, errors: str) -> "_Header":
        """As tarfile makes it of a block, if it is modest."""
        entry = super().frombuf(buf, encoding, errors)
        if entry.size < 0 or (entry.type in _NAMING and entry.size > LONGEST_NAMING):
            raise RecordingError("it has a header that is no set's.")
        return entry


def _of_tar(file: BinaryIO) -> Iterator[tuple[str, BinaryIO]]:
    # As a stream: headers are bounded like all else, and no offset can lead back to where we were.
    plain = _Counted(gzip.GzipFile(fileobj=file), 2 * MOST_MIB * 2**20)
    with tarfile.open(fileobj=plain, mode="r|", tarinfo=_Header) as archive:
        for count, entry in enumerate(archive, 1):
            if count > 2 * MOST_FILES:
                raise RecordingError(f"it has more than {MOST_FILES:,} files.")
            if entry.isdir():
                continue
            if not entry.isfile() or entry.issparse():
                raise _odd(entry.name)
            yield entry.name, archive.extractfile(entry)


def _of_zip(file: BinaryIO) -> Iterator[tuple[str, BinaryIO]]:
    _require_short_table(file)
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            if entry.is_dir():
                continue
            # What made it on Unix keeps the kind of file there; others leave it 0.
            if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
                raise _odd(entry.filename)
            if entry.flag_bits & 1 or entry.compress_type not in _PLAIN:
                raise RecordingError(f"{entry.filename[:80]!r} is encrypted, or oddly compressed.")
            yield entry.filename, archive.open(entry)


def _require_short_table(file: BinaryIO) -> None:
    """Refuse a zip whose table of contents is for more files than a set may have."""
    whole = file.read()
    at = whole.rfind(_END)
    end = whole[at : at + _END_BYTES] if at >= 0 else b""
    table_bytes = int.from_bytes(end[12:16], "little")
    long = whole[at - 20 : at].startswith(_LONG_END)  # says where a longer end is
    if len(end) < _END_BYTES or long or table_bytes > _ENTRY_BYTES * MOST_FILES:
        raise RecordingError(f"it breaks off, or has more than {MOST_FILES:,} files.")


def _of_folder(folder: Path) -> Iterator[tuple[str, BinaryIO]]:
    """The files under a folder but for hidden ones; its own name may be a machine's."""
    around, seen = folder.absolute(), 0
    for at, folders, names in os.walk(folder):
        seen += len(names) + len(folders)
        if seen > 2 * MOST_FILES:
            raise RecordingError(f"it has more than {MOST_FILES:,} files. Name a folder in it.")
        for name in filter(lambda name: os.path.islink(os.path.join(at, name)), folders):
            raise _odd(name)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(name for name in names if not name.startswith(".")):
            path = Path(at, name)
            # Opened first and looked at then, so that nothing can take its place in between.
            try:
                opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            except OSError as error:
                raise _odd(name, error.strerror) from None
            with os.fdopen(opened, "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise _odd(name)
                yield "/".join((around / path.relative_to(folder)).parts[-3:]), file


def _odd(name: str, why: str = "a link, a device or the like") -> RecordingError:
    return RecordingError(f"{name[:80]!r} is no plain file that can be read: {why}.")
