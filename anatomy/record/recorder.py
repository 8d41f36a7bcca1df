"""Runs experiments in isolated processes, one after the other, and writes their recordings. Nothing
here imports torch: the worker does.

`python -m anatomy.record.recorder` records what standard input lists, such as for a site build, and
leaves with 0, with 1 if something could not be measured, or the status of what stopped it:

    {"shown": [["contiguity.bench", {"dtype": "fp16"}, "benchmarks/page.md:12"], ...],
     "root": "recordings", "mode": "auto", "budget_s": null}
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Literal

from anatomy.judge import limits, merging
from anatomy.machine import host, versions
from anatomy.record import isolation, occasions, recording, signatures
from anatomy.record.progress import Reporter, duration, expected_s
from anatomy.record.provenance.codehash import SCHEME, code_hash
from anatomy.record.provenance.freshness import Freshness, freshness, processes_of
from anatomy.table.errors import AnatomyError, MeasurementError, RecordingError

START_S = 60.0  # importing torch and starting CUDA, beside an experiment's own time limit
# No experiment is worth starting with less than this left of a budget: torch alone takes seconds.
LEAST_S = 1.0
Mode = Literal["auto", "again", "remeasure"]


class OverBudget(isolation.TimeLimit):
    """A worker ran, or was about to, when the recorder's own time was up."""


@dataclass(frozen=True)
class Item:
    """One call of an experiment, with all its parameters, that somebody wants recorded."""

    name: str
    params: dict[str, Any]
    freshness: Freshness  # of its recording on this machine
    last_seconds: float | None = None  # that measuring it took, all processes together
    there: str = ""  # slug of the machine where it took that, if not here
    places: tuple[str, ...] = ()  # where it is shown, as `page.md:line`
    title: str = ""  # with what is not its default: `contiguity.bench dtype=bf16`
    processes: int | None = None  # fresh ones to measure it in; None: as many as it declares
    occasions: int = 0  # on which its recording here was measured


@dataclass
class Outcome:
    """What a recorder did: files saved, items that failed and why, items left for next time."""

    saved: list[Path] = field(default_factory=list)
    failed: list[tuple[Item, AnatomyError]] = field(default_factory=list)
    left: list[Item] = field(default_factory=list)
    seconds: float = 0.0

    def report(self) -> str:
        """A few lines for a person: how many, how long, and what is wrong with each failure."""
        if not (self.saved or self.left or self.failed):
            return "Everything is current; nothing was measured."
        lines = [f"{len(self.saved)} measured in {duration(self.seconds)}."]
        if self.left:
            lines.append(f"{len(self.left)} left for the next call, which goes on from there:")
            lines += [f"  {item.title}" for item in self.left]
        if self.failed:
            lines.append(f"{len(self.failed)} could not be measured:")
            lines += [f"  {item.title}: {error}" for item, error in self.failed]
        return "\n".join(lines)


def plan(
    shown: Iterable[Sequence[Any]],
    root: Path,
    here: Mapping[str, Any] | None,
    *,
    slug: str | None = None,
    package: Path | None = None,
    processes: int | None = None,
) -> list[Item]:
    """What is to be recorded and how each of it stands, ceilings first, nothing twice. `shown` are
    (experiment, parameters) or (experiment, parameters, place); `here` is this GPU host as
    `machine.host.here` tells it. With `slug` that machine's recordings are looked at, and of what
    runs on a CPU any CPU's; else this host's. `package` is the folder of another package that has
    the experiments; `processes`, how many to measure each in, is by default what it declares."""
    wanted: dict[str, tuple[str, dict, dict[str, None]]] = {}
    for name, params, *places in shown:
        full = signatures.signature(name, package).bind(**params)
        entry = wanted.setdefault(json.dumps([name, full], sort_keys=True), (name, full, {}))
        entry[2].update(dict.fromkeys(places))
    about = Path(root), here, slug, package, processes
    items = [_item(name, params, tuple(places), *about) for name, params, places in wanted.values()]
    # The physics gate and every share of a limit need the machine's own ceilings.
    return sorted(items, key=lambda item: item.name != limits.EXPERIMENT)


