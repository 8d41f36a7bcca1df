"""A comparison in words, for a terminal and for a notebook: the same cells, two ways to set them.

Merged rows of several processes are told by `cli.text`, as recordings are.
"""

from collections.abc import Collection, Mapping, Sequence
from html import escape
from typing import Any

from anatomy.judge import limits
from anatomy.table import intervals, units

Row = Mapping[str, Any]
Limits = limits.Ceilings | None  # the machine's; None where they are not known

TIMES = {
    "gpu_cold": "{} time, cold cache",
    "gpu_warm": "{} time, back to back",
    "host_enqueue": "host time until the call returns",
    "step_wall": "wall time of a step",
}
# Number columns stand to the right, so that digits of one size stand under each other.
RIGHT = ("time", "over control", "of the limit")


def cells(rows: Sequence[Row], ceilings: Limits = None) -> list[dict[str, str]]:
    """What each row of one comparison says, by heading; one under which nothing stands is left out.

    So is the control's duplicate, because its ratio is the noise floor.
    """
    main = next((row["variant"] for row in rows if row.get("role") == "control"), None)
    shown = [_cells(row, main, ceilings) for row in rows if row.get("role") != "again"]
    used = [heading for heading in shown[0] if any(line[heading] for line in shown)]
    return [{heading: line[heading] for heading in used} for line in shown]


def _cells(row: Row, main: str | None, ceilings: Limits) -> dict[str, str]:
    control = row.get("role") == "control"
    ratio = "" if control else units.ratio_range(row["ratio"], row["ratio_low"], row["ratio_high"])
    verdict = "control" if control else row["verdict"]
    if row.get("wide"):
        verdict += ", wide"
    limit, other = str(row.get("limit") or ""), row.get("control")
    product = limit.startswith(limits.MATMUL)
    roof = limits.bound(row.get("flops"), row.get("bytes"), ceilings, limit) if product else None
    # Whom a variant is over, where that is another one than the table's control.
    over = f"over {other}" if other and other != main else ""
    capped = "power-limited" if row.get("throttle") == "power-limited" else ""
    return {
        "variant": row["variant"],
        "time": units.seconds_range(row["median_s"], row["low_s"], row["high_s"]),
        "over control": ratio,
        "verdict": verdict,
        "of the limit": _share(row, roof, ceilings),
        "regime": ", ".join(filter(None, (row.get("regime"), roof and roof.kind))),
        "note": ". ".join(filter(None, (over, capped, row.get("note")))),
    }


def _share(row: Row, roof: limits.Bound | None, ceilings: Limits) -> str:
    """The share of the ceiling that binds the call: of bytes or of operations."""
    if ceilings is None or row.get("verdict") == "impossible" or not row.get("median_s"):
        return ""
    binding = "copy" if roof and roof.kind == "memory-bound" else row.get("limit")
    if (found := limits.share({**row, "limit": binding}, ceilings)) is None:
        return ""
    share, ceiling = found
    stated = "" if ceiling.kind == "measured" else " (datasheet)"
    return f"{units.percent(share)} of {ceiling.name}{stated}"


def _below(rows: Sequence[Row], noise_floor: float, warnings, ceilings: Limits) -> list[str]:
    """The lines under a table: the quantity, the noise floor, how to get limits, and warnings."""
    first = rows[0]
    control = next((row["variant"] for row in rows if row.get("role") == "control"), "the control")
    blocks = len(first.get("blocks_s") or [])
    time = TIMES.get(first["quantity"], "").format("CPU" if first.get("device") == "cpu" else "GPU")
    few = "the range of all, which is no interval of 95 %"
    spread = few if intervals.coverage(blocks, 1) < 0.95 else "95 % intervals"
    lines = [
        f"{time} ({first['quantity']}); medians of {blocks} blocks with {spread}",
        f"noise floor {units.percent(noise_floor)}: how far {control} strays from itself",
    ]
    asked = any(row.get("limit") for row in rows) and first.get("device") == "cuda"
    if asked and (ceilings is None or not ceilings.measured):
        command = "pytorch-gpu-anatomy limits --save recordings"
        lines.append(f"measure this machine's own limits with: {command}")
    return [*lines, *(f"warning: {warning}" for warning in warnings)]


def as_text(
    rows: Sequence[Row], noise_floor: float, warnings: Sequence[str] = (), ceilings: Limits = None
) -> str:
    """A comparison as aligned lines."""
    table = cells(rows, ceilings)
    heads = list(table[0])
    right = {at for at, head in enumerate(heads) if head in RIGHT}
    lines = aligned([heads, *(list(line.values()) for line in table)], right)
    return "\n".join([*lines, *_below(rows, noise_floor, warnings, ceilings)])


def aligned(lines: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Lines of cells with their columns one under the other; those at `right` to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides = [">" if at in right else "<" for at in range(len(widths))]
    return ["  ".join(map("{:{}{}}".format, cells, sides, widths)).rstrip() for cells in lines]


def as_html(
    rows: Sequence[Row], noise_floor: float, warnings: Sequence[str] = (), ceilings: Limits = None
) -> str:
    """A comparison as an HTML table without scripts, for a notebook."""
    return html_table(cells(rows, ceilings), _below(rows, noise_floor, warnings, ceilings))


def html_table(table: Sequence[Mapping[str, str]], below: Sequence[str] = ()) -> str:
    """Lines of cells, by heading, as an HTML table with lines of text under it."""

    def line(tag: str, texts: Mapping[str, str]) -> str:
        each = ""
        for head, text in texts.items():
            side = "right" if head in RIGHT else "left"
            each += f'<{tag} style="text-align:{side}">{escape(text)}</{tag}>'
        return f"<tr>{each}</tr>"

    head = line("th", {head: head for head in table[0]})
    body = "".join(line("td", texts) for texts in table)
    under = "".join(f"<p>{escape(line)}</p>" for line in below)
    return f"<div><table><thead>{head}</thead><tbody>{body}</tbody></table>{under}</div>"
