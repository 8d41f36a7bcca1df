"""The rows that several fresh processes returned, as one table, and their recordings as one.

What each figure of a merged row means, and why, says `anatomy.judge.replication`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from statistics import median
from typing import Any

from anatomy.judge.comparisons import PRECISION, RATIOS, TIMES, Row, in_columns
from anatomy.judge.replication import EXACT_FROM, Replicated, pooled, verdict
from anatomy.table import columns, intervals
from anatomy.table.errors import MeasurementError
from anatomy.table.intervals import Interval

# What a row is called by. What else tells rows apart (m, dtype, ...) is found in the tables.
NAMES = ("op", "variant", "role", "quantity")
PARTS_S = ("start_s", "measured_s", "compiling_s")  # of a process's time, as its method tells them


def merged(tables: Sequence[Sequence[Mapping[str, Any]]]) -> list[Row]:
    """The rows of one experiment or comparison, measured in several fresh processes, as one table.

    A merged row has `runs` (their number), `run_medians_s`, `run_ratios`, `run_blocks` (blocks of
    each) and `interval` beside the usual columns. A column's declaration says how its values become
    one (`MERGE`). Where it says nothing, a number is the median (for names with `low` or `high` the
    lowest or highest); what should be equal and is not (kernels, a regime, an address) is null or
    the first process's, and the row's `note` says so. A row that one process could not measure is
    not measured, with that process's reason; one that is impossible in one stays impossible.

    Rows are matched by op, variant, role, quantity and whatever else tells them apart in every
    table alike, such as m or dtype, in the first table's order. A row that is not in every process,
    or did other work in one, raises a MeasurementError. A single table's rows stay as they are.
    """
    if len(tables) == 1:
        return [dict(row) for row in tables[0]]
    names = [*NAMES, *_identifying(tables)]
    sorted_out = [_numbered(table, names) for table in tables]
    first = sorted_out[0]
    for number, found in enumerate(sorted_out, 1):
        for one, has, other, lacks in ((first, 1, found, number), (found, number, first, 1)):
            if lost := next((key for key in one if key not in other), None):
                raise MeasurementError(
                    f"The row {_called(names, lost)} is missing in process {lacks} of "
                    f"{len(tables)}, and there in process {has}. What can't be measured must be a "
                    "row with a note, in every process."
                )
    return [merged_row([found[key] for found in sorted_out]) for key in sorted_out[0]]


def _identifying(tables: Sequence[Sequence[Mapping]]) -> list[str]:
    """Columns beside `NAMES` whose values are the same in all tables, and so tell rows apart."""
    found = []
    for column in dict.fromkeys(name for table in tables for row in table for name in row):
        if not columns.identifies(column):
            continue
        values = [row.get(column) for table in tables for row in table]
        declared = columns.column(column)
        # What nobody declared is a figure, more likely than not, if it has a unit, or is a flag or
        # a fraction, which no size that was asked for is. Rows are then matched by their order.
        figure = declared.unit or any(isinstance(value, bool | float) for value in values)
        if figure and not declared.meaning:
            continue
        counts = [Counter(_key(row, (*NAMES, column)) for row in table) for table in tables]
        if all(count == counts[0] for count in counts):
            found.append(column)
    return found


def _key(row: Mapping, names: Iterable[str]) -> tuple:
    return tuple(_hashable(row.get(name)) for name in names)


def _hashable(value: Any) -> Any:
    return repr(value) if isinstance(value, list | dict) else value


def _numbered(table: Sequence[Mapping], names: Sequence[str]) -> dict[tuple, Mapping]:
    """Rows by what identifies them; of equals, the first meets the first of another table."""
    found, seen = {}, Counter()
    for row in table:
        key = _key(row, names)
        found[*key, seen[key]] = row
        seen[key] += 1
    return found


def _called(names: Sequence[str], key: Sequence) -> str:
    known = (each for each in zip(names, key, strict=False) if each[1] is not None)
    return ", ".join(f"{name}={value}" for name, value in known)


def merged_row(found: Sequence[Mapping[str, Any]]) -> Row:
    """One row from the matching rows of all processes, as kept or with all that follows."""
    lacking = [row.get("median_s") is None and not row.get("blocks_s") for row in found]
    if any(lacking) and not all(lacking):
        at = lacking.index(True)
        why = found[at].get("note") or "no reason given"
        note = f"not measured in process {at + 1} of {len(found)}: {why}"
        return {**found[at], "note": note, "runs": len(found)}
    _require_same_work(found)
    notes: list[str] = []
    row = {}
    for column in dict.fromkeys(column for each in found for column in each):
        values = [each.get(column) for each in found]
        declared = columns.column(column)
        if declared.merge:
            row[column] = MERGE[declared.merge](values)
        elif all(value == values[0] for value in values):
            row[column] = values[0]
        elif column not in (*TIMES, *RATIOS, "verdict", "note"):
            row[column] = _differing(column, values, notes)
    if not all(lacking):
        row |= _figures(found)
    if any(each.get("verdict") == "impossible" for each in found):
        row["verdict"] = "impossible"
    elif row.get("role") in ("control", "again"):
        row["verdict"] = found[0].get("verdict")
    elif row.get("run_ratios"):
        row["verdict"] = verdict(_ratios(found), row.get("noise_floor"))
    elif any(each.get("verdict") != found[0].get("verdict") for each in found):
        row["verdict"] = "undecided"
    notes = [*_notes([each.get("note") for each in found]), *notes]
    return row | {"note": "; ".join(notes)} if notes else row


def _require_same_work(found: Sequence[Mapping[str, Any]]) -> None:
    """Refuse rows that differ in a column in which they must agree, such as `flops`."""
    for column in columns.must_match():
        values = {number: row.get(column) for number, row in enumerate(found, 1)}
        known = {number: value for number, value in values.items() if value is not None}
        other = next((n for n in known if known[n] != known[min(known)]), None)
        if other is not None:
            row = _called(NAMES, [found[0].get(name) for name in NAMES])
            raise MeasurementError(
                f"The row {row} has {column}={known[min(known)]} in process {min(known)} and "
                f"{column}={known[other]} in process {other}. That is other work: measure all "
                "processes with the same code and the same parameters."
            )


def _figures(found: Sequence[Mapping]) -> Row:
    """Times, ratios and blocks of the matching rows; of what is kept alone, the blocks."""
    blocks = {}
    if all(row.get("blocks_s") for row in found):
        blocks["run_blocks"] = [len(row["blocks_s"]) for row in found]
    if all(row.get("median_s") is None for row in found):
        return {"runs": len(found), **blocks}
    time = pooled([_interval(row, TIMES) for row in found])
    figures = in_columns(TIMES, time.interval)
    figures |= {"runs": len(found), "run_medians_s": time.runs, "interval": time.label}
    if all(row.get("low_s") is None for row in found) and time.label == "envelope":
        figures |= {"low_s": None, "high_s": None, "interval": None}
    figures |= blocks
    if all(row.get("ratio") is not None for row in found):
        ratios = _ratios(found)
        figures |= in_columns(RATIOS, ratios.interval) | {"run_ratios": ratios.runs}
    elif any("ratio" in row for row in found):
        figures |= dict.fromkeys(RATIOS)
    if any("wide" in row for row in found):
        half = intervals.half_width(time.interval)
        figures["wide"] = any(row.get("wide") for row in found) or half > PRECISION
    return figures


def _ratios(found: Sequence[Mapping]) -> Replicated:
    return pooled([_interval(row, RATIOS) for row in found], logarithmic=True)


def _interval(row: Mapping, names: Sequence[str]) -> Interval:
    """A row's own figure with its interval; exact if there were blocks enough for one."""
    figure, low, high = (row.get(name) for name in names)
    enough = len(row.get("blocks_s") or []) >= EXACT_FROM and low is not None
    low, high = (figure if end is None else end for end in (low, high))
    return Interval(figure, low, high, enough)


