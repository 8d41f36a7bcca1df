"""Tables as HTML: rows of a recording, with units in the header and intervals in a lighter tone."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from html import escape
from itertools import compress
from typing import Any

from anatomy.claims import Measured
from anatomy.figures.verdicts import CHIPS, RULES, TAGS
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.table import kernel_names, units
from anatomy.table.columns import ALWAYS, aside
from anatomy.table.errors import UnknownName

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
DIGITS = 3  # of a number in a cell
Tag = tuple[str, str]  # a remark in a word, and what it means
Cell = tuple[str, str]  # the markup in a cell, and the cell's class
NONE = '<span class="none">—</span>'  # a cell without a value


def chip(word: str, text: str | None = None, title: str = "") -> str:
    """A verdict with its mark: word (or `text`) and colour say the same. On hover there are the
    `title` and the word's rule."""
    mark, kind = CHIPS.get(word, ("", "open"))
    told = escape(" ".join(filter(None, (title, RULES.get(word)))))
    hover = f' title="{told}"' if told else ""
    inside = f'<span class="mark" aria-hidden="true">{mark}</span>{escape(text or word)}'
    return f'<span class="chip {kind}"{hover}>{inside}</span>'


def figure(
    value: float | None,
    low: float | None = None,
    high: float | None = None,
    size: float = 1.0,
    *,
    unit: str = "",
    beside: str = "",
) -> str:
    """A number in SI units, in a column of units of `size`: at most three digits, with its interval
    in a lighter tone where that is wider than the last of them. On hover there are all digits that
    the interval pays for, the interval, and what stands `beside` it."""
    if units.missing(value):
        return NONE
    ends = [None if units.missing(x) else x / size for x in (low, high)]
    number = value / size
    exact = units.with_interval(number, *ends, unit)
    short, _, shown = units.with_interval(number, *ends, unit, DIGITS).partition(" [")
    low_shown, _, high_shown = shown.removesuffix("]").partition(", ")
    text = lighter(short if low_shown == high_shown else f"{short} [{shown}")
    if text == lighter(exact) and not beside:
        return text
    return f'<span title="{escape(exact + beside)}">{text}</span>'


def interval(row: Mapping[str, Any], column: str, size: float = 1.0, unit: str = "") -> str:
    """`figure` of a row's column that has an interval; on hover also the row's noise floor."""
    ends = [row.get(name) for name in rows.INTERVALS[column]]
    known = not any(map(units.missing, ends))
    beside = f", {rows.interval_name([row])}" if known else ""
    if known and (floor := row.get("noise_floor")) is not None:
        beside += f", noise floor {units.percent(floor, 2)}"
    return figure(row.get(column), *ends, size, unit=unit, beside=beside)


def lighter(text: str) -> str:
    """A printed number with its interval, if it has one, in a lighter tone."""
    number, bracket, rest = text.partition(" [")
    return escape(number) + (f' <span class="ci">[{escape(rest)}</span>' if bracket else "")


def measured(seen: Measured | None) -> str:
    """A claim's measured number with its interval, or the span of its cases."""
    if seen is None:
        return NONE
    text = lighter(seen.text)
    if not seen.recorded:
        return text + ' <span class="ci">by a datasheet</span>'
    if seen.cases == 1 or seen.low == seen.high:
        return text
    ends = text.rpartition(" in ")[0]
    return f'{escape(seen.middle)} <span class="ci">median of {seen.cases}: {ends}</span>'


def time(row: Mapping[str, Any] | None) -> str:
    """A row's time with its interval, in the unit that suits it."""
    value = (row or {}).get("median_s")
    return NONE if units.missing(value) else interval(row, "median_s", *time_unit([value]))


def cell(row: Mapping[str, Any], column: str) -> str:
    """A row's value without its interval, or a dash."""
    return NONE if units.missing(row.get(column)) else escape(rows.printed(row, column))


def percent(share: float | None) -> str:
    """A share of 1 as a percentage, or a dash."""
    return NONE if units.missing(share) else units.percent(share)


