"""Rows of a recording as pages use them: chosen, with what follows from them, and printed.

A row is a dict with the columns of `anatomy.comparison.compare`; what was not measured is None or
absent. What is computed here (the rate it achieved, its share of the machine's limit, and the
speed-up that its ratio is the inverse of) is never stored.
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from math import ceil
from typing import Any

from anatomy.judge import limits, occasions, pace, replication
from anatomy.judge.comparisons import RATIOS, TIMES, Row, in_columns
from anatomy.table import columns, units
from anatomy.table.errors import BadParameter, UnknownName

INTERVALS = columns.intervals()
# What is computed from a row, in the order of `derived`.
DERIVED = (
    "rate",
    "rate_unit",
    "speedup",
    "share",
    "share_of",
    "limit_value",
    "limit_kind",
    "bound",
)

QUANTITIES = {
    "gpu_cold": "GPU time, cold L2",
    "gpu_warm": "GPU time, warm",
    "host_enqueue": "host time to enqueue",
    "step_wall": "wall time of a step",
}


def select(
    rows: Iterable[Row],
    *,
    op: str | None = None,
    quantity: str | None = None,
    variants: Sequence[str] | None = None,
) -> list[Row]:
    """The rows wanted, in the order of `variants` if given; a `*` in `op` stands for anything.

    A name that is in no row is an UnknownName.
    """
    rows = list(rows)
    for column, wanted in (("op", op), ("quantity", quantity)):
        kept = [row for row in rows if wanted is None or _matches(row.get(column), wanted)]
        if wanted is not None and not kept:
            raise UnknownName(column, wanted, names(rows, column))
        rows = kept
    if variants is None:
        return rows
    for wanted in variants:
        if wanted not in names(rows, "variant"):
            raise UnknownName("row", wanted, names(rows, "variant"))
    place = {name: index for index, name in enumerate(variants)}
    kept = [row for row in rows if row.get("variant") in place]
    groups = groups_of(kept)  # which stay in the order of the recording
    return [row for _, group in groups for row in sorted(group, key=lambda r: place[r["variant"]])]


def meeting(rows: Iterable[Row], where: Mapping[str, Any] | None) -> list[Row]:
    """The rows whose columns have the values wanted: `where` gives for a column one or a list.

    A `*` in a text stands for anything. A column or value that no row has is an UnknownName.
    """
    rows = list(rows)
    for column, wanted in (where or {}).items():
        if not any(column in row for row in rows):
            raise UnknownName("column", column, {name for row in rows for name in row})
        values = list(wanted) if isinstance(wanted, list | tuple | set) else [wanted]
        for value in values:
            if not any(_matches(row.get(column), value) for row in rows):
                raise UnknownName(column, value, names(rows, column))
        rows = [row for row in rows if any(_matches(row.get(column), value) for value in values)]
    return rows


def _matches(there: Any, wanted: Any) -> bool:
    if isinstance(wanted, str) and "*" in wanted:
        return isinstance(there, str) and fnmatchcase(there, wanted)
    return there == wanted and isinstance(there, bool) == isinstance(wanted, bool)


def telling_apart(rows: Sequence[Row], most: int = 3) -> str:
    """Columns in which rows differ, best first, with their values; empty where there are none.

    These are texts and the coordinates of a row (`width`, `tokens`), and never what was measured.
    """
    first = ("op", "quantity", "variant")
    texts = [n for row in rows for n, value in row.items() if isinstance(value, str)]
    numbers = [n for row in rows for n, value in row.items() if isinstance(value, int | float)]
    found = []
    for name in dict.fromkeys((*first, *texts, "role", *numbers)):
        values = names(rows, name)
        if len(values) > 1 and columns.identifies(name):
            found.append(f"{name}: {', '.join(values)}")
    return "; ".join(found[:most])


def names(rows: Iterable[Row], column: str) -> list[str]:
    """The different values of a column, in order."""
    return list(dict.fromkeys(str(row[column]) for row in rows if row.get(column) is not None))


def groups_of(rows: Iterable[Row]) -> list[tuple[tuple[str | None, str | None], list[Row]]]:
    """Rows by (op, quantity): what may be compared with each other, in order."""
    groups: dict[tuple, list[Row]] = {}
    for row in rows:
        groups.setdefault((row.get("op") or None, row.get("quantity")), []).append(row)
    return list(groups.items())


def interval_name(rows: Iterable[Row]) -> str:
    """What the intervals of `rows` are: of a median, of several occasions, or the envelope of
    several processes'."""
    rows = list(rows)
    if most := max((row.get("occasions") or 0 for row in rows), default=0):
        return f"interval over {most} occasions"
    runs = [row["runs"] for row in rows if row.get("interval") == "envelope"]
    return f"envelope of {max(runs)} processes" if runs else "95% interval"