def for_builds(shown: Iterable[Sequence[Any]]) -> list[Sequence[Any]]:
    """Those of the calls that pages show which are measured without being named."""
    return [call for call in shown if not signatures.signature(call[0]).on_request]


def _item(name, params, places, root, here, slug, package, processes) -> Item:
    on_cpu, shown = recording.on_cpu(params), slug is not None
    slug = host.cpu_slug() if on_cpu else slug or (here and here["slug"])
    declared = signatures.signature(name, package)
    found = fresh = last_seconds = None
    if slug:
        file = recording.path(root, slug, name, recording.key(params, declared.defaults))
        try:
            if package is None and on_cpu and shown:
                found = recording.find_on_cpu(root, slug if here else None, name, **params)
            elif package is None:
                found = recording.find(root, slug, name, **params)
            elif os.path.lexists(file):
                found = recording.load(file)
        except RecordingError as error:
            fresh = Freshness("missing", str(error))
    fresh = fresh or freshness(found, None if on_cpu else here, package, processes)
    before = found or (_elsewhere(root, name, params) if package is None else None)
    if before:
        more = (processes or declared.processes) / processes_of(before)
        last_seconds = before.data["seconds"] * more
    there = before.machine if before and not found else ""
    title, times = declared.title(params), occasions.count(found) if found else 0
    return Item(name, params, fresh, last_seconds, there, places, title, processes, times)


def _elsewhere(root: Path, name: str, params: Mapping[str, Any]) -> Any:
    """The recording of a call on another machine, or None: it took about as long there."""
    for slug in recording.machines(root):
        with suppress(RecordingError):
            if there := recording.find(root, slug, name, **params):
                return there
    return None


