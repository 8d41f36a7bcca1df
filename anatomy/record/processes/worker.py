"""One experiment in a process of its own: `python -m anatomy.record.processes.worker`. The task
comes as JSON on standard input, the outcome goes as JSON into the file that it names. An experiment
may print, crash, or run out of memory without touching another one's CUDA context."""

import contextlib
import json
import math
import os
import re
import sys
import time
import traceback
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from anatomy import judge
from anatomy.machine import host, versions
from anatomy.record import declare, recording, signatures
from anatomy.record.provenance import canonical
from anatomy.table import columns, units
from anatomy.table.errors import AnatomyError, Busy, MeasurementError, OutOfMemory

# Folders with an experiment's own files, directly or one or two folders below: of this package, and
# of another one that has a single folder of them.
OWN_FOLDERS = {"chapters", "experiments"}


def measure(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one experiment and return the fields of its recording that this process knows. `spec` has
    `experiment`, `params`, `package` (another one's folder, or None), `spawned` (time.time() at the
    start), `process` (how it began) and `allow_foreign`. Raises Busy where another process computes
    on the card."""
    name, params = spec["experiment"], spec["params"]
    device = params.get("device", "cpu")
    host.require_device(device)
    process = f"one process, {spec.get('process', 'fresh')}"
    if params.get("backend") == "inductor" and device.startswith("cuda"):
        process += _begin_compilers()
    with signatures.unchanging(None if spec["package"] else signatures.declaring(name)):
        function = declare.load(name, spec["package"] and Path(spec["package"]))
    if spec["allow_foreign"]:
        os.environ["ANATOMY_ALLOW_FOREIGN"] = "1"  # compare asks again, for callers without us
    else:
        refuse_company(device)
    started = datetime.now(UTC)
    before = host.conditions(device)
    start_s = time.time() - spec["spawned"]
    clock, waited_before_s, compiled_before = time.monotonic(), _waited_s(), _compilations()
    table = function(**params)
    measured_s, waited_s = time.monotonic() - clock, _waited_s() - waited_before_s
    # Of very many compilations torch keeps the last 64.
    compiled = [each for each in _compilations() if all(each is not one for one in compiled_before)]
    compiling_s = sum(each.duration_us or 0 for each in compiled) / 1e6
    after = host.conditions(device)
    rows = rows_of(table, name)
    _warn_of_undeclared(name, rows)
    account = _account(device)
    known = {
        "experiment": name,
        "machine": host.describe(device, int(table.attrs.get("gpus", 1))),
        "method": {
            **account["method"],
            **table.attrs.get("method", {}),
            "process": process,
            "start_s": round(start_s, 3),  # interpreter, torch and the experiment's imports
            "measured_s": round(measured_s - waited_s, 3),
            **({"compiling_s": round(compiling_s, 3)} if compiling_s else {}),  # part of it
            **({"waited_s": round(waited_s, 3)} if waited_s else {}),  # for others' turns
        },
    }
    # What follows from the rows is computed when they are read, and not kept.
    rows = judge.kept(rows, recording.circumstances(known))
    return known | {
        "started_at": started.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "software": versions.installed(),
        "conditions": {"before": before, "after": after},
        "noise_floor": judge.noise_floors(rows),
        "rows": rows,
        "warnings": [*account["warnings"], *table.attrs.get("warnings", [])],
    }


def rows_of(table: Any, name: str) -> list[dict[str, Any]]:
    """The rows of a table as plain JSON values; NaN, NaT, NA and infinities become None, and are
    left out where its attribute `sparse` says that rows are of several kinds. MeasurementError
    where it is no table, is empty, or holds something JSON has no word for."""
    if not isinstance(table, pd.DataFrame):
        raise MeasurementError(f"{name} returned a {type(table).__name__}, not a DataFrame.")
    if table.empty:
        raise MeasurementError(f"{name} returned no rows.")
    if not table.columns.is_unique:
        raise MeasurementError(f"{name} returned a table with two columns of one name.")
    whole = table.astype(object)
    for column in table.select_dtypes("float"):
        # A gap has turned whole numbers into 240.0; they are whole again here.
        known = table[column].dropna()
        if len(known) < len(table) and (known % 1 == 0).all():
            counts = [None if pd.isna(x) else int(x) for x in table[column]]
            whole[column] = pd.Series(counts, table.index, dtype=object)
    try:
        rows = canonical.plain(whole.to_dict("records"), "rows", _if_finite)
    except ValueError as error:
        raise MeasurementError(f"{name} returned what no recording can keep: {error}.") from None
    if table.attrs.get("sparse"):
        return [{key: value for key, value in row.items() if value is not None} for row in rows]
    return rows


def _warn_of_undeclared(name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Say which columns nobody declared: they are kept, and a test refuses their recording."""
    if unknown := columns.undeclared(name, [column for row in rows for column in row]):
        warnings.warn(
            f"{name} returned columns that nobody declared: {', '.join(unknown)}. Say what they "
            "mean in the file of columns of its topic.",
            stacklevel=2,
        )


def _if_finite(number: float, place: str) -> float | None:
    return number if math.isfinite(number) else None


def refuse_company(device: str) -> None:
    """Raise Busy where another process computes on a device."""
    if others := host.foreign_processes(device):
        several = len(others) > 1
        raise Busy(
            f"{'Processes' if several else 'Process'} {', '.join(map(str, others))} "
            f"{'compute' if several else 'computes'} on {device} too, and would share its time, "
            "cache and power. Wait, or end it, or measure all the same with --allow-foreign."
        )


def _waited_s() -> float:
    """What this process has waited so far for the turns of workers on other GPUs."""
    turns = sys.modules.get("anatomy.measure.turns")
    return turns.waited_s if turns else 0.0


def _begin_compilers() -> str:
    """Begin the processes in which Triton compiles, and say so. They take seconds to import torch;
    until they have, a first compilation does without them, and takes seconds longer than others."""
    with contextlib.suppress(Exception):  # the compiler's own name for it; it begins them by itself
        from torch._inductor.async_compile import AsyncCompile

        AsyncCompile.use_process_pool()
        return ", the compiler's processes begun"
    return ""


def _compilations() -> Sequence[Any]:
    """What torch.compile says of each of its compilations in this process."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return dynamo.get_compilation_metrics() if dynamo else ()


def _account(device: str) -> dict[str, Any]:
    """What the clock says of itself; an experiment that timed nothing has loaded none."""
    if "anatomy.measure" not in sys.modules:
        return {"method": {}, "warnings": []}
    from anatomy.measure import account

    return account(device)


def failure(error: Exception) -> dict[str, str]:
    """A failure for the recorder: its name, a sentence, and, if unforeseen, the traceback."""
    kind, message, trace = type(error), str(error), ""
    notes = "".join(f" {each}" for each in getattr(error, "__notes__", ()))  # such as its cell
    if isinstance(error, AnatomyError):
        pass
    elif host.is_out_of_memory(error):
        kind, message = OutOfMemory, _out_of_memory(error)
    else:
        first = next(iter(message.strip().splitlines()), "")
        message = f"{kind.__name__}: {first}{_place(error)}{notes and '.'}"
        kind, trace = MeasurementError, "".join(traceback.format_exception(error))
    return {"error": kind.__name__, "message": message + notes, "trace": trace}


def _out_of_memory(error: Exception) -> str:
    """What an allocator says, as one sentence."""
    asked = re.search(r"tried to allocate ([\d.]+) (\w+)", str(error), re.IGNORECASE)
    free = re.search(r"of which ([\d.]+ \w+) is free", str(error))
    amount = "more"
    if asked:
        bytes_ = asked[2] == "bytes"  # torch's allocator on the CPU counts them out
        amount = units.byte_count(int(asked[1])) if bytes_ else f"{asked[1]} {asked[2]}"
    return (
        f"It ran out of memory when it asked for {amount}{f', with {free[1]} free' if free else ''}"
        f"{_place(error)}. Take smaller sizes, or free memory there."
    )


def _place(error: BaseException) -> str:
    """Where in an experiment's file an unexpected error arose."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if OWN_FOLDERS & set(Path(f.filename).parts[-4:-1])]
    return f" ({Path(ours[-1].filename).name}:{ours[-1].lineno})" if ours else ""


def main() -> None:
    """Read the task, measure, write the outcome. Status 0 however the experiment fared."""
    spec = json.load(sys.stdin)
    try:
        if device := spec.get("describe"):
            outcome = {"machine": host.describe(device), "software": versions.installed()}
        else:
            outcome = measure(spec)
    except Exception as error:
        outcome = failure(error)
    Path(spec["result"]).write_text(json.dumps(outcome, allow_nan=False), encoding="utf-8")


if __name__ == "__main__":
    main()
    # Whoever began this process ends its group now. To take Python, CUDA and the compiler's helpers
    # apart one by one would take seconds.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
