"""Runs experiments in isolated processes, one after the other on each GPU, and writes their
recordings. Nothing here imports torch: the worker does.

`python -m anatomy.record.recorder` records what standard input lists, such as for a site build, and
leaves with 0, with 1 if something could not be measured, or the status of what stopped it:

    {"shown": [["contiguity.bench", {"dtype": "fp16"}, "benchmarks/page.md:12"], ...],
     "root": "recordings", "mode": "auto", "budget_s": null}
"""

import json
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any, Literal

from anatomy.judge import limits
from anatomy.machine import host
from anatomy.record import failures, occasions, recording, signatures
from anatomy.record.measuring import Measurer, OverBudget
from anatomy.record.processes import isolation, lanes
from anatomy.record.processes.nursery import Nursery
from anatomy.record.progress import Reporter, duration, expected_s
from anatomy.record.provenance.freshness import Freshness, freshness, processes_of
from anatomy.table.errors import AnatomyError, MeasurementError, OutOfMemory, RecordingError

# No experiment is worth starting with less than this left of a budget: torch alone takes seconds.
LEAST_S = 1.0
WARM = sys.platform == "linux"  # elsewhere no process can be forked off another
# What another process may do better.
RETRIED = (MeasurementError, OutOfMemory)
Mode = Literal["auto", "again", "remeasure"]


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
        entry = wanted.setdefault(json.dumps([name, full]), (name, full, {}))
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
        machine = recording.on_several(slug, params)
        file = recording.path(root, machine, name, recording.key(params, declared.defaults))
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
    processes: int | None = None,
    tell: Callable[[str], None] | None = None,
    **how: Any,
) -> dict[str, Any]:
    """`Measurer.measure` with a Measurer of those fields, for a caller that saves nothing; Busy
    also where another process measures on this machine."""
    with isolation.only_recorder():
        return Measurer(**how).measure(name, params, processes=processes, tell=tell)


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
    gpus: int | None = 1,
) -> Outcome:
    """Measure what is `due`, and save each recording at once; of what was measured before by the
    same code it is one more occasion.

    What fails is tried once more in a process that starts from nothing, and then costs itself
    alone. What does not fit into the budget is left for the next call: an item that took longer
    last time is not begun, and one that overruns is ended. A process is ended after `timeout_s`, by
    default what its experiment declares. On several `gpus`, or all for None, as many experiments
    are measured side by side, and take turns where the host sets the pace. Raises DeviceError where
    something needs a GPU and there are not so many, Busy where another process measures here, and
    RecordingError where the disk refuses: nothing more could be kept."""
    todo = due(items, mode)
    on_gpu = [item for item in todo if not recording.on_cpu(item.params)]
    if on_gpu and not host.here():
        raise host.no_cuda()
    cards = lanes.cards(gpus) if gpus != 1 else []
    if todo:
        recording.make_ready(Path(root))
    measurer = Measurer(Path(root), package, allow_foreign, timeout_s)
    with (
        isolation.only_recorder(),
        isolation.nursery() as first,
        Reporter([i.last_seconds for i in todo]) as reporter,
    ):
        other = sum(item.freshness.state == "machine-other" for item in todo)
        if other and mode != "remeasure":
            reporter.line(
                f"{other} of {len(todo)} were measured on another card of this model, and are "
                "measured anew. ANATOMY_CARD=any in front of the command accepts them as they are."
            )
        round_ = Round(measurer, reporter, deque(todo), budget_s, time.monotonic(), spare=[first])
        # Every share is of the machine's ceilings, so they come first, and alone on the GPU, which
        # paces them: what the others import is imported meanwhile, but not where each lane is yet
        # to be given its cores.
        others = sum(item.name != limits.EXPERIMENT for item in todo)
        if WARM and 1 < others < len(todo) and len(cards) < 2:
            first.begin()
        while round_.todo and round_.todo[0].name == limits.EXPERIMENT:
            round_.measure(round_.todo.popleft(), measurer)
        lanes.run(round_.lane, cards)
    outcome = round_.outcome
    if any(occasions.count(recording.load(file)) > 1 for file in outcome.saved):
        for slug in {file.parents[1].name for file in outcome.saved}:
            occasions.commit(Path(root), slug, recording.all_recordings(root, slug, broken=[]))
    outcome.seconds = round_.seconds
    return outcome