def noise_floor(rows: Iterable[Row]) -> float:
    """The largest noise floor among some rows; 0 where none has one."""
    return max((row.get("noise_floor") or 0.0 for row in rows), default=0.0)


def findings(rows: Iterable[Row]) -> list[Row]:
    """Rows without the variants that are only there as the control of another one."""
    rows = list(rows)
    controls = {row.get("control") for row in rows if row.get("role") == "variant"}
    return [row for row in rows if row.get("variant") not in controls]


def against(rows: Sequence[Row], control: str) -> list[Row]:
    """Rows of one operation and quantity with the ratios, and verdicts, over another control.

    The ratios are taken block by block, as `compare` takes them, and of rows that several processes
    measured within each process. A row that already is over this control, or was not measured,
    stays as it is.
    """
    base = next((row for row in rows if row.get("variant") == control), None)
    found = []
    for row in rows:
        other = row.get("role") == "variant" and row.get("control") != control
        if base and other and row.get("blocks_s") and base.get("blocks_s"):
            over = occasions.ratio(row, base)
            verdict = replication.verdict(over, row.get("noise_floor"))
            runs = {"run_ratios": over.runs} if "run_ratios" in row else {}
            row = row | in_columns(RATIOS, over.interval) | runs
            row |= {"control": control, "verdict": verdict}
            row |= dict.fromkeys(
                ("occasion_ratios", "on_each_occasion") if row.get("occasions") else ()
            )
        found.append(row)
    return found


def group_name(op: str | None, quantity: str | None) -> str:
    """What a group of rows is called over a table or a panel of a chart."""
    return ", ".join(part for part in (op, QUANTITIES.get(quantity, quantity)) if part)


def speedup(row: Mapping[str, Any]) -> tuple[float | None, float | None, float | None]:
    """What a row's ratio is the inverse of, with its interval; 1 of the control."""
    if row.get("role") == "control":
        return 1.0, None, None
    return _inverse(row, "ratio")


def _inverse(row: Mapping[str, Any], ratio: str) -> tuple[float | None, float | None, float | None]:
    """The inverse of a ratio in this column, with its interval."""
    ends = (row.get(name) for name in (ratio, f"{ratio}_high", f"{ratio}_low"))
    return tuple(None if units.missing(end) or end <= 0 else 1 / end for end in ends)


def derived(row: Row, ceilings: Any | None) -> Row:
    """`row` with the columns of `DERIVED` and their intervals; without `ceilings`, no shares."""
    found = dict.fromkeys(DERIVED) | row | {"bound": pace.bound_in_words(row)}
    time, low, high = (row.get(name) for name in TIMES)
    time = None if row.get("verdict") == "impossible" else time
    compute = str(row.get("limit") or "").startswith("matmul")
    work = row.get("flops") if compute else row.get("bytes")
    if time and work and work > 0:
        found |= {"rate": work / time, "rate_unit": "FLOP/s" if compute else "B/s"}
        ends = (work / end if end and end > 0 else None for end in (high, low))
        found |= zip(("rate_low", "rate_high"), ends, strict=True)
    for over in ("", "_before"):  # the control; the rung before, of the ladder alone
        if row.get(f"ratio{over}"):
            names = (f"speedup{over}", f"speedup{over}_low", f"speedup{over}_high")
            found |= zip(names, _inverse(row, f"ratio{over}"), strict=True)
    if ceilings is not None and time and (reached := limits.share(row, ceilings)):
        fraction, ceiling = reached
        found |= {"share": fraction, "share_of": ceiling.name}
        found |= {"limit_value": ceiling.value, "limit_kind": ceiling.kind}
    return found


