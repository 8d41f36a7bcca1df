"""A recorded value in a sentence: its text in the format that was asked for, and what is said of it
on hover: exactly what it is, how sure it is, and where from."""

from anatomy.figures.text import spans
from anatomy.judge import rows
from anatomy.record.showing import Found
from anatomy.record.signatures import signature
from anatomy.table import units
from anatomy.table.errors import BadParameter, lookup

# How far a reader's own figure may lie outside ours: room for another card of the same model, its
# clocks and a short run; not for another model, nor for a mistake of a factor.
EXPECTED = 0.2
# No farther than this factor either way, or than our own interval: twice our figure, or half of it,
# is a mistake where our hosts agree better.
FARTHEST = 1.9
SPEED, FACTOR = "speed", "factor"  # formats


def shown(found: Found, row: rows.Row, column: str, spec: str, *, factor: bool = False) -> str:
    """The value in a column of a row as HTML, in the format that a reference asks for; `factor`
    takes the place of percent where it says how fast something is."""
    value = lookup("column", column, row)
    if units.missing(value):
        why = (row.get("note") or "").removeprefix("not measured: ")
        return spans.gap_because(f"not measured: {why}" if why else "not measured")
    if spec == "range":
        if column not in rows.INTERVALS:
            known = ", ".join(rows.INTERVALS)
            raise BadParameter(f"{column} has no interval; those that do: {known}.")
        text = rows.ranged(row, column)
    elif spec == "expect":
        text = _expected(row, column)
    elif spec == SPEED and not factor:
        text = rows.speed_in_words(row, column)
    elif spec in (SPEED, FACTOR):
        text = rows.factor_in_words(row, column)
    elif column == "verdict" and not spec:
        text = rows.verdict_in_words(row)
    elif spec:
        text = units.format_value(value, spec) + rows.if_wide(row, column, spec)
    else:
        text = rows.printed(row, column, units.PLAIN_DIGITS) + rows.if_wide(row, column)
    figure = spans.figure("measured", text, _origin(found, row, column))
    # A setting is what was asked for, so it can't be out of date.
    setting = column in signature(found.name).defaults
    return figure + (spans.elsewhere(found) if setting else spans.marks(found))


def _expected(row: rows.Row, column: str) -> str:
    """The interval, or the value where it has none, widened by `EXPECTED` at each end, but not to
    beyond `FARTHEST` from the value."""
    names = rows.INTERVALS.get(column, ())
    ends = [each for name in names if not units.missing(each := row.get(name))]
    low, high = ends if len(ends) == 2 else [row[column]] * 2
    plain = {**row, **dict.fromkeys(names)}  # its ends have no interval of their own
    value = row[column]
    wide = (
        min(low, max(low / (1 + EXPECTED), value / FARTHEST)),
        max(high, min(high * (1 + EXPECTED), value * FARTHEST)),
    )
    return " to ".join(rows.printed({**plain, column: end}, column, 2) for end in wide)


def _origin(found: Found, row: rows.Row, column: str) -> str:
    """What is said of a number on hover: exactly what it is, how sure it is, and where from."""
    interval = [row.get(name) for name in rows.INTERVALS.get(column, ())]
    which = [row.get(name) for name in ("op", "quantity", "variant")]
    row_name = ", ".join(str(each) for each in which if each is not None)
    said = f"{rows.heading(column)} of {row_name or found.name}: {rows.ranged(row, column)}"
    if interval and not any(units.missing(end) for end in interval):
        said += f", {rows.interval_name([row])}"
    parts = [said]
    if column in ("ratio", "speedup") and row.get("control"):
        parts.append(f"over {row['control']}")
    if column in rows.SPEEDS and (verdict := row.get(rows.SPEEDS[column][0])):
        floor = row.get("noise_floor")
        near = "" if units.missing(floor) else f", noise floor {units.percent(floor)}"
        parts.append(f"verdict {verdict}{near}")
    data = found.recording.data
    if pace := row.get("paced_by"):
        before = _pace_of_control(found, row) if column in ("ratio", "speedup") else None
        cpu = data["machine"].get("cpu") if "host" in (pace, before) else None
        both = f", {row['control']} by the {before}" if before and before != pace else ""
        parts.append(f"paced by the {pace}{both}{f' ({cpu})' if cpu else ''}")
    machine = data["machine"].get("gpu") or data["machine"]["slug"]
    return "; ".join([*parts, f"{found.name} on {machine}, {data['started_at'][:10]}"])


def _pace_of_control(found: Found, row: rows.Row) -> str | None:
    """Who paces what a row's ratio is over."""
    place = {name: row.get(name) for name in ("op", "quantity")}
    there = rows.select(found.recording.rows, **place, variants=[row["control"]])
    return there[0].get("paced_by") if there else None