def run(
    name: str,
    params: Mapping[str, Any],
    *,
    timeout_s: float | None = None,
    allow_foreign: bool = False,
    root: Path | None = None,
    package: Path | None = None,
    processes: int | None = None,
    tell: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Measure one experiment in fresh processes and return its recording, not yet saved. A process
    is ended after `timeout_s`, by default what the experiment declares; in `root` it finds this
    machine's ceilings. `tell` is called when a process begins: `toy.fine, process 2 of 3`. Raises
    UnknownName or BadParameter for a call that is not possible, Busy where another process measures
    here, or computes on the card without `allow_foreign`, and DeviceError, OutOfMemory or
    MeasurementError where it could not be measured."""
    with isolation.only_recorder():
        return _measure(name, params, allow_foreign, root, package, processes, tell, timeout_s)


def _measure(
    name, params, allow_foreign, root, package, processes, tell, timeout_s=None, within_s=None
) -> dict[str, Any]:
    """`run`, for a caller that holds the right to measure, and has `within_s` seconds for it."""
    declared = signatures.signature(name, package)
    full = declared.bind(**params)
    versions.require_torch()
    for file in declared.files:
        if not (Path(package or signatures.PACKAGE).resolve().parent / file).exists():
            raise AnatomyError(
                f"{name} runs {file}, which belongs to the project's checkout and is not here: "
                "clone the project, and run this there."
            )
    code = code_hash(name, full, root=package)
    commit, dirty = source_state(package)
    spec = {"experiment": name, "params": full, "allow_foreign": allow_foreign}
    spec["package"] = package and str(package)
    environment = root and {"ANATOMY_RECORDINGS": str(Path(root).absolute())}
    limit = declared.timeout_s + START_S if timeout_s is None else timeout_s
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
            allowed = min(limit, left)
            outcomes.append(isolation.ask(spec, timeout_s=allowed, environment=environment))
        except AnatomyError as error:
            if isinstance(error, isolation.TimeLimit) and left < limit:
                raise OverBudget(str(error)) from None
            if count > 1:
                error.args = (f"Process {number} of {count}: {error}",)
            raise
    if code_hash(name, full, root=package) != code:
        raise MeasurementError(
            f"The code of {name} was edited while it was measured, so the result belongs to "
            "neither version. Measure it again."
        )
    return {
        "experiment": name,
        "params": full,
        **merging.merged_outcomes(outcomes),
        "code": {**vars(code), "scheme": SCHEME, "commit": commit, "dirty": dirty},
        "seconds": round(time.monotonic() - started, 3),
    }


def due(items: Sequence[Item], mode: Mode = "auto") -> list[Item]:
    """What is to be measured: what is not current; in mode `again` also, of what is, that with the
    fewest occasions, so that a call goes on where the last one stopped; in `remeasure` all."""
    fewest = min((item.occasions for item in items if item.freshness.current), default=0)
    wanted = {"auto": -1, "again": fewest, "remeasure": inf}[mode]
    return [i for i in items if not i.freshness.current or i.occasions <= wanted]


def record(
    items: Sequence[Item],
    *,
    root: Path,
    mode: Mode = "auto",
    budget_s: float | None = None,
    timeout_s: float | None = None,
    allow_foreign: bool = False,
    package: Path | None = None,
) -> Outcome:
    """Measure what is `due`, and save each recording at once; of what was measured before by the
    same code it is one more occasion. What fails costs itself alone. What does not fit into the
    budget is left for the next call: an item that took longer last time is not begun, and one that
    overruns is ended. A process is ended after `timeout_s`, by default what its experiment
    declares. Raises DeviceError where something needs a GPU and there is none, Busy where another
    process measures here, and RecordingError where the disk refuses: nothing more could be kept."""
    todo = due(items, mode)
    on_gpu = [item for item in todo if not recording.on_cpu(item.params)]
    if on_gpu and not host.here():
        raise host.no_cuda()
    if todo:
        recording.make_ready(Path(root))
    started = time.monotonic()
    outcome = Outcome()
    with isolation.only_recorder(), Reporter([i.last_seconds for i in todo]) as reporter:
        for item in todo:
            remaining = None if budget_s is None else budget_s - (time.monotonic() - started)
            if remaining is not None and remaining < max(item.last_seconds or 0.0, LEAST_S):
                outcome.left.append(item)
                reporter.end(item.title, "left for the next call")
                continue
            how = Path(root), remaining, timeout_s, allow_foreign, package
            _record_one(item, outcome, reporter, *how)
    if any(occasions.count(recording.load(file)) > 1 for file in outcome.saved):
        for slug in {file.parents[1].name for file in outcome.saved}:
            occasions.commit(Path(root), slug, recording.all_recordings(root, slug, broken=[]))
    outcome.seconds = time.monotonic() - started
    return outcome


def _record_one(item, outcome, reporter, root, remaining, timeout_s, allow_foreign, package):
    call = item.name, item.params, allow_foreign, root, package, item.processes
    try:
        found = _measure(*call, reporter.begin, timeout_s, within_s=remaining)
        defaults = signatures.signature(item.name, package).defaults
        found = occasions.adding(found, root, defaults)
        outcome.saved.append(recording.save(found, root, defaults=defaults))
    except AnatomyError as error:
        if isinstance(error.__context__, OSError) and isinstance(error, RecordingError):
            raise  # a full disk: whatever else is measured would be lost as well
        if isinstance(error, OverBudget):
            outcome.left.append(item)
            reporter.end(item.title, "did not fit into the budget; left for the next call")
            return
        outcome.failed.append((item, error))
        reporter.end(item.title, f"failed: {error}")
        if output := getattr(error, "output", ""):
            reporter.line("\n".join(f"    {line}" for line in output.splitlines()))
        return
    start_s = found["method"]["start_s"]
    reporter.end(item.title, f"{duration(found['seconds'])}, of which {duration(start_s)} to start")


def estimate_s(items: Sequence[Item], mode: Mode = "auto") -> float | None:
    """Seconds that measuring what is `due` will take; None if nothing was measured yet."""
    return expected_s([item.last_seconds for item in due(items, mode)])


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


def main() -> int:
    """Record what standard input asks for; see the module's docstring. Returns the status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        request = json.load(sys.stdin)
        root = Path(request["root"])
        items = plan(for_builds(request["shown"]), root, host.here())
        how = {name: request[name] for name in ("mode", "budget_s") if name in request}
        outcome = record(items, root=root, **how)
    except AnatomyError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("Interrupted. What was finished is kept; the next call goes on.", file=sys.stderr)
        return 130
    print(outcome.report(), file=sys.stderr)
    return 1 if outcome.failed else 0


if __name__ == "__main__":
    sys.exit(main())
