"""A traced run on a page: lanes of host and GPU, what each did, and the trace to download."""

import json
import zlib
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import chain
from typing import Any

from anatomy.figures import framing, tables
from anatomy.figures.charts import figures
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import Canvas
from anatomy.figures.diagrams.lanes import COPY, KERNEL, LANE, LAUNCH, WAIT, Lanes
from anatomy.judge.rows import Row
from anatomy.record.showing import Found, current
from anatomy.table import kernel_names, units
from anatomy.table.errors import BadParameter, UnknownName

DRAWN = ("CPU", "GPU")  # lanes that are drawn, from above; others are in the download alone
PARTS = "step"  # lane of the parts of a step, which stand over these by their names
GPU = "GPU"
LARGEST_BYTES = 300_000  # of a trace to download, compressed
# Kind of event -> its colour, and how its box looks beside that: never colour alone.
KINDS = {
    "launch": (LAUNCH, {"tall": 0.55}),
    "wait": (WAIT, {"frame": True}),
    "kernel": (KERNEL, {}),
    "copy": (COPY, {"tall": 0.55}),
    "fill": (COPY, {"tall": 0.3}),
}
FILL = "Memset"  # how the driver's fills are called, which are recorded as copies


def timeline(
    experiment: str,
    *,
    runs: Sequence[str] | None = None,
    pauses: Mapping[str, str] | None = None,
    caption: str | None = None,
    **params: Any,
) -> str:
    """A trace as lanes over time, a panel for each run, with a table and a Chrome trace.

        timeline("sync_points.timeline", caption="Above the host's calls, below the kernels.")

    Args:
        experiment: Its name; its rows are events, with `run`, `lane`, `kind`, `variant`, `start_s`
            and `end_s`.
        runs: The runs shown, in this order; by default all.
        pauses: Run -> what stands under its GPU's longest pause.

    Raises:
        BadParameter: The trace is larger than a page may hold.
    """
    found = current().find(experiment, **params)
    return framing.exhibit(
        found, caption, lambda: _shown(found, runs, pauses or {}), kind="timeline"
    )


def by_run(table: Sequence[Row], runs: Sequence[str] | None = None) -> dict[str, list[Row]]:
    """The events of each run that has some, by their start; UnknownName for one not there."""
    columns = {name for row in table for name in row}
    if "run" not in columns:
        raise UnknownName("column", "run", columns)
    there = list(dict.fromkeys(row["run"] for row in table))
    for run in runs or ():
        if run not in there:
            raise UnknownName("run", run, there)
    events = [row for row in table if not units.missing(row.get("start_s"))]
    events.sort(key=lambda row: (row["start_s"], row["end_s"]))
    found = {run: [row for row in events if row["run"] == run] for run in runs or there}
    return {run: each for run, each in found.items() if each}


def still(events: Sequence[Row]) -> tuple[float, float, float]:
    """Seconds in which the GPU had nothing to do, those of its whole run, and its longest pause."""
    lane = [(row["start_s"], row["end_s"]) for row in events if row["lane"] == GPU]
    if not lane:
        return 0.0, 0.0, 0.0
    lasts = [end - start for start, end in _pauses(events)]
    span = max(end for _, end in lane) - min(start for start, _ in lane)
    return sum(lasts), span, max(lasts, default=0.0)


def _pauses(events: Sequence[Row]) -> list[tuple[float, float]]:
    """From when to when the GPU had nothing to do, between what it did."""
    lane = sorted((row["start_s"], row["end_s"]) for row in events if row["lane"] == GPU)
    found, reached = [], lane[0][0] if lane else 0.0
    for start, end in lane:
        if start > reached:
            found.append((reached, start))
        reached = max(reached, end)
    return found


