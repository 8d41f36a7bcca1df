"""The one door through which a recording comes in: all that its file must be is asked here. It is a
plain file inside its folder of recordings, within the limits below, whole and unedited, of this
schema, and what its place says: RECORDINGS/MACHINE/EXPERIMENT/KEY.json."""

import json
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from glob import escape
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from anatomy.record import signatures
from anatomy.record.provenance import schema
from anatomy.record.provenance.canonical import content_sha, expanded, render, restored
from anatomy.table.errors import RecordingError

LARGEST_MIB = 16  # the largest so far has 0.2
FAILED = ".failed"  # ends the name of a note that there is no recording; see `failures`
DEEPEST = 32  # objects and lists within each other; the deepest so far has 6
LARGEST_NUMBER = 1e100  # so that ratios and products of two stay finite
LONGEST_KEY = 96  # characters; some file systems stop at 143 for a name, and git shows it all
_LEAF = str | int | float | None  # what holds nothing else; flags are whole numbers
_known: ContextVar[dict[tuple, Any] | None] = ContextVar("known", default=None)
T = TypeVar("T")
_HASH = 9  # characters of the hash that ends a shortened key, with its hyphen


def files(root: Path, machine: str | None = None) -> list[Path]:
    """What is to be a recording, of every machine or one, in order; it may be none."""
    there = Path(root).glob(f"{escape(machine) if machine else '*'}/*/*.json")
    return sorted(filter(is_one, there))


def is_one(file: Path) -> bool:
    """Whether a file's name is that of a recording, and not of a note beside them."""
    return not file.stem.endswith(FAILED)


def read(path: Path) -> dict[str, Any]:
    """The fields of the recording in a file, rows with every column; RecordingError, which names
    the file and the command that makes it anew, where anything about it is not as it must be."""
    return expanded(once(_read, path))


def published(path: Path) -> str:
    """The text of a recording's file with every text of its rows in full, as readers get it;
    RecordingError as for `read`."""
    return render(once(_read, path))


@contextmanager
def unchanging(known: dict[tuple, Any]) -> Iterator[None]:
    """Have no file be read twice, and what was read stand in `known`: a build asks for some of them
    ten times. Nobody changes what they get there."""
    token = _known.set(known)
    try:
        yield
    finally:
        _known.reset(token)


def once(make: Callable[[Path], T], path: Path) -> T:
    """What `make` returns of a file; where files are `unchanging` it is asked once."""
    if (known := _known.get()) is None:
        return make(path)
    if (key := (make, Path(path))) not in known:
        known[key] = make(path)
    return known[key]


def _read(path: Path) -> dict[str, Any]:
    shown, path = place(path), Path(path).absolute()
    try:
        return checked(content(path), path)
    except FileNotFoundError:
        lost = f"{shown} is a link to nothing. Remove it" if path.is_symlink() else ""
        wrong = lost or f"There is no recording {shown}"
    except OSError as error:
        wrong = f"{shown} can't be read: {error.strerror}. Give read access to it"
    except UnicodeDecodeError:
        wrong = f"{shown} is no text, so it is no recording"
    except json.JSONDecodeError as error:
        cut = f"breaks off or is no JSON (line {error.lineno})"
        wrong = f"{shown} {cut if error.doc.strip() else 'is empty'}"
    except RecursionError:
        wrong = f"{shown} is nested too deeply for a recording"
    except ValueError as error:
        wrong = f"{shown} {error}"
    # From the folder: the content may be what is broken.
    experiment = path.parent.name if signatures.NAME.fullmatch(path.parent.name) else "EXPERIMENT"
    raise RecordingError(f"{wrong}. Make it anew: pytorch-gpu-anatomy record {experiment}")


def content(path: Path) -> bytes:
    """The bytes of a plain file inside the folder of recordings; nothing else is opened. OSError,
    and ValueError for what is no such file or too large."""
    if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
        raise ValueError("is no plain file, so it is no recording. Remove it")
    if not path.resolve().is_relative_to(path.parents[2].resolve()):
        raise ValueError("is a link that leads out of the folder of recordings. Remove it")
    with path.open("rb") as file:
        held = file.read(LARGEST_MIB * 2**20 + 1)
    if len(held) > LARGEST_MIB * 2**20:
        raise ValueError(f"has more than {LARGEST_MIB} MiB, the most that a recording may have")
    return held