@dataclass
class Round:
    """Items on their way to recordings."""

    measurer: Measurer
    reporter: Reporter
    todo: deque[Item]
    budget_s: float | None
    started: float  # by time.monotonic
    outcome: Outcome = field(default_factory=Outcome)
    spare: list[Nursery] = field(default_factory=list)  # for the first lane to take

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self.started

    def lane(self, environment: Mapping[str, str]) -> None:
        """Measure one item after the other, with that `environment`, until none is left."""
        # Importing everything first pays from the second on.
        many = len(self.todo) > 1 and WARM
        with self.spare.pop() if self.spare else isolation.nursery() as nursery:
            measurer = replace(self.measurer, environment=environment)
            warm = replace(measurer, nursery=nursery) if many else measurer
            with suppress(IndexError):
                while True:
                    self.measure(self.todo.popleft(), warm)

    def measure(self, item: Item, measurer: Measurer, *, again: bool = False) -> None:
        """Measure one item and save what comes of it, or say why not; `again` after a failure."""
        left = None if self.budget_s is None else self.budget_s - self.seconds
        if left is not None and left < max(item.last_seconds or 0.0, LEAST_S):
            self._leave(item, "left for the next call")
            return
        try:
            self._attempt(item, measurer, left)
        except OverBudget:
            self._leave(item, "did not fit into the budget; left for the next call")
        except AnatomyError as error:
            if isinstance(error.__context__, OSError) and isinstance(error, RecordingError):
                raise  # a full disk: whatever else is measured would be lost as well
            late = isinstance(error, isolation.TimeLimit)  # and would be once more
            if isinstance(error, RETRIED) and not late and not again:
                self.reporter.line(f"{item.title}: failed, so once more from nothing: {error}")
                self.measure(item, replace(measurer, nursery=None), again=True)
                return
            self.outcome.failed.append((item, error))
            self.reporter.end(item.title, f"failed: {error}")
            self._note(item, error, measurer)
            if output := getattr(error, "output", ""):
                self.reporter.line("\n".join(f"    {line}" for line in output.splitlines()))

    def _attempt(self, item: Item, measurer: Measurer, left: float | None) -> None:
        tell = self.reporter.begin
        how = {"processes": item.processes, "tell": tell, "within_s": left}
        found = measurer.measure(item.name, item.params, **how)
        with signatures.unchanging():
            defaults = signatures.signature(item.name, measurer.package).defaults
            found = occasions.adding(found, measurer.root, defaults)
            self.outcome.saved.append(recording.save(found, measurer.root, defaults=defaults))
            call = measurer.root, found["machine"]["slug"], item.name, item.params
            failures.forget(*call, package=measurer.package)
        start = duration(found["method"]["start_s"])
        self.reporter.end(item.title, f"{duration(found['seconds'])}, of which {start} to start")

    def _note(self, item: Item, error: AnatomyError, measurer: Measurer) -> None:
        """Keep why there is no recording, for the pages that want it."""
        here = host.here() or {}
        slug = host.cpu_slug() if recording.on_cpu(item.params) else here.get("slug")
        told = {"torch": here.get("torch"), "driver": here.get("driver")}
        call = measurer.root, slug, item.name, item.params, error
        with suppress(AnatomyError):  # of a call that is not possible there is nothing to say
            failures.note(*call, **told, package=measurer.package)

    def _leave(self, item: Item, why: str) -> None:
        self.outcome.left.append(item)
        self.reporter.end(item.title, why)


def _has_failed(item: Item, root: Path, here: Mapping[str, Any] | None) -> bool:
    """Whether there is a note of an attempt with the code, torch and driver that are here now."""
    slug = host.cpu_slug() if recording.on_cpu(item.params) else here and here["slug"]
    noted = slug and failures.find(root, slug, item.name, **item.params)
    now = [(here or {}).get(name) for name in ("torch", "driver")]
    return bool(noted) and [noted.torch, noted.driver] == now


def estimate_s(items: Sequence[Item], mode: Mode = "auto") -> float | None:
    """Seconds that measuring what is `due` will take; None if nothing was measured yet."""
    return expected_s([item.last_seconds for item in due(items, mode)])


def main() -> int:
    """Record what standard input asks for; see the module's docstring. Returns the status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        request = json.load(sys.stdin)
        root = Path(request["root"])
        here = host.here()
        items = plan(for_builds(request["shown"]), root, here)
        if request.get("mode") != "remeasure":  # what failed with this code would fail again
            items = [item for item in items if not _has_failed(item, root, here)]
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
