"""Notes of what could not be measured on a machine, so that a page can say why it lacks a figure.

A note lies where the recording would: RECORDINGS/MACHINE/EXPERIMENT/KEY.failed.json. It is made
and read with a recording's care, but nothing rests on it: one that can't be read is no note, and
one of other code than today's has nothing to say.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from anatomy.record import loading, recording, signatures
from anatomy.record.provenance import schema
from anatomy.record.provenance.codehash import code_hash
from anatomy.table.errors import AnatomyError, RecordingError

SCHEMA = 1
MOST_SAID = 600  # characters of a message; an error of CUDA may bring a page of advice
TEXTS = ("experiment", "error", "message", "at")


@dataclass(frozen=True)
class Failure:
    """Why one call gave no recording on a machine."""

    experiment: str
    params: dict[str, Any]
    code: str  # hash of the code that failed
    error: str  # name of its class
    message: str  # what it said, on one line
    at: str  # ISO time, UTC
    torch: str | None = None  # version
    driver: str | None = None  # version

    @property
    def reason(self) -> str:
        """Why, in a sentence for a page."""
        return self.message or f"{self.error}, which said nothing more"


def note(
    root: Path,
    machine: str,
    experiment: str,
    params: Mapping[str, Any],
    error: BaseException,
    *,
    torch: str | None = None,
    driver: str | None = None,
    package: Path | None = None,
) -> Path:
    """Keep why a call could not be measured on a machine, in place of an earlier note of it, and
    return the file. What the message tells of who or where is left out. RecordingError where the
    disk refuses; UnknownName or BadParameter for an impossible call."""
    declared = signatures.signature(experiment, package)
    wanted = declared.bind(**params)
    said = " ".join(schema.redacted(str(error)).split())
    data = {
        "schema": SCHEMA,
        "experiment": experiment,
        "params": wanted,
        "code": {"hash": code_hash(experiment, wanted, root=package).hash},
        "error": type(error).__name__,
        "message": said if len(said) <= MOST_SAID else f"{said[: MOST_SAID - 1]}…",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "torch": torch,
        "driver": driver,
    }
    try:
        schema.scrub(data | {"machine": {"slug": machine}})
    except ValueError:  # two halves of a name that met
        data["message"] = ""
    target = _place(root, machine, experiment, wanted, declared.defaults)
    try:
        recording.write_whole(target, json.dumps(data, indent=1, sort_keys=True) + "\n")
    except OSError as refused:
        raise RecordingError(
            f"The note {loading.place(target)} could not be written: "
            f"{refused.strerror or refused}. Make room or give write access there."
        ) from None
    return target


def find(
    root: Path, machine: str, name: str, /, *, package: Path | None = None, **params: Any
) -> Failure | None:
    """Why a call could not be measured on a machine by the code as it is; None where nothing says
    so. Parameters left out are the defaults. UnknownName or BadParameter for an impossible call."""
    declared = signatures.signature(name, package)
    wanted = declared.bind(**params)
    with suppress(OSError, ValueError, RecursionError, AnatomyError):
        found = _read(_place(root, machine, name, wanted, declared.defaults))
        now = code_hash(name, wanted, root=package).hash
        if (found.experiment, found.params, found.code) == (name, wanted, now):
            return found
    return None


def forget(
    root: Path,
    machine: str,
    experiment: str,
    params: Mapping[str, Any],
    *,
    package: Path | None = None,
) -> None:
    """Remove the note of a call, if there is one: it was measured after all."""
    declared = signatures.signature(experiment, package)
    place = _place(root, machine, experiment, declared.bind(**params), declared.defaults)
    with suppress(OSError):  # one that stays is not shown beside a recording
        place.unlink()


def _place(
    root: Path, machine: str, experiment: str, params: Mapping[str, Any], defaults: Mapping
) -> Path:
    key = recording.key(params, defaults)
    machine = recording.on_several(machine, params)
    return recording.path(root, machine, experiment, f"{key}{loading.FAILED}")


def _read(path: Path) -> Failure:
    """A note; OSError or ValueError where it is none that can be trusted."""
    data = loading.parsed(loading.content(path).decode())
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise ValueError("it is no note of this schema")
    code, versions = data.get("code"), {name: data.get(name) for name in ("torch", "driver")}
    texts = {name: data.get(name) for name in TEXTS}
    for text in (*texts.values(), *filter(None, versions.values())):
        if not isinstance(text, str) or len(text) > MOST_SAID:
            raise ValueError("a text of it is none, or too long")
    if not isinstance(code, dict) or not isinstance(data.get("params"), dict):
        raise ValueError("it says not which call it is of")
    return Failure(params=data["params"], code=str(code.get("hash")), **texts, **versions)
