"""Tables as HTML: rows of a recording, with units in the header and intervals in a lighter tone."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from anatomy import kernel_names, rows, units
from anatomy.errors import UnknownName
from anatomy.rows import Row
from anatomy.table.columns import ALWAYS, aside

# Verdict -> (mark, class). The mark and the word say it; the colour only repeats it.
CHIPS = {
    "slower": ("▲", "worse"),
    "faster": ("▼", "better"),
    "less": ("▼", "better"),
    "more": ("▲", "worse"),
    "same": ("=", "even"),
    "undecided": ("?", "open"),
    "impossible": ("!", "worse"),
    "control": ("●", "even"),
    "again": ("↺", "even"),
    "holds": ("✓", "better"),
    "fails": ("✗", "worse"),
    "holds only where": ("◐", "mixed"),
    "inconclusive": ("?", "open"),
    "not measurable here": ("–", "open"),
    "not recorded": ("○", "open"),
    "not measured yet": ("…", "open"),
    "passes": ("✓", "better"),
    "void": ("✗", "worse"),
}
# What keeps a call from being bound by its kernels, and what that means.
BOUND = {
    "launch-bound": "The host needs about as long to ask for this call as the GPU to run it.",
    "gap-bound": "The GPU stands still for more than a tenth of the span.",
}
# Columns that a table of times shows by itself, where any row has them.
TIMED = ("variant", "median_s", "ratio", "verdict", "share", "kernels_per_call")
# Columns of a report without times, in the order in which they are read; others come after these.
REPORTED = (
    *("variant", "shape", "strides", "storage_offset", "offset_bytes", "base_mod_128", "ld_bytes"),
    *("is_contiguous", "is_view", "blas"),
)
# Columns that stand beside another column or make no sense to a reader.
HIDDEN = aside(ALWAYS)

# Longest over shortest time from which a table's times have no unit in common that reads well.
FAR = 5e3
Tag = tuple[str, str]  # a remark in a word, and what it means
NONE = '<span class="none">—</span>'  # a cell without a value


def chip(word: str, text: str | None = None, title: str = "") -> str:
    """A verdict with its mark: word, colour and mark say the same.

    Args:
        word: The verdict.
        text: What to print in place of the word.
        title: More about it, shown on hover.
    """
    mark, kind = CHIPS.get(word, ("", "open"))
    hover = f' title="{escape(title)}"' if title else ""
    return (
        f'<span class="chip {kind}"{hover}><span class="mark" aria-hidden="true">{mark}</span>'
        f"{escape(text or word)}</span>"
    )


def figure(value: float | None, low: float | None, high: float | None, size: float = 1.0) -> str:
    """A number in a column whose header has the unit, its interval in a lighter tone.

    Args:
        value: The number in SI units.
        low: Lower end of its interval.
        high: Upper end.
        size: The header's unit, in SI units.
    """
    if units.missing(value):
        return NONE
    ends = (None if units.missing(x) else x / size for x in (low, high))
    text, _, interval = units.with_interval(value / size, *ends).partition(" [")
    return text + (f' <span class="ci">[{interval}</span>' if interval else "")


def kernel(name: str) -> str:
    """A GPU kernel by its short name, the whole one on hover."""
    short = escape(kernel_names.short(name))
    return f'<code class="kernel" title="{escape(name)}">{short}</code>'


def time_unit(values: Sequence[float]) -> tuple[float, str]:
    """Size and name of the unit in which a column of seconds reads best."""
    longest = max(values, default=1.0)
    return next(step for step in reversed(units.TIMES) if longest >= step[0] or step[0] == 1e-9)


def times(table: Sequence[Row], columns: Sequence[str] | None = None) -> str:
    """Rows with times, one body for each operation and quantity.

    Args:
        table: Rows with what follows from them (`rows.derived`).
        columns: Columns wanted, by name; by default `TIMED`, without those that are empty.

    Raises:
        UnknownName: There is no such column.
    """
    groups = rows.groups_of(table)
    wanted = _columns(table, columns)
    took = [row["median_s"] for row in table if row.get("median_s")]
    apart = max(took, default=0.0) > FAR * min(took, default=0.0)
    size, unit = (0.0, "") if apart else time_unit(took)
    limit_names = rows.names(table, "share_of")
    heads = []
    for column in wanted:
        name, note = rows.heading(column), ""
        if column == "median_s":
            name, note = f"time, {unit}" if unit else "time", rows.interval_name(table)
        elif column == "ratio":
            name, note = "time / control", rows.interval_name(table)
        elif column == "share":
            name, note = "% of limit", limit_names[0] if len(limit_names) == 1 else ""
        elif column == "kernels_per_call":
            name, note = "kernels", "per call"
        heads.append(_head(name, note, number=_is_number(table, column)))
    bodies = []
    for (op, quantity), members in groups:
        title = rows.group_name(op, quantity)
        shared = _shared(members) if title and "remarks" not in wanted else []
        title = " ".join([escape(title), *map(_tag, shared)])
        lines = [across("group", title, len(wanted))] if title else []
        several = len(limit_names) > 1
        numeric = {name for name in wanted if _is_number(table, name)}
        # Where the control stands in the group, every reader sees what the others are held against.
        beside = [against(row["variant"]) for row in members if row.get("role") == "control"]
        known = [*shared, *beside]
        for row in members:
            lines.append(_time_row(row, wanted, size, known, numeric, several=several))
        bodies.append(f"<tbody>{''.join(lines)}</tbody>")
    return wrapped(f"<thead><tr>{''.join(heads)}</tr></thead>{''.join(bodies)}", "Measured times")


def plain(table: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> str:
    """Rows without times, such as a layout report: every column that has a value.

    Args:
        table: The rows.
        columns: Columns wanted, by name, in this order.

    Raises:
        UnknownName: There is no such column.
    """
    present = list(dict.fromkeys([*REPORTED, *(name for row in table for name in row)]))
    filled = [n for n in present if any(not units.missing(row.get(n)) for row in table)]
    _known(columns, present)
    wanted = list(columns) if columns else [n for n in filled if n not in HIDDEN]
    heads = [_head(rows.heading(n), number=_is_number(table, n)) for n in wanted]
    numeric = {name for name in wanted if _is_number(table, name)}
    lines = []
    for row in table:
        cells = [_cell(row, n, n in numeric, first=n == wanted[0]) for n in wanted]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    body = f"<thead><tr>{''.join(heads)}</tr></thead><tbody>{''.join(lines)}</tbody>"
    return wrapped(body, "Recorded rows")


def listed(heads: Sequence[str], lines: Sequence[Sequence[str]], label: str, kind: str = "") -> str:
    """A table of ready markup: one header cell a column, the first cell of a line its header.

    A header that begins with `#` is of a column of numbers, set flush right.
    """
    numeric = [head.startswith("#") for head in heads]
    top = "".join(_head(head.removeprefix("#"), number=head.startswith("#")) for head in heads)
    body = []
    for line in lines:
        cells = [f'<th scope="row">{line[0]}</th>']
        for text, number in zip(line[1:], numeric[1:], strict=True):
            cells.append(f'<td class="n">{text}</td>' if number else f"<td>{text}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    markup = f"<thead><tr>{top}</tr></thead><tbody>{''.join(body)}</tbody>"
    return wrapped(markup, label, kind)


def across(kind: str, text: str, width: int) -> str:
    """A row that names the rows under it, over `width` columns."""
    return f'<tr class="{kind}"><th colspan="{width}" scope="rowgroup">{text}</th></tr>'


def wrapped(markup: str, label: str, kind: str = "") -> str:
    """A table's parts in a table that scrolls by itself on a narrow screen."""
    kinds = " ".join(filter(None, ("figures", kind)))
    return (
        f'<div class="table-scroll" role="region" aria-label="{escape(label)}" tabindex="0">'
        f'<table class="{kinds}">{markup}</table></div>'
    )