# Ratio of times -> the verdict on it, and whether it is a speed, which grows as the time shrinks.
SPEEDS = {
    "ratio": ("verdict", False),
    "speedup": ("verdict", True),
    "ratio_before": ("verdict_before", False),
    "speedup_before": ("verdict_before", True),
}
SMALL = 1.02  # below this factor a difference has a decimal: `1.2% slower`
PERCENT = 1.2  # below this factor a difference is told in percent
CLOSE = 1.1  # up to this factor what is undecided is called `about as fast`
WIDE = 1.5  # from this factor between its ends on, an interval is told wherever its ratio is
WIDE_TIME = 2.0  # the same of a time
UNDECIDED = "not clearly faster or slower"


def verdict_in_words(row: Mapping[str, Any]) -> str | None:
    """The verdict on a row; where another machine may differ from all that measured it, what these
    found: `slower each time` in place of `undecided`."""
    each = row.get("on_each_occasion")
    return f"{each} each time" if each and row["verdict"] == "undecided" else row.get("verdict")


def factor_in_words(row: Mapping[str, Any], column: str = "ratio") -> str:
    """`speed_in_words` without percent, for what stands under factors: `1.11× slower`."""
    said, word = speed_in_words(row, column), row[SPEEDS[column][0]]
    size = max(row[column], 1 / row[column])
    if word not in ("faster", "slower"):
        return said
    interval = "".join(said.partition(" (")[1:])
    return f"{units.significant(size, 3 if size < 2 else 2)}× {word}{interval}"


def speed_in_words(row: Mapping[str, Any], column: str = "ratio", *, short: bool = False) -> str:
    """A ratio of times as a sentence says it, by its verdict.

    Of `faster` and `slower` the direction, with two digits: `5.9× slower`, `3% faster`, and with
    its interval where that is `WIDE`: `8.0× faster (5.3× to 12×)`. `as fast` of `same` alone. Of
    `undecided` what the interval leaves open and no direction: `about as fast (within 4%)`, or `not
    clearly faster or slower (0.82× to 1.3× the time)`; where every occasion found one direction,
    that, and what another machine may show: `1.2× slower on each of 3 occasions (elsewhere perhaps
    0.8× to 1.9×)`. In `short`, for a label of a drawing, a decided ratio is its figure alone, and
    one that is not its interval. A column that is no ratio of times, or a row with no verdict on
    it, is a BadParameter.
    """
    if column not in SPEEDS:
        raise BadParameter(f"{column} is no ratio of times; those are {', '.join(SPEEDS)}.")
    judged_in, is_speed = SPEEDS[column]
    word = row.get(judged_in)
    if word not in ("faster", "slower", "same", "undecided"):
        raise BadParameter(f"a row that is {word!r} is neither slower nor faster than its control.")
    if word == "same":
        return "as fast"
    factors = [row.get(name) for name in (column, *INTERVALS.get(column, ()))]
    factors = [each if units.missing(each) or not is_speed else 1 / each for each in factors]
    ends = sorted(each for each in factors[1:] if not units.missing(each))
    if word == "undecided":
        if judged_in == "verdict" and row.get("on_each_occasion") and not short:
            return _seen_alike(row, factors[0], ends)
        return _undecided(ends, short)
    return _changed(factors[0], word) + ("" if short else _if_wide(factors[0], ends))


def _changed(factor: float, word: str) -> str:
    """A decided ratio of times as a sentence says it."""
    size = max(factor, 1 / factor)
    percent = f"{(size - 1) * 100:.{int(size < SMALL)}f}%"
    return f"{percent if size < PERCENT else f'{units.significant(size, 2)}×'} {word}"


def _if_wide(factor: float, ends: Sequence[float]) -> str:
    """The interval of a decided ratio, in its direction, where its figure alone says too much."""
    if len(ends) < 2 or ends[1] <= WIDE * ends[0]:
        return ""
    shown = ends if factor > 1 else [1 / end for end in reversed(ends)]
    return f" ({' to '.join(f'{units.significant(end, 2)}×' for end in shown)})"


def _seen_alike(row: Row, factor: float, ends: Sequence[float]) -> str:
    """What every occasion found of a ratio that is undecided, and what another machine may show."""
    count, word = row["occasions"], row["on_each_occasion"]
    each = "on both occasions" if count == 2 else f"on each of {count} occasions"
    low, high = ends if word == "slower" else (1 / end for end in reversed(ends))
    elsewhere = f"{units.significant(low, 2)}× to {units.significant(high, 2)}×"
    return f"{_changed(factor, word)} {each} (elsewhere perhaps {elsewhere})"


