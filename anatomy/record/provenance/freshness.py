"""Whether a recording still speaks for the code and the machine at hand. Never by file times."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from anatomy.record import signatures
from anatomy.record.provenance.codehash import SCHEME, code_hash
from anatomy.table.errors import BadParameter, UnknownName

STATES = ("current", "code-changed", "software-other", "machine-other", "missing")


@dataclass(frozen=True)
class Freshness:
    """How a recording stands, one of `STATES`, and why: one sentence for a badge or a plan."""

    state: str
    reason: str

    @property
    def current(self) -> bool:
        """Whether nothing needs to be measured."""
        return self.state == "current"


def freshness(
    recording: Any | None,
    here: Mapping[str, Any] | None = None,
    package: Path | None = None,
    processes: int | None = None,
) -> Freshness:
    """Compare a `Recording` with the code of a package, and with the GPU host if this is one, whose
    `slug`, `card`, `torch` and `driver` are in `here`; what is None is not held against it. It must
    have been measured in `processes` fresh ones, by default as many as the experiment declares."""
    if recording is None:
        return Freshness("missing", "It has not been measured.")
    changed = partial(Freshness, "code-changed")
    try:
        now = code_hash(recording.experiment, recording.params, root=package).hash
    except (UnknownName, BadParameter) as error:
        return changed(f"The experiment is not what it was: {error}")
    if (scheme := recording.data["code"].get("scheme", 1)) != SCHEME:
        return changed(f"Its code was hashed by scheme {scheme}, and is now by {SCHEME}.")
    if now != recording.data["code"]["hash"]:
        return changed("The code that measures it has changed since.")
    wanted = processes or signatures.signature(recording.experiment, package).processes
    if (had := processes_of(recording)) < wanted:
        several = "es" if had > 1 else ""
        return changed(f"It was measured in {had} process{several}, and is to be in {wanted}.")
    if here is None:
        return Freshness("current", "The code is the one that measured it.")
    machine, software = recording.data["machine"], recording.data["software"]
    # Of several GPUs the slug is the first one's; how many there must be, the call itself says.
    one = machine["slug"].removesuffix(f"-x{machine.get('count')}")
    any_card = os.environ.get("ANATOMY_CARD") == "any" or machine["card"] in here.get("cards", ())
    card = None if any_card else here.get("card")
    # A patch release of torch changes no kernel on purpose.
    torch = leading(software["torch"], 2), leading(here.get("torch"), 2)
    driver = leading(machine["driver"], 1), leading(here.get("driver"), 1)
    another = "on another card of this model ({}; this is {}). ANATOMY_CARD=any accepts it."
    for state, then, this, wrong in (
        ("machine-other", one, here.get("slug"), "on {}; this is {}."),
        ("machine-other", machine["card"], card, another),
        ("software-other", *torch, "with PyTorch {}; this is {}."),
        ("software-other", *driver, "with driver branch {}; this is {}."),
    ):
        if then is not None and this is not None and then != this:
            return Freshness(state, f"It was measured {wrong.format(then, this)}")
    return Freshness("current", "Code, machine and software are those that measured it.")


def processes_of(recording: Any) -> int:
    """Fresh processes that a recording was measured in; a recording of one need not say so."""
    return recording.data["method"].get("processes", 1)


def leading(version: str | None, parts: int) -> str | None:
    """The first parts of a version: `2.11` of `2.11.0+cu130`, or `580` of `580.159.03`."""
    return None if version is None else ".".join(version.split("+")[0].split(".")[:parts])