def code(name: Any) -> str:
    """A name as it is written in code."""
    return f"<code>{escape(str(name))}</code>"


def why(text: str) -> str:
    """Why there is no value, in its place."""
    return f'<span class="why">{escape(text)}</span>'


def remark(text: str, whole: str = "") -> str:
    """What is said in small type under a value or a verdict; on hover the `whole` of it."""
    hover = f' title="{escape(whole)}"' if whole and whole != text else ""
    return f'<span class="remarks"{hover}>{escape(text)}</span>' if text else ""


def kernel(name: str) -> str:
    """A GPU kernel by its short name, the whole one on hover."""
    short = escape(kernel_names.short(name))
    return f'<code class="kernel" title="{escape(name)}">{short}</code>'


def time_unit(values: Sequence[float]) -> tuple[float, str]:
    """Size and name of the unit in which a column of seconds reads best."""
    longest = max(values, default=1.0)
    return next(step for step in reversed(units.TIMES) if longest >= step[0] or step[0] == 1e-9)


def times(table: Sequence[Row], columns: Sequence[str] | None = None) -> str:
    """Rows with times and what follows from these, one body for each operation and quantity."""
    _known(columns, {name for row in table for name in row} | {"remarks"})
    wanted = list(columns or _filled(table, TIMED))
    took = [row["median_s"] for row in table if row.get("median_s")]
    apart = max(took, default=0.0) > FAR * min(took, default=0.0)
    size, unit = (0.0, "") if apart else time_unit(took)
    limits, ends = rows.names(table, "share_of"), rows.interval_name(table)
    named = {  # column -> its heading, and a note beside that
        "median_s": (f"time, {unit}" if unit else "time", ends),
        "ratio": ("time / control", ends),
        "share": ("% of limit", limits[0] if len(limits) == 1 else ""),
        "kernels_per_call": ("launches", "per call"),
    }
    numeric = _numeric(table, wanted)
    titles = {name: named.get(name, (rows.heading(name),)) for name in wanted}
    heads = [_head(*titles[name], number=name in numeric) for name in wanted]
    labels = [titles[name][0] for name in wanted]
    everywhere = [] if "remarks" in wanted else shared(table)
    special: dict[str, Callable[[Row], Cell]] = {
        "median_s": lambda row: (interval(row, "median_s", size) if size else time(row), "n"),
        "ratio": lambda row: (interval(row, "ratio"), "n"),
        "share": lambda row: (_share(row, several=len(limits) > 1), "n"),
        "verdict": lambda row: (_verdict(row), ""),
        "remarks": lambda row: (remarks(row), ""),
    }
    bodies = []
    for group, members in rows.groups_of(table):
        title = rows.group_name(*group)
        here = everywhere
        if title and "remarks" not in wanted:
            here = [*everywhere, *(tag for tag in shared(members) if tag not in everywhere)]
        title = " ".join([escape(title), *map(_tag, here[len(everywhere) :])])
        lines = [across("group", title, len(wanted))] if title else []
        # Where the control stands in the group, every reader sees what the others are held against.
        controls = [row["variant"] for row in members if row.get("role") == "control"]
        known = [*here, *map(against, controls)]
        for row in members:
            cells = {
                name: special[name](row) if name in special else _cell(row, name, name in numeric)
                for name in wanted
            }
            if "remarks" not in wanted:
                cells["variant"] = (code(row.get("variant")) + under(row, known), "")
            lines.append(_line([cells[name] for name in wanted], row.get("role")))
        bodies.append(f"<tbody>{''.join(lines)}</tbody>")
    markup = f"<thead><tr>{''.join(heads)}</tr></thead>{''.join(bodies)}"
    return wrapped(of_all(everywhere) + markup, "Measured times", labels)