def remarks(row: Row, shared: Sequence[Tag] = ()) -> str:
    """What a reader must know of a row beside its figures, as small tags.

    Args:
        row: The row.
        shared: Tags that all rows of a group have, which stand at its head instead.
    """
    found = [_tag(tag) for tag in _tags(row) if tag not in shared]
    if row.get("note"):
        found.append(f'<span class="why">{escape(row["note"])}</span>')
    return " ".join(found)


def _tags(row: Row) -> list[Tag]:
    tags = []
    if row.get("throttle") == "power-limited":
        tags.append(("power-limited", "The power cap lowered the clock in some blocks."))
    if row.get("wide"):
        tags.append(("wide", "The interval is wider than aimed at; the time budget ran out."))
    if row.get("launch_inclusive"):
        tags.append(("launch-inclusive", "The call synchronizes: its launch is included."))
    if row.get("regime") in BOUND:
        tags.append((row["regime"], BOUND[row["regime"]]))
    if row.get("role") == "variant" and row.get("control"):
        tags.append(against(row["control"]))
    return tags


def against(control: str) -> Tag:
    """Whom a row is held against."""
    return f"vs {control}", "The control of this row, which does the same work."


def _tag(tag: Tag) -> str:
    return f'<span class="tag" title="{escape(tag[1])}">{escape(tag[0])}</span>'


