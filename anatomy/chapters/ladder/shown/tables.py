"""The ladder's tables: times and rates, what a rung costs, its gates, and its longest kernels."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from anatomy.chapters.ladder.shown import rungs
from anatomy.figures import tables
from anatomy.judge import rows
from anatomy.judge.limits import Ceilings
from anatomy.judge.rows import Row
from anatomy.table import units

MOST_KERNELS = 10


@dataclass(frozen=True)
class View:
    """What a part is made of."""

    table: Sequence[Row]  # the rows shown
    steps: Sequence[Row]  # all rows of their comparison
    whole: Sequence[Row]  # all rows of the recording
    ceilings: Ceilings | None  # the machine's


def speeds(view: View) -> str:
    """Times, both speed-ups with their intervals, the rate and its shares of the limits."""
    return speeds_alone(view) + absent(view.table)


def speeds_alone(view: View) -> str:
    """The same without the ways that have no time."""
    table = there(view.table)
    size, unit = tables.time_unit([row["median_s"] for row in table])
    control = next((row["variant"] for row in table if row.get("role") == "control"), "rung 0")
    derived = [rows.derived(row, view.ceilings) for row in table]
    # A step of decoding is held against the memory, and all others against the tensor cores.
    moved = any(row.get("rate_unit") == "B/s" for row in derived)

    def climbed(row: Row) -> str:
        if rungs.rung_before(row, view.steps) is None:
            return tables.NONE
        return tables.figure(*rows.speedup(rungs.over_rung_before(row, view.steps)))

    def rate(row: Row) -> str:
        return units.significant(row["rate"] / 1e12) if row.get("rate") else tables.NONE

    def of_bf16(row: Row) -> str:
        return _percent(rungs.share_of_bf16(row, view.whole, view.ceilings))

    columns = [
        (f"#step, {unit}", lambda row: tables.figure(*ends(row), size)),
        ("#over the rung it changes", climbed),
        ("", lambda row: _verdict(row, view)),
        (f"#over {control}", lambda row: tables.figure(*rows.speedup(row))),
        ("#TB/s" if moved else "#TFLOP/s", rate),
        ("#% of its limit", _limit),
    ]
    columns += [] if moved else [("#% of bf16's", of_bf16)]
    if any(not units.missing(row.get("executed_share")) for row in table):
        columns += [("#% without masked FLOPs", lambda row: _percent(row.get("executed_share")))]
    return listed(columns, derived, "The rungs: times and speed-ups")


def costs(view: View) -> str:
    """Memory, kernels and gaps of a step, and what the first step takes."""
    columns = [
        ("#peak of a step", _of("peak_bytes")),
        ("#peak with weights", _of("total_peak_bytes")),
        ("#reserved, growth", _of("reserved_bytes")),
        ("#kernels a step", _of("kernels_per_call")),
        ("#gaps, % of it", lambda row: _share(row, "gap_s", "median_s")),
        ("#first step", _of("setup_s")),
        ("#paid back after, steps", _uses),
    ]
    label = "The rungs: memory, kernels and the first step"
    return listed(columns, there(view.table), label) + absent(view.table)


def gates(view: View) -> str:
    """Errors against rung 0 beside what is allowed, and what else must be equal."""
    table = [row for row in view.table if rungs.standing(row)]  # void ones with their errors
    columns = [
        ("products in", lambda row: escape(rungs.format_of(row)) or tables.NONE),
        ("attention by", lambda row: escape(str(row.get("backend") or "")) or tables.NONE),
    ]
    for column in rungs.ERRORS:
        if any(not units.missing(row.get(column)) for row in table):
            columns += _gate(column)
    columns += [
        ("gate", lambda row: tables.chip(rungs.standing(row))),
        ("#parameters", lambda row: _count(row.get("parameters"))),
        ("#FLOPs, of the formula's", lambda row: _share(row, "counted_flops", "flops", "%")),
    ]
    left_out = [row for row in view.table if row not in table]
    return listed(columns, table, "The rungs: errors") + absent(left_out)


def kernels(view: View) -> str:
    """The kernels of one step that take longest, with what they do."""
    lines = []
    for row in view.table:
        busy = row.get("busy_s")
        for kernel, kind, count, seconds in rungs.heaviest(row, MOST_KERNELS):
            what = escape(rungs.KINDS.get(f"{kind}_s", kind))
            share = units.percent(seconds / busy, 2) if busy else ""
            cells = [tables.code(row["variant"]), tables.kernel(kernel), what]
            lines.append([*cells, f"{count:g}", units.seconds(seconds), share])
    if not lines:
        return absent(view.table) or '<p class="why">No kernel was recorded.</p>'
    heads = ["rung", "kernel", "what it does"]
    heads += ["#launches a step", "#time a step", "#% of the busy time"]
    table = tables.listed(heads, lines, "The longest kernels of a step", "kernels")
    return table + absent(view.table)


def listed(columns: Sequence, lines: Sequence[Row], label: str) -> str:
    """A line for each way; what must be known of all of them is said once."""
    said = tables.shared(lines)
    columns = [("rung", lambda row: name(row, said)), *columns]
    return tables.by_columns(columns, lines, label, "rungs", sparse=True, tags=said)


def _of(column: str) -> Callable[[Row], str]:
    return lambda row: tables.cell(row, column)


def _share(row: Row, part: str, whole: str, sign: str = "") -> str:
    unknown = any(units.missing(row.get(column)) for column in (part, whole))
    return _percent(None if unknown else row[part] / row[whole], sign)


def name(row: Row, said: Sequence[tables.Tag] = ()) -> str:
    """A way with what it is in words, and what must be known of it and was not `said` of all."""
    known = [*said, tables.against(str(row.get("control")))]  # by the columns of speed-ups
    words = f'<span class="remarks ci words">{escape(rungs.in_words(row))}</span>'
    return tables.code(row.get("variant")) + words + tables.under(row, known)


def ends(row: Row) -> tuple[float | None, float | None, float | None]:
    """Time of a row with its interval, where it has one that could be trusted."""
    if not rungs.measured(row):
        return None, None, None
    return row["median_s"], row.get("low_s"), row.get("high_s")


def _verdict(row: Row, view: View) -> str:
    """The verdict over the rung before, and which that is; of a way without one, where all are ways
    of one rung, that over the control."""
    below = rungs.rung_before(row, view.steps)
    if below is None:
        return tables.chip(row["verdict"]) if row.get("role") == "variant" else tables.NONE
    word = rungs.over_rung_before(row, view.steps).get("verdict")
    against = f'<span class="remarks ci">vs {escape(str(below["variant"]))}</span>'
    return (tables.chip(word) if word else "") + against


def _limit(row: Row) -> str:
    """Share of the best product of the row's own format in the same run, or of the machine's."""
    share = row.get("share_of_ceiling")
    if not units.missing(share):
        hover = "of the best product of its format in this run"
        return f'<span title="{hover}">{_percent(share)}</span>'
    if units.missing(row.get("share")):
        return tables.NONE
    return tables.of_limit(row, _percent(row["share"]))


def _percent(share: float | None, sign: str = "") -> str:
    return tables.NONE if units.missing(share) else units.percent(share).removesuffix("%") + sign


def _uses(row: Row) -> str:
    ends = [row.get(name) for name in ("uses", "uses_low", "uses_high")]
    if units.missing(ends[0]):
        return tables.NONE
    low, high = (None if units.missing(end) else units.significant(end, 2) for end in ends[1:])
    interval = f' <span class="ci">[{low}, {high}]</span>' if low and high else ""
    return units.significant(ends[0], 2) + interval


def _gate(column: str) -> list[tuple[str, Callable[[Row], str]]]:
    allowed = rungs.ALLOWED[column]
    return [
        (f"#error of {rungs.ERRORS[column]}", lambda row: _small(row.get(column))),
        ("#allowed", lambda row: _small(allowed.get(rungs.format_of(row)))),
    ]


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
            ways.setdefault(why, []).append(tables.code(row["variant"]))
    lines = [f"<li>{', '.join(names)}: {escape(why)}</li>" for why, names in ways.items()]
    return f'<ul class="breaks">{"".join(lines)}</ul>' if lines else ""