def parsed(text: str) -> Any:
    """What a text of JSON holds, within the limits above; ValueError where it is beyond them."""
    data = json.loads(text, parse_constant=_refuse)
    _within_limits(data)
    if r"\ud" in text.lower():
        json.dumps(data, ensure_ascii=False).encode()  # half a character can't be printed
    return data


def checked(content: bytes, path: Path) -> dict[str, Any]:
    """The fields in the content of a recording's file; ValueError where they can't be trusted, or
    belong elsewhere than at `path`."""
    text = content.decode()
    try:
        data = restored(parsed(text))
        schema.check(data)
        if not isinstance(data.get("content_sha"), str):
            raise ValueError("the field content_sha is missing")
    except json.JSONDecodeError:
        raise
    except ValueError as error:
        raise ValueError(f"can't be used: {error}") from None
    if data["content_sha"] != content_sha(data):
        raise ValueError(
            "was changed after it was recorded: its content does not match its content_sha. Undo "
            "the change"
        )
    for folder, name, said in (
        (path.parts[-3], "machine.slug", data["machine"]["slug"]),
        (path.parts[-2], "experiment", data["experiment"]),
    ):
        if said != folder:
            raise ValueError(f"is in the wrong place: its {name} is {said!r}. Move it there")
    if not names(path.stem, data["params"]):
        raise ValueError(
            f"is in the wrong place: its name is not of its params, {data['params']!r}. Move it "
            "to where they belong"
        )
    return data


def _within_limits(data: Any) -> None:
    """Raise ValueError for what is nested too deeply, and for a number too large to reckon with."""
    level = [data]
    for _ in range(DEEPEST):
        inner = [x.values() if isinstance(x, dict) else x for x in level]
        level = [each for x in inner if not isinstance(x, _LEAF) for each in x]
        if any(isinstance(x, int | float) and not abs(x) <= LARGEST_NUMBER for x in level):
            raise ValueError(f"it holds a number beyond {LARGEST_NUMBER:g}; a missing one is null")
        if not level:
            return
    raise ValueError(f"it is nested more than {DEEPEST} deep")


def _refuse(name: str) -> None:
    raise ValueError(f"it holds {name}, which is no JSON; a missing value is null")


def place(path: Path) -> str:
    """The file relative to the recordings' folder, so that no message shows a builder's path."""
    return "/".join(Path(path).parts[-3:])


def key(given: Mapping[str, Any]) -> str:
    """File name (without .json) that says these parameters: `dtype=bf16,m=2048`, sorted, safe on
    every file system; `default` without any. A hash is added where shortening, or a character that
    no file name may hold, would lose the difference."""
    exact, safe = _said(given)
    if safe == exact and len(safe) <= LONGEST_KEY and not safe.endswith(FAILED):
        return safe or "default"
    return f"{safe[: LONGEST_KEY - _HASH]}-{sha256(exact.encode()).hexdigest()[: _HASH - 1]}"


def _said(given: Mapping[str, Any]) -> tuple[str, str]:
    """Parameters in the words of a key, and the same in characters that any file name may have."""
    exact = ",".join(f"{name}={_plain(given[name])}" for name in sorted(given))
    return exact, re.sub(r"[^A-Za-z0-9_.,=+-]", "-", exact)


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool | None) else str(value)


def names(stem: str, params: Mapping[str, Any]) -> bool:
    """Whether a key says nothing of the parameters that is not so. It may leave out any: it named
    those that were not the defaults of its day."""
    said = {name: value for name, value in params.items() if f",{name}=" in f",{stem}"}
    if key(said) == stem:
        return True
    cut, safe = stem[:-_HASH], _said(said)[1]  # a shortened key may have lost names at its end
    return len(stem) == LONGEST_KEY and (cut.startswith(safe) or safe.startswith(cut))
