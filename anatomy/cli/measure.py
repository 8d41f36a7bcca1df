"""Commands that measure: every experiment, by its name or by the command it declares."""

import sys
from pathlib import Path
from typing import Any

from anatomy.cli import ceilings, ladder, options, text
from anatomy.cli.output import say, say_recording, show
from anatomy.judge import replication
from anatomy.record import recording, signatures
from anatomy.record.recording import Recording
from anatomy.record.signatures import Signature

# Experiments whose text begins with how the tensors lie in memory, which another one reports.
LAYOUT_FIRST = {"contiguity.bench": "tensor_layout.report"}
# Experiments whose text is made of tables of their own.
OWN_REPORTS = {
    **dict.fromkeys(ceilings.EXPERIMENTS, ceilings.report),
    **dict.fromkeys(ladder.EXPERIMENTS, ladder.report),
}

OPTIONS: dict[str, tuple[Any, Any]] = {
    "format": (options.FormatOption, "text"),
    "save": (options.SaveOption, None),
    "timeout": (options.OwnTimeoutOption, None),
    "allow_foreign": (options.ForeignOption, False),
    "processes": (options.ProcessesOption, None),
}


def measure(
    experiment: Signature, params: dict[str, Any], given: dict[str, Any], package: Path | None
) -> None:
    """Measure one experiment in an isolated process, and print what came of it."""
    params = experiment.bind(**params)  # all of it is possible before anything starts
    folder, is_text = given["save"], given["format"] == "text"
    if folder is not None:
        recording.make_ready(folder)  # before minutes are spent on measuring
    parts = []
    first = LAYOUT_FIRST.get(experiment.name)
    if first and is_text and package is None:
        layout = signatures.signature(first)
        shared = {each.name: params[each.name] for each in layout.parameters}
        once = given | {"processes": 1}  # where tensors lie is no matter of chance
        parts.append(text.layout(measured(layout, shared, once, package).rows))
    found = measured(experiment, params, given, package, folder)
    if not is_text:
        say_recording(found, given["format"])
    elif experiment.name in OWN_REPORTS and package is None:
        show(_origin(found), *OWN_REPORTS[experiment.name](found))
    else:
        report = text.report(found, ceilings.known(found.machine))
        say("\n\n".join(filter(None, [_origin(found), *parts, report])))
    if found.path is not None:
        print(f"saved as {found.path}", file=sys.stderr)


def _origin(found: Recording) -> str:
    """What was measured on what, and in how many processes if there were several."""
    method = found.data.get("method", {})
    several = [replication.described(method["processes"])] if "processes" in method else []
    return "\n".join([text.provenance(found), *several])


def measured(
    experiment: Signature,
    params: dict[str, Any],
    given: dict[str, Any],
    package: Path | None = None,
    folder: Path | None = None,
) -> Recording:
    """Measure, and bring the result into the form that a recording has on disk. `given` has
    `timeout`, `allow_foreign` and `processes`."""
    # The record half; nothing above needs it, and `--help` must not wait for it.
    from anatomy.record import occasions, progress, recorder
    from anatomy.record.processes import isolation

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
    # Saved and read in any case, so that what is printed is what a recording would hold.
    with isolation.temporary_folder() as away:
        root = folder or Path(away)
        data = occasions.adding(data, root, experiment.defaults)
        found = recording.load(recording.save(data, root, defaults=experiment.defaults))
        return found if folder else Recording(found.data)
