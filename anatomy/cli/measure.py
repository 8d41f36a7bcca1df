"""Commands that measure: every experiment, by its name or by the command it declares."""

import sys
from pathlib import Path
from typing import Any

from anatomy.cli import ceilings, ladder, options, text
from anatomy.cli.options import Format
from anatomy.cli.output import as_csv, say, show, tidy
from anatomy.judge import limits, replication
from anatomy.record import reading, recording
from anatomy.record.recording import Recording
from anatomy.record.signatures import Signature
from anatomy.table.errors import RecordingError

# Experiments whose text begins with how the tensors lie in memory, which another one reports.
LAYOUT_FIRST = {"contiguity.bench": "tensor_layout.report"}

OPTIONS: dict[str, tuple[Any, Any]] = {
    "format": (options.FormatOption, Format.TEXT),
    "save": (options.SaveOption, None),
    "timeout": (options.OwnTimeoutOption, None),
    "allow_foreign": (options.ForeignOption, False),
    "processes": (options.ProcessesOption, None),
}


def measure(
    experiment: Signature, params: dict[str, Any], given: dict[str, Any], package: Path | None
) -> None:
    """Measure one experiment in an isolated process, and print what came of it.

    Raises:
        AnatomyError: It could not be measured, or not be saved; nothing half-written is left.
    """
    folder = given["save"]
    if folder is not None:
        recording.make_ready(folder)  # before minutes are spent on measuring
    parts = []
    first = LAYOUT_FIRST.get(experiment.name)
    if first and given["format"] is Format.TEXT and package is None:
        from anatomy.record import signatures

        layout = signatures.signature(first)
        shared = {each.name: params[each.name] for each in layout.parameters}
        once = given | {"processes": 1}  # where tensors lie is no matter of chance
        parts.append(text.layout(_measured(layout, shared, once, package).rows))
    found = _measured(experiment, params, given, package, folder)
    if given["format"] is Format.JSON:
        say(recording.render(recording.compacted(found.judged)))
    elif given["format"] is Format.CSV:
        say(as_csv(tidy([found])))
    elif experiment.name in ceilings.EXPERIMENTS and package is None:
        show(_origin(found), *ceilings.report(found))
    elif experiment.name in ladder.EXPERIMENTS and package is None:
        show(_origin(found), *ladder.report(found))
    else:
        said = text.report(found, known_ceilings(found.machine))
        say("\n\n".join([_origin(found), *parts, *said.split("\n\n")[1:]]))
    if found.path is not None:
        print(f"saved as {found.path}", file=sys.stderr)


def _origin(found: Recording) -> str:
    """What was measured on what, and in how many processes if there were several."""
    method = found.data.get("method", {})
    several = [replication.described(method["processes"])] if "processes" in method else []
    return "\n".join([text.provenance(found), *several])


def _measured(experiment, params, given, package, folder=None) -> Recording:
    """Measure, and bring the result into the form that a recording has on disk."""
    # The record half; nothing above needs it, and `--help` must not wait for it.
    from anatomy.record import isolation, progress, recorder

    with progress.Reporter([None]) as reporter:
        what = experiment.title(params)
        data = recorder.run(
            experiment.name,
            params,
            timeout_s=given["timeout"],
            allow_foreign=given["allow_foreign"],
            package=package,
            processes=given["processes"],
            tell=reporter.begin,
        )
        start_s = data["method"]["start_s"]
        took = f"{progress.duration(data['seconds'])}, of which {progress.duration(start_s)}"
        reporter.end(what, f"{took} to start")
    if folder is not None:
        saved = recording.save(data, folder, defaults=experiment.defaults)
        return recording.load(saved)
    # Saved and read all the same, so that what is printed is what a recording would hold.
    with isolation.temporary_folder() as away:
        saved = recording.save(data, Path(away), defaults=experiment.defaults)
        return Recording(recording.load(saved).data)


def known_ceilings(machine: str) -> limits.Ceilings | None:
    """The ceilings of the machine, where there is a folder that may have them."""
    try:
        return reading.ceilings(recording.default_root(), machine)
    except RecordingError:
        return reading.ceilings(Path("recordings"), machine)
