"""Recorded operations placed on the machine's roofline."""

from collections.abc import Mapping, Sequence
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
from anatomy.table.errors import BadParameter


class Placed(NamedTuple):
    """One operation: what it is called, its row, and its operations for each byte of HBM traffic
    that it can't do without."""

    label: str
    row: Row
    intensity: float

    @property
    def rates(self) -> tuple[float, float, float]:
        """Operations per second, and the ends of their interval."""
        work = self.intensity * self.row["bytes"]
        return tuple(work / self.row[name] for name in ("median_s", "high_s", "low_s"))


def placed(operations: Mapping[str, Mapping[str, Any]], *, caption: str | None = None) -> str:
    """Operations on the roofline: how many operations per byte each does, and how many per second
    it reaches.

        placed({"matmul 4096, fp16": dict(experiment="contiguity.bench", op="matmul",
                                          variant="contiguous", quantity="gpu_cold")})

    Args:
        operations: What an operation is called -> its `experiment`, `variant`, `op`, `quantity`,
            parameters, and `flops_per_byte` where its row counts no operations.
    """
    showing = current()
    asked = {label: dict(given) for label, given in operations.items()}
    found = {}
    for label, given in asked.items():
        name, op, quantity = given.pop("experiment"), given.get("op"), given.get("quantity")
        own = {k: v for k, v in given.items() if k not in ("variant", "flops_per_byte", *CHOOSE)}
        found[label] = showing.find(name, **selectors(name, own, op, quantity))
    limits = showing.find(machine.EXPERIMENT)

    def draw() -> str:
        ceilings = showing.ceilings_of(limits)
        there = {label: each.recording for label, each in found.items() if each.recording}
        points = [_placed(label, there[label], asked[label]) for label in there]
        return _drawn(points, ceilings) if points and ceilings.get("copy") else ""

    every = {id(each): each for each in (limits, *found.values())}
    return framing.exhibit(list(every.values()), caption, draw)


CHOOSE = ("op", "quantity")


def _placed(label: str, recording: Recording, given: Mapping[str, Any]) -> Placed:
    chosen = {"op": given.get("op"), "quantity": given.get("quantity")}
    table = rows.select(recording.rows, **chosen, variants=[given["variant"]])
    if len(table) != 1 or not table[0].get("bytes") or not table[0].get("median_s"):
        raise BadParameter(f"{label!r} must choose one row with bytes and a time.")
    per_byte = given.get("flops_per_byte")
    if per_byte is None and not table[0].get("flops"):
        raise BadParameter(f"the row of {label!r} counts no operations: give flops_per_byte.")
    return Placed(label, table[0], per_byte or table[0]["flops"] / table[0]["bytes"])


def _drawn(points: Sequence[Placed], ceilings: Ceilings) -> str:
    slope = ceilings.get("copy").value
    marks, lines = [], []
    for number, each in enumerate(sorted(points, key=lambda point: point.intensity), 1):
        rate, low, high = each.rates
        bound = each.intensity * slope
        said = units.rate(rate, "FLOP/s", low, high)
        hover = f"{each.label}: {units.significant(each.intensity)} FLOP/B, {said}"
        mark = {"at": each.intensity, "value": rate, "low": low, "high": high}
        marks.append(mark | {"number": str(number), "hover": hover})
        share = units.percent(rate / bound) if bound < _peak(ceilings) else tables.NONE
        intensity = f"{units.significant(each.intensity)} FLOP/B"
        lines.append([f"{number}. {escape(each.label)}", intensity, said, share])
    drawing = svg.Drawing("loglog.roofline", (*rooflines.roofs(ceilings)[:2], marks))
    label = "Operations on the roofline. The table under it names them."
    head = ("operation", "#arithmetic intensity", "#reaches", "#of what HBM allows")
    table = tables.listed(head, lines, "Operations on the roofline")
    return svg.chart([("", drawing)], label) + figures.twin(table, unfold=True)


def _peak(ceilings: Ceilings) -> float:
    return max(ceilings.get(name).value for name in rooflines.formats(ceilings))