def _shared(members: Sequence[Row]) -> list[Tag]:
    """Tags that every row of a group has, where there are several rows."""
    first, *others = (_tags(row) for row in members)
    return [tag for tag in first if others and all(tag in tags for tags in others)]


def under(row: Row, shared: Sequence[Tag] = ()) -> str:
    """The remarks on a row, on a line of their own under its name."""
    told = remarks(row, shared)
    return f'<span class="remarks">{told}</span>' if told else ""


def _columns(table: Sequence[Row], columns: Sequence[str] | None) -> list[str]:
    present = {name for row in table for name in row} | {"remarks"}
    _known(columns, present)
    if columns:
        return list(columns)
    return [c for c in TIMED if any(not units.missing(row.get(c)) for row in table)]


def _known(columns: Sequence[str] | None, present: Sequence[str] | set[str]) -> None:
    for column in columns or ():
        if column not in present:
            raise UnknownName("column", column, present)


def _is_number(table: Sequence[Mapping[str, Any]], column: str) -> bool:
    values = [row.get(column) for row in table]
    return any(isinstance(v, int | float) and not isinstance(v, bool) for v in values)


def _head(name: str, note: str = "", *, number: bool = False) -> str:
    small = f' <span class="ci">{note}</span>' if note else ""
    flush = ' class="n"' if number else ""
    return f'<th scope="col"{flush}>{escape(name)}{small}</th>'


def _time_row(
    row: Row,
    wanted: Sequence[str],
    size: float,
    shared: Sequence[Tag],
    numeric: set[str],
    *,
    several: bool,
) -> str:
    special: dict[str, Callable[[], str]] = {
        "variant": lambda: f"<code>{escape(str(row.get('variant')))}</code>{aside}",
        "median_s": lambda: _time(row, size),
        "ratio": lambda: figure(row.get("ratio"), row.get("ratio_low"), row.get("ratio_high")),
        "verdict": lambda: chip(row["verdict"], title=_why(row)) if row.get("verdict") else "",
        "share": lambda: _share(row, several=several),
        "remarks": lambda: remarks(row),
    }
    aside = "" if "remarks" in wanted else under(row, shared)
    cells = []
    for index, column in enumerate(wanted):
        if column not in special:
            cells.append(_cell(row, column, column in numeric, first=index == 0))
            continue
        text = special[column]()
        if index == 0:
            cells.append(f'<th scope="row">{text}</th>')
        else:
            number = column in ("median_s", "ratio", "share")
            cells.append(f'<td class="n">{text}</td>' if number else f"<td>{text}</td>")
    role = row.get("role")
    return f'<tr class="{role}">{"".join(cells)}</tr>' if role else f"<tr>{''.join(cells)}</tr>"


def _time(row: Row, size: float) -> str:
    """A time in the header's unit, or in one of its own where `size` is 0."""
    ends = [row.get(name) for name in ("median_s", "low_s", "high_s")]
    if size or units.missing(ends[0]):
        return figure(*ends, size)
    text, _, interval = units.seconds_range(*ends).partition(" [")
    return text + (f' <span class="ci">[{interval}</span>' if interval else "")


def _why(row: Row) -> str:
    """What a verdict rests on."""
    if row.get("ratio") is None:
        return "The others are compared with it."
    told = units.ratio_range(row["ratio"], row.get("ratio_low"), row.get("ratio_high"))
    floor = row.get("noise_floor")
    return f"{told} of the control's time" + (
        f"; noise floor {units.percent(floor, 2)}" if floor is not None else ""
    )


def _share(row: Row, *, several: bool) -> str:
    if units.missing(row.get("share")):
        return NONE
    limit = f"{row['share_of']}, {rows.printed(row, 'limit_value')}, {row['limit_kind']}"
    text = units.percent(row["share"]).removesuffix("%")
    name = f' <span class="ci">{escape(row["share_of"])}</span>' if several else ""
    return f'<span title="of {escape(limit)}">{text}</span>{name}'


def _cell(row: Mapping[str, Any], name: str, number: bool, *, first: bool) -> str:
    value = row.get(name)
    text = escape(rows.printed(dict(row), name))
    if units.missing(value):
        text = NONE
    elif name in ("variant", "blas"):
        text = f"<code>{text}</code>"
    elif name == "kernel":
        text = kernel(str(value))
    if first:
        return f'<th scope="row">{text}</th>'
    if number:
        return f'<td class="n">{text}</td>'
    whole = isinstance(value, list) and len(value) <= 3  # a shape is not broken over lines
    return f'<td class="whole">{text}</td>' if whole else f"<td>{text}</td>"