def _differing(column: str, values: list, notes: list[str]) -> Any:
    """What stands for values that differ: a number for measured ones, else nothing and a note."""
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        parts = column.split("_")
        if "low" in parts or "high" in parts:
            return min(values) if "low" in parts else max(values)
        if any(isinstance(value, float) for value in values):
            return median(values)
    if column == "kernels":
        notes.append("the processes launched different kernels; those of the first are named")
        return values[0]
    distinct = dict.fromkeys("not measured" if v is None else _hashable(v) for v in values)
    notes.append(f"{column} differs between the processes: {', '.join(map(str, distinct))}")
    return None


def _notes(values: Sequence[str | None]) -> list[str]:
    """What all say, once; what one says, with its number."""
    if all(value == values[0] for value in values):
        return [values[0]] if values[0] else []
    return [f"process {i} of {len(values)}: {v}" for i, v in enumerate(values, 1) if v]


def _of_known(how: Callable[[list], Any], values: list) -> Any:
    """`how` of the values that were measured; None if none was."""
    known = [value for value in values if value is not None]
    return how(known) if known else None


def _of_all(how: Callable[[list], Any], values: list) -> Any:
    """`how` of the values if all were measured."""
    return None if None in values else how(values)


def _united(texts: list[str]) -> str | None:
    return ", ".join(sorted({part for text in texts for part in text.split(", ")})) or None


