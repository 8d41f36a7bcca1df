"""A reader's own script, run in several fresh processes: its comparisons become one each. What each
call of `anatomy.compare` found is merged as the tables of an experiment are;
`anatomy.judge.replication` says what that may claim."""

import os
import runpy
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from anatomy.diagnosis.scripts import leave
from anatomy.judge import merging
from anatomy.machine import versions
from anatomy.record.processes import handover, isolation
from anatomy.table.errors import BadParameter, MeasurementError

SAME_THINGS = "A script that is replicated must compare the same things in every process."


def replicate(
    script: Path,
    arguments: Sequence[str] = (),
    *,
    processes: int,
    timeout_s: float | None = None,
    tell: Callable[[int], None] | None = None,
    heard: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:
    """Run a script in fresh processes, one after the other, and merge each of its comparisons.
    `tell` is called with the number of each process, from 1, before it begins, and `heard` with
    each line that the first one prints. A MeasurementError has the last lines as its `output`."""
    versions.require_torch()
    if not script.is_file():
        raise BadParameter(f"There is no script {script}. Name a Python file that calls compare.")
    if processes < 1:
        raise BadParameter(f"{processes} processes measure nothing; ask for 1 or more.")
    with isolation.only_recorder():
        runs: list[list[dict]] = []
        for number in range(1, processes + 1):
            if tell:
                tell(number)
            which = f"{script} in process {number} of {processes}"
            with isolation.script_run(
                ["-P", "-m", "anatomy.diagnosis.replicas", str(script), *arguments],
                name=which,
                variable=handover.VARIABLE,
                timeout_s=timeout_s,
                heard=heard if number == 1 else None,
            ) as file:
                runs.append(handover.handed_over(file))
            if number == 1 and not runs[0]:
                raise MeasurementError(
                    f"{script} never called compare, so there is nothing to replicate. Let it call "
                    "anatomy.compare with the variants to be compared."
                )
            _require_same(runs, which)
    return [
        {
            "rows": merging.merged([each["rows"] for each in found]),
            "noise_floor": max(each["noise_floor"] for each in found),
            "warnings": merging.merged_warnings([each["warnings"] for each in found]),
        }
        for found in zip(*runs, strict=True)
    ]


def _require_same(runs: Sequence[Sequence[dict]], which: str) -> None:
    """Refuse a last run that compared something else than the first."""
    first, last = runs[0], runs[-1]
    if len(first) != len(last):
        now, before = (
            "1 comparison" if len(run) == 1 else f"{len(run)} comparisons" for run in (last, first)
        )
        raise MeasurementError(f"{which} made {now}, and the first made {before}. {SAME_THINGS}")
    for place, pair in enumerate(zip(first, last, strict=True), 1):
        before, now = (_identity(comparison["rows"]) for comparison in pair)
        for what in before:
            if before[what] != now[what]:
                raise MeasurementError(
                    f"In comparison {place} {which} had the {what} {now[what]}, and the first had "
                    f"{before[what]}. {SAME_THINGS}"
                )


def _identity(rows: Sequence[dict]) -> dict[str, str]:
    """What a comparison is known by, beside its place."""
    columns = {"operation": "op", "quantity": "quantity", "device": "device"}
    shared = {what: repr(rows[0].get(column)) for what, column in columns.items()}
    return shared | {"variants": ", ".join(repr(row["variant"]) for row in rows)}


def main(arguments: Sequence[str]) -> None:
    """What each fresh process does: run the script as Python would, and leave when it is through,
    unless a thread that it left is still to call compare."""
    sys.argv = [*arguments]
    sys.path.insert(0, str(Path(sys.argv[0]).resolve().parent))
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    except BaseException:
        traceback.print_exc()
        leave(1)
    if handover.handed_over(Path(os.environ[handover.VARIABLE])):
        leave()


if __name__ == "__main__":
    main(sys.argv[1:])
