"""Editions of the site: all of its pages once for each published machine, with that one's figures.

The first is at the root of the site, each other one in a folder of its machine's name. What does
not depend on the machine shown (assets, raw recordings, the ledger's files) the root has for all.
"""

import posixpath
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anatomy.record import loading, recording
from anatomy.table.errors import RecordingError


@dataclass(frozen=True)
class Edition:
    """The site as it shows one machine."""

    machine: str  # slug
    name: str  # what its readers call it
    folder: str = ""  # of the site; empty for its root

    def inside(self, place: str) -> str:
        """A page's source, or its address, in this edition, by that in the root."""
        if not self.folder:
            return place
        slash = "/" if place.endswith("/") else ""
        return posixpath.normpath(posixpath.join(self.folder, place)) + slash

    def navigation(self, nav: Any) -> Any:
        """The site's `nav` with this edition's pages."""
        if isinstance(nav, str):
            return self.inside(nav)
        if isinstance(nav, dict):
            return {title: self.navigation(each) for title, each in nav.items()}
        return [self.navigation(each) for each in nav]


def of_site(root: Path, first: str, published: Iterable[str]) -> tuple[Edition, ...]:
    """The editions of a site that shows `first` at its root: that one, and each published machine
    that has recordings in `root`."""
    known = recording.machines(root)
    slugs = [first, *(slug for slug in dict.fromkeys(published) if slug in known and slug != first)]
    names = [_name(root, slug) for slug in slugs]
    taken = Counter(names)
    return tuple(
        Edition(slug, name if taken[name] == 1 else slug, slug if slug != first else "")
        for slug, name in zip(slugs, names, strict=True)
    )


def among(editions: Sequence[Edition], page: str) -> tuple[Edition, str]:
    """The edition that a page's source belongs to, and that source in the root."""
    for each in editions:
        if each.folder and page.startswith(f"{each.folder}/"):
            return each, page.removeprefix(f"{each.folder}/")
    return editions[0], page


def _name(root: Path, slug: str) -> str:
    """A machine's name by its recordings; its slug where none says."""
    for file in loading.files(root, slug):
        try:
            machine = loading.read(file)["machine"]
        except RecordingError:  # which the build tells
            continue
        return machine.get("gpu") or machine.get("cpu") or slug
    return slug
