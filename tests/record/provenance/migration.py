"""Proof that recordings carry the hash of the code at the commit that measured them.

    python -m tests.record.provenance.migration     prove it for every recording

With `--write` it gives recordings of an older scheme the hash of this one first.

Until commit BASE the code's hash held the names of modules and functions (scheme 1). What was
recorded under it was given the content-addressed hash (scheme 2), and nothing else of it changed.
For each such recording this shows, from git alone and without measuring:

1. All code that it reaches, the measuring room and the judging of it included, is the same at its
   own commit as at BASE, by content. So the method of BASE, which METHOD calls 1, measured it.
2. The hash of its code at its own commit is the one that it carries.
3. Its file differs from that of BASE in the hash, the scheme and the file's own checksum alone.
"""

import io
import json
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from anatomy.record import recording, signatures
from anatomy.record.provenance.canonical import (
    content_sha,
    expanded,
    render,
    restored,
    shared,
)
from anatomy.record.provenance.codehash import SCHEME, hash_at
from anatomy.record.provenance.content import Layout

CHECKOUT = Path(__file__).resolve().parents[3]
RECORDINGS = CHECKOUT / "recordings"
BASE = "8cb97658ec0c8a1422e5fe3b79c5295ec203509b"
# Where at BASE lay what stood for the method, and what worded, kept or judged numbers.
AT_BASE = Layout(
    method=("measuring",),
    unfollowed=(
        *("docstrings", "errors", "handover", "printing", "recording", "signatures", "units"),
        *("provenance", "limits", "replication", "merging", "measuring.gates"),
        *(
            f"intervals:{name}"
            for name in ("ratio_interval", "noise_floor", "verdict", "break_even")
        ),
    ),
    method_id="1",
)
EVERYTHING = Layout(method=(), unfollowed=(*AT_BASE.unfollowed[:7], "provenance"), method_id="")


@dataclass(frozen=True)
class Shown:
    """What was shown of one recording: an empty list of faults is the proof."""

    recording: recording.Recording
    faults: list[str]


def git(*arguments: str) -> bytes:
    """What git says of this checkout."""
    command = ["git", "-C", str(CHECKOUT), *arguments]
    return subprocess.run(command, capture_output=True, check=True).stdout


def history_is_here() -> bool:
    """Whether BASE is in this clone; a shallow one lacks it."""
    command = ["git", "-C", str(CHECKOUT), "cat-file", "-e", f"{BASE}^{{commit}}"]
    return subprocess.run(command, capture_output=True).returncode == 0


@contextmanager
def code_at(commit: str) -> Iterator[Path]:
    """The folder of the package as it was at a commit."""
    packed = git("archive", commit, "anatomy", "snippets")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            files.extractall(folder, filter="data")
        yield Path(folder).resolve() / "anatomy"


def hash_then(root: Path, layout: Layout, found: recording.Recording) -> str:
    """Hash of the code behind a recording in the package at `root`, laid out as at BASE."""
    topic, _, function = found.experiment.partition(".")
    declared = signatures.signature(found.experiment)
    bound = declared.bind(**found.params)
    return hash_at(root, layout, f"experiments.{topic}", function, declared.files, bound).hash


@cache
def scheme_1(place: str) -> dict:
    """The fields of a recording as they were at BASE."""
    return restored(json.loads(git("show", f"{BASE}:recordings/{place}")))


def shown() -> Iterator[Shown]:
    """Every recording that was made before BASE, with what is wrong with it."""
    at_base = set(git("ls-tree", "-r", "--name-only", BASE, "recordings/").decode().split())
    by_commit = defaultdict(list)
    for found in recording.all_recordings(RECORDINGS):
        place = found.path.relative_to(CHECKOUT).as_posix()
        same_run = place in at_base and (
            scheme_1(place.removeprefix("recordings/"))["started_at"] == found.data["started_at"]
        )
        if same_run:
            by_commit[found.data["code"]["commit"]].append(found)
    with code_at(BASE) as base:
        wanted = {
            f.path: hash_then(base, EVERYTHING, f) for each in by_commit.values() for f in each
        }
    for commit, recordings in by_commit.items():
        with code_at(commit) as root:
            for found in recordings:
                faults = [] if found.data["code"]["dirty"] is False else ["made on edited code"]
                if hash_then(root, EVERYTHING, found) != wanted[found.path]:
                    faults.append("its code at its own commit is not that of BASE")
                if hash_then(root, AT_BASE, found) != found.data["code"]["hash"]:
                    faults.append("the hash at its own commit is not the one that it carries")
                if found.data["code"].get("scheme") != SCHEME:
                    faults.append(f"it is not of scheme {SCHEME}")
                if without_hash(found.data) != without_hash(_expanded(found)):
                    faults.append("more than the hash has changed since BASE")
                yield Shown(found, faults)


def _expanded(found: recording.Recording) -> dict:
    place = found.path.relative_to(RECORDINGS).as_posix()
    return expanded(scheme_1(place))


def without_hash(data: dict) -> dict:
    """What a migration must leave as it is."""
    code = {name: each for name, each in data["code"].items() if name not in ("hash", "scheme")}
    return {name: each for name, each in data.items() if name != "content_sha"} | {"code": code}


def write() -> int:
    """Give every recording of an older scheme the hash of its code at its own commit."""
    by_commit = defaultdict(list)
    for found in recording.all_recordings(RECORDINGS):
        by_commit[found.data["code"]["commit"]].append(found)
    written = 0
    for commit, recordings in by_commit.items():
        with code_at(commit) as root:
            for found in recordings:
                code = found.data["code"] | {
                    "hash": hash_then(root, AT_BASE, found),
                    "scheme": SCHEME,
                }
                if code == found.data["code"]:
                    continue
                data = restored(json.loads(found.path.read_text(encoding="utf-8")))
                data["code"] = code
                data["content_sha"] = content_sha(data)
                found.path.write_text(render(shared(data)), encoding="utf-8", newline="\n")
                written += 1
    return written


def main() -> int:
    """Prove, or write with `--write`. Status 1 where something could not be shown."""
    if "--write" in sys.argv[1:]:
        print(f"{write()} recordings were given the hash of scheme {SCHEME}.")
    count, wrong = 0, 0
    for each in shown():
        count += 1
        wrong += bool(each.faults)
        place = each.recording.path.relative_to(RECORDINGS)
        for fault in each.faults:
            print(f"{place}: {fault}")
    print(f"{count - wrong} of {count} recordings carry the hash of the code that measured them.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
