"""Recorded operations placed on the machine's roofline."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from anatomy.figures import framing, tables
from anatomy.figures.charts import figures, svg
from anatomy.figures.limits import rooflines
from anatomy.judge import limits as machine
from anatomy.judge import rows
from anatomy.judge.limits import Ceilings
from anatomy.judge.rows import Row
from anatomy.record.recording import Recording
from anatomy.record.showing import current, selectors
from anatomy.table import units
from anatomy.table.errors import BadParameter, lookup

CHOOSE = ("op", "quantity")
OWN = ("variant", "flops_per_byte", "bytes_moved")  # what is said of an operation, and no parameter
BELOW = "The table under it has the figures."


class Placed(NamedTuple):
    """One operation: what it is called, its row, and its operations for each byte of HBM traffic
    that it can't do without, and for each that it `moved`, where that is known."""

    label: str
    row: Row
    intensity: float
    moved: float | None = None

    @property
    def rates(self) -> tuple[float, float, float]:
        """Operations per second, and the ends of their interval."""
        work = self.intensity * self.row["bytes"]
        return tuple(work / self.row[name] for name in ("median_s", "high_s", "low_s"))

    @property
    def said(self) -> str:
        """Its rate in words."""
        rate, low, high = self.rates
        return units.rate(rate, "FLOP/s", low, high)

    def mark(self, number: str, more: str = "") -> dict[str, Any]:
        """Its mark on a roofline, called by its number in the table, with what is told of it where
        a reader points."""
        rate, low, high = self.rates
        hover = f"{self.label}: {units.significant(self.intensity)} FLOP/B, {self.said}{more}"
        at = {"at": self.intensity, "value": rate, "low": low, "high": high}
        return at | {"number": number, "name": number, "hover": hover}

    def trail(self, slope: float) -> dict[str, Any]:
        """From its mark to where it lies by the bytes that it moves; `slope` is a copy's rate."""
        rate, share = self.rates[0], self.rates[0] / (self.moved * slope)
        told = f"{self.label}, by the bytes that it moves: {units.significant(self.moved)} FLOP/B, "
        told += f"{units.percent(share)} of what HBM allows"
        return {"at": self.moved, "value": rate, "from": self.intensity, "hover": told}


def with_table(
    layers: Sequence[Any],
    name: str,
    head: Sequence[str],
    lines: Sequence[Sequence[str]],
    *,
    unfold: bool = False,
) -> str:
    """The picture of roofs, their slopes and marks, and under it the table of all marks."""
    chart = svg.chart([("", svg.Drawing("loglog.roofline", tuple(layers)))], f"{name}. {BELOW}")
    return chart + figures.twin(tables.listed(head, lines, name), unfold=unfold)


def named(
    table: Sequence[Row], only: Sequence[str], least: Callable[[Row], Any], ceilings: Ceilings
) -> str:
    """A few variants of a table, each with its name and its share of the least time that it can
    take beside its mark, or a number on a phone; on the roofs of their `dtype` alone, and without
    a table. UnknownName of one that the table lacks."""
    known, marks = {row["variant"]: row for row in table}, []
    for number, name in enumerate(only, 1):
        row = lookup("operation", name, known)
        bound = least(row)  # its `seconds`, and the `roof` that says so
        label = f"{name}, {units.percent(bound.seconds / row['median_s'])}"
        if bound.roof in machine.DRAM and bound.roof != "copy":  # the slope is a copy's
            label += f" of {bound.roof}"
        mark = Placed(label, row, row["flops"] / row["bytes"]).mark(str(number))
        marks.append(mark | {"name": label, "series": row["dtype"]})
    every, slope, _ = rooflines.roofs(ceilings)
    formats, names = {mark["series"] for mark in marks}, [mark["name"] for mark in marks]
    layers = [roof for roof in every if roof["series"] in formats], slope, marks
    label = f"Operations on the measured roofs: {'; '.join(names)}."
    return svg.chart([("", svg.Drawing("loglog.roofline", layers))], label) + key(names, layers[0])