def plain(table: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> str:
    """Rows without times, such as a layout report: by default every column that has a value."""
    present = list(dict.fromkeys([*REPORTED, *(name for row in table for name in row)]))
    _known(columns, present)
    wanted = list(columns or (n for n in _filled(table, present) if n not in HIDDEN))
    numeric = _numeric(table, wanted)
    heads = [_head(rows.heading(name), number=name in numeric) for name in wanted]
    lines = [[_cell(row, name, name in numeric) for name in wanted] for row in table]
    return _whole(heads, lines, list(map(rows.heading, wanted)), "Recorded rows", "")


def listed(
    heads: Sequence[str],
    lines: Sequence[Sequence[str]],
    label: str,
    kind: str = "",
    *,
    tags: Sequence[Tag] = (),
) -> str:
    """A table of ready markup; a header that begins with `#` is of numbers, set flush right. All
    rows have the `tags`."""
    labels = [head.removeprefix("#") for head in heads]
    kinds = ["n" if head.startswith("#") else "" for head in heads]
    top = [_head(name, number=bool(kind)) for name, kind in zip(labels, kinds, strict=True)]
    cells = [list(zip(line, kinds, strict=True)) for line in lines]
    return _whole(top, cells, labels, label, kind, tags)


def by_columns(
    columns: Sequence[tuple[str, Callable[[Any], str]]],
    items: Iterable[Any],
    label: str,
    kind: str = "",
    *,
    sparse: bool = False,
    tags: Sequence[Tag] = (),
) -> str:
    """`listed`, a line for each item; if `sparse`, no empty columns, and "" without lines."""
    heads, gives = zip(*columns, strict=True)
    lines = [[give(item) for give in gives] for item in items]
    if sparse and not lines:
        return ""
    if sparse:
        kept = [any(cell != NONE for cell in cells) for cells in zip(*lines, strict=True)]
        heads, *lines = ([*compress(each, kept)] for each in (heads, *lines))
    return listed(heads, lines, label, kind, tags=tags)


def across(kind: str, text: str, width: int) -> str:
    """A row that names the rows under it, over `width` columns."""
    return f'<tr class="{kind}"><th colspan="{width}" scope="rowgroup">{text}</th></tr>'


def wrapped(markup: str, label: str, columns: Sequence[str], kind: str = "") -> str:
    """A table's parts in a table: it scrolls by itself where it is too wide, and on a phone each
    row is a card. What the cells of a card are the stylesheet takes from the table, which names
    its `columns` once."""
    kinds = " ".join(filter(None, ("figures", kind)))
    opening = f'<div class="table-scroll" role="region" aria-label="{escape(label)}" tabindex="0">'
    # A string of JSON is one of CSS.
    named = ((at, json.dumps(name, ensure_ascii=False)) for at, name in enumerate(columns, 1))
    style = escape(";".join(f"--c{at}:{name}" for at, name in named if at > 1 and len(name) > 2))
    return f'{opening}<table class="{kinds}" style="{style}">{markup}</table></div>'


def remarks(row: Row, shared: Sequence[Tag] = ()) -> str:
    """What a reader must know of a row, as small tags; `shared` ones stand at its group's head."""
    found = [_tag(tag) for tag in _tags(row) if tag not in shared]
    return " ".join([*found, why(row["note"])] if row.get("note") else found)


def _tags(row: Row) -> list[Tag]:
    # The GPU's clock is nothing to what the host takes to ask.
    clock = row.get("throttle") if row.get("quantity") != "host_enqueue" else None
    said = [clock, row.get("regime")]
    said += [name.replace("_", "-") for name in ("wide", "launch_inclusive") if row.get(name)]
    said += ["host-paced"] if row.get("paced_by") == "host" else []
    tags = [(word, means) for word, means in TAGS.items() if word in said]
    if row.get("role") == "variant" and row.get("control"):
        tags.append(against(row["control"]))
    return tags


def against(control: str) -> Tag:
    """Whom a row is held against."""
    return f"vs {control}", "The control of this row, which does the same work."


def _tag(tag: Tag) -> str:
    return f'<span class="tag" title="{escape(tag[1])}">{escape(tag[0])}</span>'


def shared(members: Sequence[Row]) -> list[Tag]:
    """Tags that every one of several rows has: they are said once, of all."""
    first, *others = [_tags(row) for row in members] or [[]]
    return [tag for tag in first if others and all(tag in tags for tags in others)]


def of_all(tags: Sequence[Tag]) -> str:
    """A table's caption with the tags that all of its rows have; empty without any."""
    return f"<caption>All rows: {' '.join(map(_tag, tags))}</caption>" if tags else ""


def cell_of(text: str, kind: str = "", more: str = "") -> str:
    """A cell; `more` is ready markup of its attributes."""
    classes = f' class="{escape(kind)}"' if kind else ""
    return f"<td{classes}{more}>{text}</td>"


def under(row: Row, shared: Sequence[Tag] = ()) -> str:
    """The remarks on a row, on a line of their own under its name."""
    found = remarks(row, shared)
    return f'<span class="remarks">{found}</span>' if found else ""


def _known(columns: Sequence[str] | None, present: Collection[str]) -> None:
    for column in columns or ():
        if column not in present:
            raise UnknownName("column", column, present)


def _filled(table: Sequence[Mapping[str, Any]], columns: Iterable[str]) -> list[str]:
    return [name for name in columns if any(not units.missing(row.get(name)) for row in table)]


def _numeric(table: Sequence[Mapping[str, Any]], columns: Iterable[str]) -> set[str]:
    """Those of the columns that hold a number in any row; a truth value is none."""
    cells = [(name, row.get(name)) for row in table for name in columns]
    return {n for n, v in cells if isinstance(v, int | float) and not isinstance(v, bool)}


def _head(name: str, note: str = "", *, number: bool = False) -> str:
    small = f' <span class="ci">{escape(note)}</span>' if note else ""
    flush = ' class="n"' if number else ""
    return f'<th scope="col"{flush}>{escape(name)}{small}</th>'


def _whole(
    heads: Sequence[str],
    lines: Iterable[Sequence[Cell]],
    labels: Sequence[str],
    label: str,
    kind: str,
    tags: Sequence[Tag] = (),
) -> str:
    top = f"{of_all(tags)}<thead><tr>{''.join(heads)}</tr></thead>"
    body = "".join(map(_line, lines))
    return wrapped(f"{top}<tbody>{body}</tbody>", label, labels, kind)


def _line(cells: Sequence[Cell], role: str | None = None) -> str:
    """A row whose first cell is its header, and on a phone the head of a card."""
    (name, _), *others = cells
    inside = "".join(cell_of(*each) for each in others)
    opened = f'<tr class="{escape(role)}">' if role else "<tr>"
    return f'{opened}<th scope="row">{name}</th>{inside}</tr>'


def _verdict(row: Row) -> str:
    """The verdict with what it rests on, on hover."""
    if not row.get("verdict"):
        return ""
    if row.get("ratio") is None:
        return chip(row["verdict"])
    found = units.ratio_range(row["ratio"], row.get("ratio_low"), row.get("ratio_high"))
    floor = row.get("noise_floor")
    beside = "" if floor is None else f"; noise floor {units.percent(floor, 2)}"
    title = f"{found} of the control's time{beside}."
    return chip(row["verdict"], rows.verdict_in_words(row), title)


def _share(row: Row, *, several: bool) -> str:
    if units.missing(row.get("share")):
        return NONE
    name = f' <span class="ci">{escape(row["share_of"])}</span>' if several else ""
    return of_limit(row, units.percent(row["share"]).removesuffix("%")) + name


def of_limit(row: Row, text: str) -> str:
    """A share of a limit, with that limit on hover."""
    limit = f"{row['share_of']}, {rows.printed(row, 'limit_value')}, {row['limit_kind']}"
    return f'<span title="of {escape(limit)}">{text}</span>'


def _cell(row: Mapping[str, Any], name: str, number: bool) -> Cell:
    """A value as it is printed, and the kind of its cell."""
    value, text = row.get(name), cell(row, name)
    if name in ("variant", "blas") and text != NONE:
        text = f"<code>{text}</code>"
    elif name == "kernel" and text != NONE:
        text = kernel(str(value))
    whole = isinstance(value, list) and len(value) <= 3  # a shape is not broken over lines
    return text, "n" if number else "whole" if whole else ""