# What a column's declaration says in `merge` -> how one value comes from those of all processes.
# Of the samples `p5_s` is the lowest and `p95_s` the highest, so that nine tenths of every
# process's lie between.
MERGE: dict[str, Callable[[list], Any]] = {
    "joined": partial(_of_all, lambda lists: [item for items in lists for item in items]),
    "first": lambda values: values[0],
    "sum": partial(_of_known, sum),
    "lowest": partial(_of_all, min),
    "highest": partial(_of_all, max),
    "highest known": partial(_of_known, max),
    "median": partial(_of_known, median),
    "any": partial(_of_known, any),
    "united": partial(_of_known, _united),
    "distinct": partial(_of_known, lambda texts: "; ".join(dict.fromkeys(texts)) or None),
    "worst throttle": lambda words: next(
        (word for word in ("power-limited", "unknown") if word in words), words[0]
    ),
}


def merged_outcomes(outcomes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The blocks of one recording from what `worker.measure` returned in each process, in order.

    `machine`, `software` and what is not named here are the first's; `method` says how many
    processes there were, when each began (`runs`), and sums `PARTS_S`.
    `conditions` are those before the first and after the last. A MeasurementError is raised where
    the machine or the software changed in between, or a row is missing.
    """
    first, count = outcomes[0], len(outcomes)
    if count == 1:
        return dict(first)
    for (number, outcome), block in product(enumerate(outcomes, 1), ("machine", "software")):
        for name, known in first.get(block, {}).items():
            if known != (now := outcome[block].get(name)):
                raise MeasurementError(
                    f"Process {number} of {count} had {block} {name} {now!r}, and the first had "
                    f"{known!r}. Measure all of them on one machine."
                )
    methods = [outcome["method"] for outcome in outcomes]
    parts = [name for name in PARTS_S if any(name in method for method in methods)]
    total = {name: sum(method.get(name, 0.0) for method in methods) for name in parts}
    began = [{"started_at": outcome["started_at"]} for outcome in outcomes]
    took = [{name: method[name] for name in total if name in method} for method in methods]
    floors = [outcome["noise_floor"] for outcome in outcomes]
    return {
        **first,
        "method": {
            **first["method"],
            **{name: round(seconds, 3) for name, seconds in total.items()},
            "process": f"{count} fresh processes",
            "processes": count,
            "runs": [one | other for one, other in zip(began, took, strict=True)],
        },
        "conditions": {
            "before": first["conditions"]["before"],
            "after": outcomes[-1]["conditions"]["after"],
        },
        "noise_floor": {
            name: max(floor[name] for floor in floors if name in floor)
            for name in dict.fromkeys(name for floor in floors for name in floor)
        },
        "rows": merged([outcome["rows"] for outcome in outcomes]),
        "warnings": merged_warnings([outcome["warnings"] for outcome in outcomes]),
    }


def merged_warnings(found: Sequence[Sequence[str]]) -> list[str]:
    """Every warning once; one that not every process gave begins with the processes' numbers."""
    said = []
    for text in dict.fromkeys(text for warnings in found for text in warnings):
        at = [str(number) for number, warnings in enumerate(found, 1) if text in warnings]
        some = f"process {', '.join(at)} of {len(found)}: " if len(at) < len(found) else ""
        said.append(some + text)
    return said
