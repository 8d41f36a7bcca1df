"""The ladder's tables: times and rates, what a rung costs, its gates, and its longest kernels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from anatomy import rows, rungs, tables, units
from anatomy.limits import Ceilings
from anatomy.rows import Row
from anatomy.showing import Showing

MOST_KERNELS = 10


@dataclass(frozen=True)
class View:
    """What a part is made of.

    Attributes:
        showing: The page.
        table: The rows shown.
        steps: All rows of their comparison.
        whole: All rows of the recording.
        ceilings: The machine's.
    """

    showing: Showing
    table: Sequence[Row]
    steps: Sequence[Row]
    whole: Sequence[Row]
    ceilings: Ceilings | None


def speeds(view: View) -> str:
    """Times, both speed-ups with their intervals, the rate and its shares of the limits."""
    return speeds_alone(view) + absent(view.table)


def speeds_alone(view: View) -> str:
    """The same without the ways that have no time."""
    table = there(view.table)
    size, unit = tables.time_unit([row["median_s"] for row in table])
    control = next((row["variant"] for row in table if row.get("role") == "control"), "rung 0")
    heads = ["rung", f"#step, {unit}", "#over the last rung", "", f"#over {control}"]
    derived = [rows.derived(row, view.ceilings) for row in table]
    # A step of decoding is held against the memory, and all others against the tensor cores.
    moved = any(whole.get("rate_unit") == "B/s" for whole in derived)
    heads += ["#TB/s", "#% of its limit"] if moved else ["#TFLOP/s", "#% of its limit"]
    heads += [] if moved else ["#% of bf16's"]
    lines = []
    for row, whole in zip(table, derived, strict=True):
        below = rungs.last(row, view.steps)
        over = rungs.climbed(row, view.steps)
        has = below is not None
        rate = whole.get("rate")
        lines.append(
            [
                name(row),
                tables.figure(*ends(row), size),
                tables.figure(*rungs.speedup(over)) if has else tables.NONE,
                _verdict(over, below) if has else _over_control(row),
                tables.figure(*rungs.speedup(row)),
                units.significant(rate / 1e12) if rate else tables.NONE,
                _limit(whole),
                *([] if moved else [_of_bf16(row, view)]),
            ]
        )
    body = _without_empty(heads, lines)
    return _listed(*body, "The rungs: times and speed-ups")


def costs(view: View) -> str:
    """Memory, kernels and gaps of a step, and what the first step takes."""
    table = there(view.table)
    heads = ["rung", "#peak of a step", "#peak with weights", "#reserved", "#kernels a step"]
    heads += ["#gaps, % of it", "#first step", "#paid back after, steps"]
    lines = []
    for row in table:
        gap = row.get("gap_s")
        share = None if units.missing(gap) else gap / row["median_s"]
        lines.append(
            [
                name(row),
                *(cell(row, name) for name in ("peak_bytes", "total_peak_bytes", "reserved_bytes")),
                cell(row, "kernels_per_call"),
                _percent(share),
                cell(row, "setup_s"),
                _uses(row),
            ]
        )
    body = _without_empty(heads, lines)
    return _listed(*body, "The rungs: memory, kernels and the first step") + absent(view.table)


def gates(view: View) -> str:
    """Errors against rung 0 beside what is allowed, and what else must be equal."""
    table = [row for row in view.table if rungs.standing(row)]  # void ones with their errors
    errors_of = [c for c in rungs.ERRORS if any(not units.missing(row.get(c)) for row in table)]
    heads = ["rung", "products in", "attention by"]
    for column in errors_of:
        heads += [f"#error of {rungs.ERRORS[column][0]}", "#allowed"]
    heads += ["gate", "#parameters", "#FLOPs, of the formula's"]
    lines = []
    for row in table:
        kind = rungs.format_of(row)
        errors = []
        for column in errors_of:
            errors += [_small(row.get(column)), _small(rungs.ERRORS[column][1].get(kind))]
        counted, flops = row.get("counted_flops"), row.get("flops")
        known = not units.missing(counted) and not units.missing(flops)
        word = rungs.standing(row)
        lines.append(
            [
                name(row),
                escape(kind) or tables.NONE,
                escape(str(row["backend"])) if row.get("backend") else tables.NONE,
                *errors,
                tables.chip(word) if word else tables.NONE,
                _count(row.get("parameters")),
                _percent(counted / flops if known and flops else None, "%"),
            ]
        )
    left_out = [row for row in view.table if row not in table]
    return _listed(*_without_empty(heads, lines), "The rungs: errors") + absent(left_out)


def _listed(heads: Sequence[str], lines: Sequence[Sequence[str]], label: str) -> str:
    """A table, if it has a line."""
    return tables.listed(heads, lines, label, "rungs") if lines else ""


def _without_empty(
    heads: Sequence[str], lines: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """A table without the columns in which no row has a value."""
    kept = [n for n in range(len(heads)) if any(line[n] != tables.NONE for line in lines)]
    return [heads[n] for n in kept], [[line[n] for n in kept] for line in lines]


def kernels(view: View) -> str:
    """The kernels of one step that take longest, with what they do."""
    table = view.table
    lines = []
    for row in table:
        busy = row.get("busy_s")
        for name, kind, count, seconds in rungs.heaviest(row, MOST_KERNELS):
            share = units.percent(seconds / busy, 2) if busy else ""
            lines.append(
                [
                    f"<code>{escape(str(row['variant']))}</code>",
                    tables.kernel(name),
                    escape(rungs.KINDS.get(f"{kind}_s", kind)),
                    f"{count:g}",
                    units.seconds(seconds),
                    share,
                ]
            )
    heads = [
        "rung",
        "kernel",
        "what it does",
        "#launches a step",
        "#time a step",
        "#% of the busy time",
    ]
    if not lines:
        return absent(table) or '<p class="why">No kernel was recorded.</p>'
    return tables.listed(heads, lines, "The longest kernels of a step", "kernels") + absent(table)


def name(row: Row) -> str:
    """A way with what must be known of it."""
    said = [tables.against(str(row.get("control")))]  # by the columns of speed-ups
    return f"<code>{escape(str(row.get('variant')))}</code>{tables.under(row, said)}"


def ends(row: Row) -> tuple[float | None, float | None, float | None]:
    """Time of a row with its interval, where it has one that could be trusted."""
    if not rungs.measured(row):
        return None, None, None
    return row["median_s"], row.get("low_s"), row.get("high_s")


def _verdict(over: Row, below: Row) -> str:
    """The verdict over the rung before, and which that is."""
    against = f'<span class="remarks ci">vs {escape(str(below["variant"]))}</span>'
    return (tables.chip(over["verdict"]) if over.get("verdict") else "") + against


def _over_control(row: Row) -> str:
    """The verdict of a way that has no rung before it, where all are ways of one rung."""
    return tables.chip(row["verdict"]) if row.get("role") == "variant" else tables.NONE


def _limit(whole: Row) -> str:
    """Share of the best product of the row's own format in the same run, or of the machine's."""
    share = whole.get("share_of_ceiling")
    if not units.missing(share):
        return (
            f'<span title="of the best product of its format in this run">{_percent(share)}</span>'
        )
    if units.missing(whole.get("share")):
        return tables.NONE
    limit = f"{whole['share_of']}, {rows.printed(whole, 'limit_value')}, {whole['limit_kind']}"
    return f'<span title="of {escape(limit)}">{_percent(whole["share"])}</span>'


def _of_bf16(row: Row, view: View) -> str:
    return _percent(rungs.share_of_bf16(row, view.whole, view.ceilings))


def _percent(share: float | None, sign: str = "") -> str:
    return tables.NONE if units.missing(share) else units.percent(share).removesuffix("%") + sign


def cell(row: Row, column: str) -> str:
    """One value of a row, or a dash."""
    return tables.NONE if units.missing(row.get(column)) else escape(rows.printed(row, column))


def _uses(row: Row) -> str:
    ends = [row.get(name) for name in ("uses", "uses_low", "uses_high")]
    if units.missing(ends[0]):
        return tables.NONE
    low, high = (None if units.missing(end) else units.significant(end, 2) for end in ends[1:])
    interval = f' <span class="ci">[{low}, {high}]</span>' if low and high else ""
    return units.significant(ends[0], 2) + interval


def _small(value: float | None) -> str:
    """An error as a power of ten: it may be smaller than three decimals show."""
    return tables.NONE if units.missing(value) else f"{value:.1e}" if value else "0"


def _count(value: float | None) -> str:
    return tables.NONE if units.missing(value) else f"{int(value):,}".replace(",", " ")


def there(table: Sequence[Row]) -> list[Row]:
    """The rows that have a time; `absent` tells of the others."""
    return [row for row in table if rungs.measured(row)]


def absent(table: Iterable[Row]) -> str:
    """The rows that have no time, with the reason, so that none is left out without a word."""
    ways: dict[str, list[str]] = {}
    for row in table:
        if row.get("note") and not rungs.measured(row):
            # A script that refuses says why in words; the error's name adds nothing.
            why = str(row["note"]).removeprefix("NotImplementedError: ")
            ways.setdefault(why, []).append(f"<code>{escape(str(row['variant']))}</code>")
    lines = [f"<li>{', '.join(names)}: {escape(why)}</li>" for why, names in ways.items()]
    return f'<ul class="breaks">{"".join(lines)}</ul>' if lines else ""
