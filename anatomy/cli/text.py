"""A recording as text for a terminal: layout reports, timing blocks, and notes on what they say.
The blocks are those of the suite this project grew from. The notes are computed from the rows: no
sentence about speed is fixed here."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table

from anatomy.cli.output import table, terminal_width
from anatomy.judge import rows
from anatomy.judge.limits import Ceilings
from anatomy.judge.printing import aligned
from anatomy.judge.rows import Row
from anatomy.record.recording import Recording
from anatomy.table import columns, units

TITLES = {
    "matmul": "Matmul timing (A @ B)",
    "layer_norm": "LayerNorm timing (F.layer_norm)",
    "layer_norm_chain": "LayerNorm-ish timing (the hand-written chain)",
}
GAP, LONGEST = 3, 60  # characters between columns, and of one that is wrapped
LINE_BYTES = 128  # the first L2 line boundary that an offset is held against, in bytes
# Columns that a terminal's table leaves out: beside another column, or of no use to a reader.
HIDDEN = columns.aside(columns.ALWAYS, columns.TERMINAL)


def provenance(recording: Recording) -> str:
    """Two lines that say what was measured, on what, with what, when, and from which code."""
    data = recording.data
    machine, software, code = data["machine"], data["software"], data["code"]
    params = " ".join(f"{name}={value}" for name, value in recording.params.items())
    parts = [machine.get("gpu") or machine.get("cpu") or recording.machine]
    versions = (software.get("torch"), software.get("cuda"), machine.get("driver"))
    named = zip(("torch", "CUDA", "driver"), versions, strict=True)
    parts += [f"{what} {version}" for what, version in named if version]
    parts.append(data["started_at"])
    if code.get("commit"):
        parts.append(f"commit {code['commit'][:10]}{' with changes' if code['dirty'] else ''}")
    return f"{recording.experiment} {params}\n{', '.join(parts)}"


def report(recording: Recording, ceilings: Ceilings | None = None) -> str:
    """The text below the provenance: layout reports or other answers, timing blocks, notes."""
    found = recording.rows
    if any("strides" in row for row in found):
        parts = [layout(found)]
    else:
        parts = [_answer_block(row) for row in found if not _is_timed(row)]
    for (op, quantity), group in rows.groups_of(filter(_is_timed, found)):
        parts.append(timing(op, quantity, group, ceilings))
    return "\n\n".join([*parts, *notes(recording)])


def layout(found: Iterable[Row]) -> str:
    """One block per variant: shape, strides, and where its first element lies."""
    blocks = {}
    for row in found:
        if row.get("strides") is not None and row.get("role") != "again":
            blocks.setdefault(row["variant"], _layout_block(row))
    return "\n\n".join(blocks.values())


def _layout_block(row: Row) -> str:
    known = [name for name, value in row.items() if value is not None]
    printed = ("shape", "dtype", "device", "is_contiguous", "strides", "storage_offset")
    cells = {name: rows.printed(row, name) for name in printed if name in known}
    if "offset_bytes" in known:
        offset = row["offset_bytes"]
        cells["offset_bytes"] = f"{offset}  (mod {LINE_BYTES} = {offset % LINE_BYTES})"
    plain = ("base_mod_128", "ld_bytes", "is_view", "blas")
    cells |= {name: units.format_value(row[name]) for name in plain if name in known}
    lines = (f"  {name:<15}: {cell}" for name, cell in cells.items())
    return "\n".join([f"[A variant: {row['variant']}]", *lines])


def _answer_block(row: Row) -> str:
    """A row of a report that is about something else: its name, and every column it has."""
    shown = [n for n in row if n not in (*HIDDEN, "variant") and not units.missing(row[n])]
    width = max(map(len, shown), default=0)
    lines = [f"  {name:<{width}}: {rows.printed(row, name)}" for name in shown]
    name = [f"[{row['variant']}]"] if row.get("variant") else []
    return "\n".join([*name, *lines])


def timing(op: str | None, quantity: str | None, group: Sequence[Row], ceilings) -> str:
    """One block of times: variant, ms per call with interval, ratio and verdict, share of limit."""
    title = TITLES.get(op, f"{op} timing" if op else "Timing")
    if quantity:
        words = rows.QUANTITIES.get(quantity, quantity)
        if any(row.get("device") == "cpu" for row in group):
            words = words.replace("GPU time", "CPU time").replace("cold L2", "cold cache")
        title += f", {quantity} ({words})"
    lines = aligned([_timing_cells(row, ceilings) for row in group])
    floor = max((row["noise_floor"] for row in group if row.get("noise_floor")), default=None)
    if floor is not None:
        lines.append(f"noise floor {units.percent(floor)}: no difference below it is claimed")
    return "\n".join([f"=== {title} ===", *lines])


def _timing_cells(row: Row, ceilings: Ceilings | None) -> list[str]:
    if row.get("median_s") is None:
        return [row["variant"], f"not measured: {row.get('note') or 'no reason given'}", "", ""]
    ends = (row.get(name) for name in ("median_s", "low_s", "high_s"))
    milliseconds = (None if units.missing(end) else end * 1e3 for end in ends)
    time = units.with_interval(*milliseconds, unit="ms/iter")
    verdict = row.get("verdict") or ""
    if row.get("ratio") is not None:
        ratio = units.ratio_range(row["ratio"], row.get("ratio_low"), row.get("ratio_high"))
        facing = f" of {row['control']}" if row.get("control") else ""
        verdict = ", ".join(filter(None, (f"{ratio}{facing}", verdict)))
    full = rows.derived(row, ceilings)
    share = ""
    if full["share"] is not None:
        share = f"{units.percent(full['share'])} of {full['share_of']} ({full['limit_kind']})"
    elif full["rate"] is not None:
        share = rows.printed(full, "rate")
    limited = "power-limited" if row.get("throttle") == "power-limited" else ""
    remarks = (share, "wide" if row.get("wide") else "", limited, row.get("note"))
    return [row["variant"], time, verdict, ", ".join(filter(None, remarks))]


def notes(recording: Recording) -> list[str]:
    """What the rows say, in sentences: differences found, rows to be careful with, warnings. One
    block of them all, or none."""
    found = [row for row in recording.rows if row.get("median_s") is not None]
    said = []
    for (op, quantity), group in rows.groups_of(found):
        where = ", ".join(part for part in (op, quantity) if part)
        said += [f"{where}: {finding}." for finding in _findings(group)]
    if limited := sum(row.get("throttle") == "power-limited" for row in found):
        said.append(f"The power limit held the clock down in {limited} of {len(found)} rows.")
    if wide := sum(bool(row.get("wide")) for row in found):
        said.append(f"{wide} of {len(found)} rows are wide: more time would narrow them.")
    lines = [f"  - {note}" for note in (*said, *recording.warnings)]
    return ["\n".join(["Notes:", *lines])] if lines else []


def _findings(group: Sequence[Row]) -> Iterator[str]:
    """What one table of times says: who is slower, faster, the same, or not told apart."""
    for verdict in ("slower", "faster"):
        takes = []
        for row in group:
            if row.get("verdict") == verdict:
                ratio = units.ratio(row["ratio"], row.get("ratio_low"), row.get("ratio_high"))
                takes.append(f"{row['variant']} ({ratio} of {row.get('control') or 'control'})")
        if takes:
            yield f"{verdict}: {', '.join(takes)}"
    for verdict, meaning in (
        ("same", "as fast as the control, within 1%, in several processes"),
        ("undecided", "not told apart from the control"),
        ("impossible", "faster than the hardware can be, so not to be believed"),
    ):
        if names := [row["variant"] for row in group if row.get("verdict") == verdict]:
            yield f"{meaning}: {', '.join(names)}"


def tables(recording: Recording, ceilings: Ceilings | None = None) -> list[Table]:
    """The rows as tables for a terminal, one for each operation and quantity."""
    made = []
    for (op, quantity), group in rows.groups_of(recording.rows):
        full = [rows.derived(row, ceilings) for row in group]
        names = dict.fromkeys(name for row in full for name in row)
        measured = {n: [row[n] for row in full if not units.missing(row.get(n))] for n in names}
        shown = [name for name in names if name not in HIDDEN and measured[name]]
        first = [n for n in ("variant", "median_s", "ratio", "verdict") if n in shown]
        shown = first + [name for name in shown if name not in first]
        cells = {name: [_table_cell(row, name) for row in full] for name in shown}
        same = {n: all_[0] for n, all_ in cells.items() if n not in first and _alike(all_)}
        shown = [name for name in shown if name not in same]
        shown.sort(key=lambda n: n not in first and (bool(first) or not columns.identifies(n)))
        numbers = {name for name in shown if not isinstance(measured[name][0], str)}
        below = ", ".join(f"{rows.heading(name)} {cell}" for name, cell in same.items())
        title = rows.group_name(op, quantity) or None
        parts = _side_by_side(shown, cells)
        for part in parts:
            heads = (f"{'#' if name in numbers else ''}{rows.heading(name)}" for name in part)
            lines = zip(*(cells[name] for name in part), strict=True)
            more = f"{title}, further columns" if title and part != parts[0] else title
            made.append(table(heads, lines, more, below if part == parts[-1] else ""))
    return made


def _side_by_side(names: Sequence[str], cells: Mapping[str, Sequence]) -> list[list[str]]:
    """The columns in parts that fit the terminal, each of them behind the first column."""
    first, *others = names
    lines = {n: "\n".join((rows.heading(n), *filter(None, cells[n]))) for n in names}
    wide = {n: GAP + min(LONGEST, max(map(len, lines[n].splitlines()))) for n in names}
    parts, used = [[first]], wide[first]
    for name in others:
        if used + wide[name] > terminal_width() and len(parts[-1]) > 1:
            parts.append([first])
            used = wide[first]
        parts[-1].append(name)
        used += wide[name]
    return parts


def _alike(cells: Sequence[str | None]) -> bool:
    """Whether a column needs no room: each of its rows, which are several, has the same to say."""
    return len(cells) > 1 and len(set(cells)) == 1


def _table_cell(row: Mapping[str, Any], name: str) -> str | None:
    if units.missing(row.get(name)):
        return None
    if name == "share":
        return f"{units.percent(row['share'])} of {row['share_of']}"
    return rows.printed(row, name) if name == "rate" else rows.ranged(row, name)


def _is_timed(row: Row) -> bool:
    """Whether a row is of a time: it has one, or says why there is none."""
    has_time = any(row.get(name) is not None for name in ("median_s", "quantity"))
    return has_time or bool("median_s" in row and row.get("variant") and row.get("note"))