def _undecided(ends: Sequence[float], short: bool) -> str:
    """An undecided ratio of times in words, with what its interval leaves open, from the ends."""
    if len(ends) < 2:
        return UNDECIDED
    farthest = max(max(end, 1 / end) for end in ends)
    if farthest <= CLOSE:
        return f"about as fast (within {ceil((farthest - 1) * 100)}%)"
    left_open = " to ".join(f"{units.significant(end, 2)}×" for end in ends)
    if short:
        return f"undecided ({left_open})"
    return f"{UNDECIDED} ({left_open} the time)"


def printed(row: Mapping[str, Any], column: str, most: int = units.MOST_DIGITS) -> str:
    """One value as people read it: with its unit and the digits that its interval pays for, at
    most so many."""
    value = row.get(column)
    if units.missing(value):
        return units.NOT_MEASURED
    declared = columns.column(column)
    low, high = (row.get(name) for name in declared.interval or (None, None))
    if isinstance(value, list | tuple):
        inside = units.format_value(value)
        return f"({inside})" if all(isinstance(item, int) for item in value) else inside
    if isinstance(value, str | bool):
        return units.format_value(value)
    if declared.shown == columns.TIMES:
        return units.ratio(value, low, high, most)
    if declared.shown == columns.PERCENT:
        return units.percent(value)
    match declared.unit:
        case columns.PER_SECOND:
            return units.rate(value, _rate_unit(row, column), low, high, most)
        case "s":
            return units.seconds(value, low, high, most)
        case "B" if column != "bytes":  # a count of work, printed as it is
            exact = isinstance(value, int) and value < 2**14  # a layout is about single bytes
            return f"{value} B" if exact else units.byte_count(value)
        case "B/s" | "FLOP/s" as unit:
            return units.rate(value, unit, low, high, most)
        case "MHz" | "W" | "°C" | "FLOP/B" as unit:
            return f"{units.significant(value, 4)} {unit}"
    return units.format_value(value)


def ranged(row: Mapping[str, Any], column: str) -> str:
    """A value with its interval: `57.6 µs [57.4, 57.9]`; without one where it has none."""
    value = row.get(column)
    declared = columns.column(column)
    low, high = (row.get(name) for name in declared.interval or (None, None))
    if units.missing(value) or units.missing(low) or units.missing(high):
        return printed(row, column)
    if declared.unit == "s":
        return units.seconds_range(value, low, high)
    if declared.shown == columns.TIMES:
        return units.ratio_range(value, low, high)
    match declared.unit:
        case columns.PER_SECOND:
            return units.rate_range(value, _rate_unit(row, column), low, high)
        case "B/s" | "FLOP/s" as unit:
            return units.rate_range(value, unit, low, high)
        case "" | "1" if declared.shown != columns.PERCENT:
            return units.with_interval(value, low, high)
    # What is printed alike whatever its interval.
    ends = [printed({column: end}, column) for end in (low, high)]
    return f"{printed(row, column)} [{', '.join(ends)}]"


def if_wide(row: Mapping[str, Any], column: str, spec: str = "") -> str:
    """What a sentence adds to a time with a `WIDE_TIME` interval: ` (8 to 32)`, in its unit.

    Nothing to a narrower one, to what is no time, and where `spec` leaves the unit to the page.
    """
    declared = columns.column(column)
    value, low, high = (row.get(name) for name in (column, *(declared.interval or (None, None))))
    if declared.unit != "s" or any(units.missing(each) for each in (value, low, high)):
        return ""
    if low > 0 and high <= WIDE_TIME * low:
        return ""
    if not spec:
        low, high = ranged(row, column).partition(" [")[2].rstrip("]").split(", ")
        return f" ({low} to {high})"
    low, high = (units.format_value(end, spec).partition(" ") for end in (low, high))
    return f" ({low[0]} to {high[0]})" if low[2] else ""


def _rate_unit(row: Mapping[str, Any], column: str) -> str:
    if column == "limit_value":
        return "FLOP/s" if str(row.get("share_of")).startswith(limits.MATMUL) else "B/s"
    return row["rate_unit"]


def heading(column: str) -> str:
    """What a column is called in a table."""
    return columns.column(column).heading
