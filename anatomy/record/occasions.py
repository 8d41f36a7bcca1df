"""Occasions of a recording: the day, card and host of each time that it was measured. A new
measurement of the same code adds one; the newest is kept in full, and of the last ones before it
their figures, in the recording's field `occasions`."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from anatomy.judge import occasions
from anatomy.judge.occasions import FIGURES, Seen
from anatomy.record import reach, recording
from anatomy.record.provenance import freshness, schema
from anatomy.record.recording import Recording
from anatomy.table.errors import RecordingError

DIGITS = 6  # of a figure that is kept; its interval is seldom narrower than a part in a thousand


def adding(new: Mapping[str, Any], root: Path, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a new recording with the occasions of the one whose place it is to take, if
    that is of the same work: its code, machine, minor version of torch, branch of the driver, and
    number of processes."""
    key = recording.key(new["params"], defaults)
    file = recording.path(root, new["machine"]["slug"], new["experiment"], key)
    try:
        before = recording.load(file)
        earlier = [*_of(before, new)] if _same_work(before.data, new) else []
    except RecordingError:  # nothing there, or nothing that can be trusted
        earlier = []
    return {**new, "occasions": earlier} if earlier else dict(new)


def count(found: Recording) -> int:
    """On how many occasions a recording was measured, as far as it tells."""
    return 1 + len(found.data.get("occasions", ()))


def alone(found: Recording) -> Recording:
    """A recording as if its newest occasion were the only one."""
    data = {name: value for name, value in found.data.items() if name != "occasions"}
    return Recording(data, found.path)


def seen(found: Recording) -> list[Seen]:
    """Each figure of a recording that several occasions found, one of each control alone."""
    earlier = [each["figures"] for each in found.data.get("occasions", ())]
    rows = alone(found).rows if earlier else []
    return occasions.telling(occasions.seen(rows, earlier))


def commit(root: Path, machine: str, found: Iterable[Recording]) -> Path | None:
    """Write how far a later occasion's figure may lie beyond those of all recordings of a machine;
    returns the file. Where none has several occasions, the file is removed, and there is none."""
    file = Path(root) / machine / reach.FILE
    told = pooled(found)
    try:
        if told is None:
            file.unlink(missing_ok=True)
            return None
        recording.write_whole(file, json.dumps(told, indent=1, sort_keys=True) + "\n")
    except OSError as error:
        why = f"could not be written: {error.strerror}. It is as it was."
        raise RecordingError(f"{machine}/{reach.FILE} {why}") from None
    return file


def pooled(found: Iterable[Recording]) -> dict[str, Any] | None:
    """What the file holds: `reach`, and how many `rows` it rests on, by class and figure."""
    every = [each for one in found for each in seen(one)]
    if not every:
        return None
    rows: dict[str, dict[str, int]] = {}
    for each in every:
        counted = rows.setdefault(each.pace, {})
        counted[each.figure] = counted.get(each.figure, 0) + 1
    factors = {
        pace: {figure: _up(factor) for figure, factor in factors.items()}
        for pace, factors in occasions.pooled(every).items()
    }
    return {"reach": factors, "rows": rows}


def _up(factor: float) -> float:
    """A factor with so many digits that no row is lost to rounding."""
    return round(factor + 5e-6, 5)


def _same_work(before: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return _work(before) == _work(new)


def _work(data: Mapping[str, Any]) -> tuple:
    code, machine = data["code"], data["machine"]
    return (
        *(data["experiment"], data["params"], code["hash"], code.get("scheme", 1)),
        *(machine["slug"], freshness.leading(machine.get("driver"), 1)),
        freshness.leading(data["software"]["torch"], 2),
        data["method"].get("processes", 1),
    )


def _of(before: Recording, new: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The occasions of an older recording, its own as the last, with their figures for new rows."""
    own, data = alone(before).rows, before.data
    places = occasions.matching(new["rows"], own, before.experiment)
    told = {name: data[name] for name in ("started_at", "seconds")}
    told |= {name: data["machine"].get(name) for name in ("card", "cpu", "driver")}
    told |= {"torch": data["software"].get("torch"), "commit": data["code"].get("commit")}
    told["figures"] = {name: [row.get(name) for row in own] for name in FIGURES}
    every = [*data.get("occasions", ()), told][-schema.MOST :]
    return [each | {"figures": _moved(each["figures"], places)} for each in every]


def _moved(figures: Mapping[str, Sequence], places: Sequence[int | None]) -> dict[str, list]:
    """Figures at the places of other rows, rounded; a column without any is left out."""
    found = {
        name: [_kept(None if place is None else values[place]) for place in places]
        for name, values in figures.items()
    }
    return {name: values for name, values in found.items() if any(values)}


def _kept(value: float | None) -> float | None:
    return None if value is None or value <= 0 else float(f"{value:.{DIGITS}g}")