def key(names: Sequence[str], flat: Sequence[Mapping[str, Any]], rest: str = "") -> str:
    """What a phone's chart has no room for: what the numbers beside marks stand for, where the
    `rest` is, and where each `flat` roof begins."""
    told = "; ".join(f"{number}. {escape(name)}" for number, name in enumerate(names, 1))
    told += f". {rest} " if rest else ". " if told else ""
    corners = ", ".join(f"{escape(roof['series'])} {roof['text']}" for roof in flat)
    return f'<p class="key numbered narrow">{told}Corners in FLOP/B: {corners}.</p>'


def placed(operations: Mapping[str, Mapping[str, Any]], *, caption: str | None = None) -> str:
    """Operations on the roofline: how many operations per byte each does, and how many per second
    it reaches. On a phone a mark has the number of its line in the table in place of its name.

        placed({"matmul 4096, fp16": dict(experiment="contiguity.bench", op="matmul",
                                          variant="contiguous", quantity="gpu_cold")})

    Args:
        operations: What an operation is called -> its `experiment`, `variant`, `op`, `quantity`,
            parameters, `flops_per_byte` where its row counts no operations, and `bytes_moved`
            where it moves more than it must: there a hollow mark stands.
    """
    showing = current()
    asked = {label: dict(given) for label, given in operations.items()}
    found = {}
    for label, given in asked.items():
        name, op, quantity = given.pop("experiment"), given.get("op"), given.get("quantity")
        own = {k: v for k, v in given.items() if k not in (*OWN, *CHOOSE)}
        found[label] = showing.find(name, **selectors(name, own, op, quantity))
    limits = showing.find(machine.EXPERIMENT)

    def draw() -> str:
        ceilings = showing.ceilings_of(limits)
        there = {label: each.recording for label, each in found.items() if each.recording}
        points = [_placed(label, there[label], asked[label]) for label in there]
        return _drawn(points, ceilings) if points and ceilings.get("copy") else ""

    every = {id(each): each for each in (limits, *found.values())}
    return framing.exhibit(list(every.values()), caption, draw)


def _placed(label: str, recording: Recording, given: Mapping[str, Any]) -> Placed:
    chosen = {"op": given.get("op"), "quantity": given.get("quantity")}
    table = rows.select(recording.rows, **chosen, variants=[given["variant"]])
    if len(table) != 1 or not table[0].get("bytes") or not table[0].get("median_s"):
        raise BadParameter(f"{label!r} must choose one row with bytes and a time.")
    per_byte = given.get("flops_per_byte")
    if per_byte is None and not table[0].get("flops"):
        raise BadParameter(f"the row of {label!r} counts no operations: give flops_per_byte.")
    moved = given.get("bytes_moved") and table[0]["flops"] / given["bytes_moved"]
    return Placed(label, table[0], per_byte or table[0]["flops"] / table[0]["bytes"], moved)


def _drawn(points: Sequence[Placed], ceilings: Ceilings) -> str:
    slope = ceilings.get("copy").value
    marks, lines = [], []
    for number, each in enumerate(sorted(points, key=lambda point: point.intensity), 1):
        bound = each.intensity * slope
        share = each.rates[0] / bound if bound < _peak(ceilings) else None
        roof = _roof(each.row, share, ceilings)
        mark = each.mark(str(number), f"; {roof}" if roof else "") | {"name": each.label}
        if share is None:
            mark |= {"series": str(each.row.get("limit")).removeprefix(machine.MATMUL)}
        marks.append(mark)
        intensity = f"{units.significant(each.intensity)} FLOP/B"
        lines.append([f"{number}. {escape(each.label)}", intensity, each.said, roof or tables.NONE])
    head = ("operation", "#arithmetic intensity", "#reaches", "#of its roof")
    trails = [each.trail(slope) for each in points if each.moved]
    layers = (*rooflines.roofs(ceilings)[:2], marks, trails)
    return with_table(layers, "Operations on the roofline", head, lines, unfold=True)


def _roof(row: Row, share: float | None, ceilings: Ceilings) -> str:
    """Under which roof an operation is, and how near."""
    if share is not None:
        return f"{units.percent(share)} of what HBM allows"
    own = rows.derived(row, ceilings)
    if units.missing(own.get("share")):
        return ""
    name = own["share_of"].removeprefix(machine.MATMUL)
    return f"{units.percent(own['share'])} of the {name} peak"


def _peak(ceilings: Ceilings) -> float:
    return max(ceilings.get(name).value for name in rooflines.formats(ceilings))
