"""What pages came to, kept from one build to the next by all that they are made of.

A page is made of its text, of every page's front matter and address, of the files of the checkout
beside the pages, of the recordings, of the machines shown, and of what is installed. Where all of
that is as it was, its blocks need not run again; a difference in one byte, and they do.
"""

import os
import pickle
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from anatomy.record import recording

FILE = Path(".cache") / "anatomy" / "pages"
BESIDE = ("anatomy", "docs", "snippets", "mkdocs.yml")  # of the checkout: what blocks may read
PAGE, BYTECODE = ".md", ".pyc"


class Kept:
    """Values by what they are of and the text of a page, read from a file and written to it."""

    def __init__(self, project: Path, checkout: Path, recordings: Path) -> None:
        """Of the pages of a `project`, by the package of a `checkout`, most often the same folder;
        `recordings` is their root. What can't be read counts as not there."""
        self._file = project / FILE
        folders = dict.fromkeys((checkout, project))
        self._places = [*(folder / each for folder in folders for each in BESIDE), recordings]
        self._behind = _digest(self._places)
        self._old: dict[str, Any] = {}
        self._new: dict[str, Any] = {}
        with suppress(OSError):
            found = self._file.read_bytes()
            if found[:32] == sha256(found[32:]).digest():  # whole, and so one of ours
                self._old = pickle.loads(found[32:])

    def known(self, texts: Mapping[str, Any], *of: Any) -> dict[str, Any]:
        """The values kept for these texts, by name; `of` is what else they are made of."""
        keys = {name: self._key(name, text, of) for name, text in texts.items()}
        self._new |= {key: self._old[key] for key in keys.values() if key in self._old}
        return {name: self._old[key] for name, key in keys.items() if key in self._old}

    def keep(self, values: Mapping[str, Any], texts: Mapping[str, Any], *of: Any) -> None:
        """Have the next build know these values."""
        self._new |= {self._key(name, texts[name], of): each for name, each in values.items()}

    def write(self) -> None:
        """Write what this build asked for or made, and nothing older. A cache that can't be written
        costs time and nothing else."""
        if self._new.keys() == self._old.keys() or _digest(self._places) != self._behind:
            return  # nothing is new, or something was edited while the build was at work
        content = pickle.dumps(self._new)
        with suppress(OSError):
            recording.write_whole(self._file, sha256(content).digest() + content, lasting=False)

    def _key(self, name: str, text: Any, of: tuple) -> str:
        return sha256(repr((self._behind, name, text, of)).encode()).hexdigest()


def _digest(places: Iterable[Path]) -> str:
    """Of all files there but the pages, of what is installed, and of the settings."""
    found = sha256(sys.version.encode())
    found.update(repr(sorted(Path(sysconfig.get_path("purelib")).glob("*.dist-info"))).encode())
    settings = {name: each for name, each in os.environ.items() if name.startswith("ANATOMY_")}
    found.update(repr(sorted(settings.items())).encode())
    for place in places:
        for file in sorted(place.rglob("*")) if os.path.isdir(place) else [place]:
            if file.suffix not in (PAGE, BYTECODE) and os.path.isfile(file):
                with suppress(OSError):  # the blocks can't read it either
                    content = file.read_bytes()
                    found.update(f"{file.relative_to(place)} {len(content)} ".encode() + content)
    return found.hexdigest()
