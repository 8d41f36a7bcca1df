"""One experiment, measured in processes of its own: its recording, not yet saved."""

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anatomy.judge import merging
from anatomy.machine import host, versions
from anatomy.record import signatures
from anatomy.record.processes import isolation
from anatomy.record.processes.nursery import Nursery
from anatomy.record.provenance.codehash import SCHEME, code_hash
from anatomy.table.errors import AnatomyError, MeasurementError

START_S = 60.0  # importing torch and starting CUDA, beside an experiment's own time limit


class OverBudget(isolation.TimeLimit):
    """A worker ran, or was about to, when the recorder's own time was up."""


@dataclass(frozen=True)
class Measurer:
    """How experiments are measured, whichever they are."""

    root: Path | None = None  # of all recordings, where a worker finds this machine's ceilings
    package: Path | None = None  # folder of another package that has the experiments
    allow_foreign: bool = False  # whether other processes may compute on the card
    timeout_s: float | None = None  # of each process; by default what the experiment declares
    environment: Mapping[str, str] = field(default_factory=dict)  # of workers, added to ours
    nursery: Nursery | None = None  # where workers start warm

    def measure(
        self,
        name: str,
        params: Mapping[str, Any],
        *,
        processes: int | None = None,
        tell: Callable[[str], None] | None = None,
        within_s: float | None = None,
    ) -> dict[str, Any]:
        """Measure one experiment and return its recording, not yet saved. `tell` is called when a
        process begins: `toy.fine, process 2 of 3`; `within_s` are the seconds left for all. Raises
        UnknownName or BadParameter for a call that is not possible, Busy where another process
        computes on the card, OverBudget where the time was up, and DeviceError, OutOfMemory or
        MeasurementError where it could not be measured."""
        with signatures.unchanging():
            declared = signatures.signature(name, self.package)
            full = declared.bind(**params)
            versions.require_torch()
            for file in declared.files:
                if not (Path(self.package or signatures.PACKAGE).resolve().parent / file).exists():
                    raise AnatomyError(
                        f"{name} runs {file}, which belongs to the project's checkout and is not "
                        "here: clone the project, and run this there."
                    )
            code = code_hash(name, full, root=self.package)
        commit, dirty = source_state(self.package)
        limit = declared.timeout_s + START_S if self.timeout_s is None else self.timeout_s
        started = time.monotonic()
        outcomes = []
        count = processes or declared.processes
        for number in range(1, count + 1):
            left = limit if within_s is None else within_s - (time.monotonic() - started)
            try:
                if tell:
                    which = f", process {number} of {count}" if count > 1 else ""
                    tell(declared.title(full) + which)
                if left <= 0:
                    raise OverBudget("The time was up before it began.")
                # Forks share where libraries were loaded, which several processes are to vary.
                warm = self.nursery if count == 1 else None
                outcomes.append(self._ask(name, full, min(limit, left), warm))
            except AnatomyError as error:
                if isinstance(error, isolation.TimeLimit) and left < limit:
                    raise OverBudget(str(error)) from None
                if count > 1:
                    error.args = (f"Process {number} of {count}: {error}",)
                raise
        with signatures.unchanging():
            if code_hash(name, full, root=self.package) != code:
                raise MeasurementError(
                    f"The code of {name} was edited while it was measured, so the result belongs "
                    "to neither version. Measure it again."
                )
        waited_s = sum(each["method"].get("waited_s", 0.0) for each in outcomes)
        return {
            "experiment": name,
            "params": full,
            **merging.merged_outcomes(outcomes),
            "code": {**vars(code), "scheme": SCHEME, "commit": commit, "dirty": dirty},
            # Without the turns of workers on other GPUs: so long it takes on one.
            "seconds": round(time.monotonic() - started - waited_s, 3),
        }

    def _ask(self, name: str, params: dict, timeout_s: float, warm: Nursery | None) -> dict:
        spec = {
            "experiment": name,
            "params": params,
            "allow_foreign": self.allow_foreign,
            "package": self.package and str(self.package),
        }
        root = {"ANATOMY_RECORDINGS": str(Path(self.root).absolute())} if self.root else {}
        environment = {**self.environment, **root}
        return isolation.ask(spec, timeout_s=timeout_s, environment=environment, warm=warm)


def describe(device: str) -> dict[str, Any]:
    """The `machine` and `software` blocks of a device, asked of a worker that has torch."""
    host.parse_device(device)
    versions.require_torch()
    return isolation.ask({"describe": device}, timeout_s=2 * START_S)


def source_state(package: Path | None = None) -> tuple[str | None, bool | None]:
    """Commit of the measuring code, and whether it differs from that commit: from git where the
    package stands in its own checkout, else from ANATOMY_COMMIT and ANATOMY_DIRTY, else None."""
    root = (package or signatures.PACKAGE).resolve().parent
    top = _git(root, "rev-parse", "--show-toplevel")
    if top and Path(top).resolve() == root:
        commit = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "--", "anatomy", "snippets")
        return commit, None if changed is None else bool(changed)
    commit = os.environ.get("ANATOMY_COMMIT") or None
    dirty = os.environ.get("ANATOMY_DIRTY", "").strip().lower()
    return commit, dirty not in ("0", "false", "no") if dirty else None


def _git(root: Path, *arguments: str) -> str | None:
    # Without optional locks a reading `git status` can't stand in the way of another git.
    command = ["git", "--no-optional-locks", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