def chrome_trace(runs: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """The events in the format of chrome://tracing and Perfetto, a process for each run. Source:
    Google, Trace Event Format: complete events (`X`), times in microseconds."""
    events: list[dict[str, Any]] = []
    for process, (run, rows_of) in enumerate(runs.items(), start=1):
        lanes = sorted({row["lane"] for row in rows_of})
        named = {"ph": "M", "pid": process}
        events.append(named | {"tid": 0, "name": "process_name", "args": {"name": run}})
        for thread, lane in enumerate(lanes, start=1):
            events.append(named | {"tid": thread, "name": "thread_name", "args": {"name": lane}})
            for row in (row for row in rows_of if row["lane"] == lane):
                seconds = (row["start_s"], row["end_s"] - row["start_s"])
                start, lasts = (round(each * 1e6, 3) for each in seconds)
                event = {"ph": "X", "name": row["variant"], "cat": row["kind"], "pid": process}
                events.append(event | {"tid": thread, "ts": start, "dur": lasts})
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _shown(found: Found, wanted: Sequence[str] | None, pauses: Mapping[str, str]) -> str:
    table = found.recording.rows
    runs = by_run(table, wanted)
    if not runs:
        reason = next((row["note"] for row in table if row.get("note")), "there are no events")
        return f'<p class="why">{escape(reason)}</p>'
    lanes = (*DRAWN, PARTS)
    drawn = {run: [row for row in events if row["lane"] in lanes] for run, events in runs.items()}
    each = figures.twin(_events(drawn)) + _download(found.name, runs)
    return _chart(runs, drawn, pauses) + _summary(runs) + each


def _chart(
    runs: Mapping[str, Sequence[Row]], drawn: Mapping[str, Sequence[Row]], pauses: Mapping[str, str]
) -> str:
    until = max(row["end_s"] for events in runs.values() for row in events)
    label = (
        f"Lanes of the host and of the GPU over time, in the runs {', '.join(runs)}. The table "
        "under them has the sums, and the one folded under that each event."
    )
    return canvas.both(lambda sheet: _lanes(sheet, drawn, until, pauses), label)


def _lanes(
    sheet: Canvas, drawn: Mapping[str, Sequence[Row]], until_s: float, pauses: Mapping[str, str]
) -> None:
    """The events of each run, all on one scale, under what their boxes mean."""
    there = _kinds(chain(*drawn.values()))
    x = 0.0
    for kind in there:
        colour, look = KINDS[kind]
        frame = {"edge": colour, "dashed": True, "opacity": 0.12} if look.get("frame") else {}
        tall = 11 * look.get("tall", 1.0)
        sheet.box(x, 14 - tall, 11, tall, fill=colour, **frame)
        x += 16 + sheet.words(x + 16, 13, kind, size=11) + 16
    lanes = Lanes(sheet, until_s)
    for run, events in drawn.items():
        y = sheet.height + 26
        sheet.words(0, y, run, bold=True)
        y += 8
        parts = [row for row in events if row["lane"] == PARTS]
        y += 16 if parts else 0
        for row in parts:
            lanes.part(y - 4, row["start_s"], row["end_s"], str(row["variant"]), 2 * LANE)
        lanes.pair(y)
        for row in (row for row in events if row["lane"] in DRAWN):
            colour, look = KINDS[_kind(row)]
            level = y + LANE * DRAWN.index(row["lane"])
            told = f"{_kind(row)} {_name(row)}, {_start(row)} into {run}: {_lasts(row)}"
            lanes.box(level, row["start_s"], row["end_s"], colour, told=told, **look)
        y += 2 * LANE
        if run in pauses and (found := _pauses(events)):
            longest = max(found, key=lambda pause: pause[1] - pause[0])
            lanes.pause(y - 5, *longest, pauses[run], WAIT)
            y += 20
        lanes.axis(y)


def _kind(row: Row) -> str:
    """What an event is: of copies those that only fill are told apart."""
    fills = row["kind"] == "copy" and str(row["variant"]).startswith(FILL)
    return "fill" if fills else row["kind"]


def _kinds(events: Iterable[Row]) -> list[str]:
    """The kinds that there are."""
    there = {_kind(row) for row in events}
    return [kind for kind in KINDS if kind in there]


def _name(row: Row) -> str:
    return kernel_names.short(row["variant"]) if row["lane"] == GPU else str(row["variant"])


def _start(row: Row) -> str:
    return units.seconds(row["start_s"]) if row["start_s"] > 0 else "0"


def _lasts(row: Row) -> str:
    return units.seconds(row["end_s"] - row["start_s"])


def _summary(runs: Mapping[str, Sequence[Row]]) -> str:
    body = []  # without fills, which are short and belong to the kernels that begin with them
    kinds = [kind for kind in _kinds(chain(*runs.values())) if kind != "fill"]
    for run, events in runs.items():
        cells = [tables.code(run)]
        for kind in kinds:
            each = [row["end_s"] - row["start_s"] for row in events if _kind(row) == kind]
            cells.append(f"{len(each)} in {units.seconds(sum(each))}" if each else tables.NONE)
        idle, span, longest = still(events)
        share = f" ({units.percent(idle / span)})" if span else ""
        body.append([*cells, f"{units.seconds(idle)}{share}", units.seconds(longest)])
    plural = {"launch": "launches", "copy": "copies"}
    each_kind = [f"#{plural.get(kind, f'{kind}s')}" for kind in kinds]
    heads = ["run", *each_kind, "#GPU idle", "#longest pause"]
    return tables.listed(heads, body, "What each run did: how many, and how long in all")


def _events(drawn: Mapping[str, Sequence[Row]]) -> str:
    columns = [
        ("run", lambda row: tables.code(row["run"])),
        ("lane", lambda row: escape(str(row["lane"]))),
        ("kind", lambda row: escape(_kind(row))),
        ("name", lambda row: tables.code(_name(row))),
        ("#start", _start),
        ("#duration", _lasts),
    ]
    events = [row for each in drawn.values() for row in each]
    return tables.by_columns(columns, events, "Events in order of their start")


def _download(name: str, runs: Mapping[str, Sequence[Row]]) -> str:
    """A link that holds the trace itself, so that the page needs no second file."""
    text = json.dumps(chrome_trace(runs), separators=(",", ":"))
    # As gzip.compress does, but for its header, which differs between versions of Python.
    packed = zlib.compress(text.encode(), 9, wbits=31)
    if len(packed) > LARGEST_BYTES:
        raise BadParameter(
            f"the trace of {name} has {len(packed)} bytes, and a page may hold {LARGEST_BYTES}: "
            "trace fewer steps."
        )
    count = sum(map(len, runs.values()))
    address = f"data:application/gzip;base64,{b64encode(packed).decode()}"
    return (
        f'<p class="key"><a download="{escape(name)}.trace.json.gz" href="{address}">Chrome trace'
        f"</a>, {count} events, {units.byte_count(len(packed))}: open it in Perfetto or in "
        "chrome://tracing.</p>"
    )
