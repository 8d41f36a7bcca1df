"""What a notebook calls to measure on its reader's GPU, and to look at what came of it.

    from anatomy.notebook import measure

    stairs = measure("occupancy.staircase")   # seconds on your GPU
    stairs.show(op="one block an SM")          # a table with intervals
    stairs.row(op="one block an SM", edge="full")["median_s"]

Without a GPU, or with ANATOMY_MODE=replay, a checkout's recording stands in and says of which
machine it is. Where the site is built, a lab is executed with the recordings of the machine that is
shown, and the same calls give the figures of its pages. No torch is needed there.
"""

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import nan
from typing import Any

from anatomy.judge import printing
from anatomy.judge import rows as rows_of
from anatomy.machine import host
from anatomy.record import recording, showing, signatures
from anatomy.record.recording import Recording
from anatomy.table import units
from anatomy.table.errors import BadParameter, told_in_python

HTML = "<!--html-->", "<!--/html-->"  # around what is HTML among what a lab's cell prints


@dataclass(frozen=True)
class Shown:
    """A figure or a table, which a notebook shows by itself."""

    html: str

    def _repr_html_(self) -> str:
        return self.html


@dataclass(frozen=True)
class Measured:
    """What one experiment measured. Times end in `_s` and are seconds, sizes in `_bytes`; `rate` is
    work over time, in what `rate_unit` says."""

    experiment: str
    params: Mapping[str, Any]
    recording: Recording | None  # None where a build has none
    rows: Sequence[Mapping[str, Any]] = field(repr=False)  # judged, as tables show them

    def row(self, **where: Any) -> Mapping[str, Any]:
        """The one row whose columns have these values, repeated controls left out. Where a build
        has no recording, a row of which every number is nan. BadParameter unless it is one."""
        if not self.recording:
            return defaultdict(lambda: nan)
        with told_in_python():
            found = rows_of.meeting(self.rows, where)
            found = [each for each in found if each.get("role") != "again"]
            if len(found) != 1:
                apart = rows_of.telling_apart(found)
                raise BadParameter(f"{where}: {len(found)} rows are like that. {apart}".strip())
            return found[0]

    def show(
        self,
        *,
        op: str | None = None,
        quantity: str | None = None,
        rows: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        chart: str | None = None,
        caption: str | None = None,
    ) -> Shown:
        """Rows as a table with intervals; on the site as `anatomy.page.show` has them, with its
        `chart`. `rows` are variants."""
        if showing.of_build():
            from anatomy import page

            given = {"op": op, "quantity": quantity, "rows": rows, "columns": columns}
            given |= {"where": where, "chart": chart, "caption": caption}
            return Shown(page.show(self.experiment, **given, **self._unsaid(given)))
        with told_in_python():
            chosen = rows_of.meeting(self.rows, where)
            chosen = rows_of.select(chosen, op=op, quantity=quantity, variants=rows)
            return Shown(_tables(chosen, columns, self.recording) + self._origin())

    def curve(
        self,
        *,
        x: str,
        y: str,
        series: str = "variant",
        where: Mapping[str, Any] | None = None,
        **how: Any,
    ) -> Shown:
        """A column over a size: on the site as a line for each series (`anatomy.page.curve`), else
        as a table."""
        if showing.of_build():
            from anatomy import page

            given = {"x": x, "y": y, "series": series, "where": where, **how}
            return Shown(page.curve(self.experiment, **given, **self._unsaid(given)))
        with told_in_python():
            chosen = rows_of.meeting(self.rows, where)
            chosen = rows_of.select(chosen, op=how.get("op"), quantity=how.get("quantity"))
            chosen = [each for each in chosen if each.get("role") != "again"]
            return Shown(_table(chosen, (series, x, y)) + self._origin())

    def _origin(self) -> str:
        machine = self.recording.data["machine"]
        name = machine.get("gpu") or machine.get("cpu") or self.recording.machine
        return f"<p>{escape(self.experiment)}, measured on: {escape(name)}</p>"

    def _unsaid(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of the call but for those that select rows as well."""
        return {name: value for name, value in self.params.items() if name not in given}


def measure(experiment: str, **params: Any) -> Measured:
    """Measure one experiment in a process of its own, by name and parameters as its command has
    them: `measure("coalescing.strides", iters=24)`. Raises the AnatomyError that its command would
    tell, with one line that says what to do."""
    with told_in_python():
        declared = signatures.signature(experiment)
        if current := showing.of_build():
            found = current.find(experiment, **params)
            return _as_measured(experiment, params, found.recording, current.ceilings_of(found))
        wanted = declared.bind(**params)
        if recording.on_cpu(wanted) or (os.environ.get("ANATOMY_MODE") != "replay" and host.here()):
            from anatomy.cli.measure import measured

            how = {"timeout": None, "allow_foreign": False, "processes": None}
            made = measured(declared, wanted, how)
        else:
            made = showing.current().find(experiment, **params).recording
            if made is None:
                raise BadParameter(f"There is no GPU here, and no recording of {experiment}.")
        return _as_measured(experiment, params, made, recording.known_ceilings(made.machine))


def beside(guess: float | None, measured: float, unit: str = "") -> str:
    """A guess beside what was measured, in one line. Both are in SI units: `s`, `B/s` and `FLOP/s`
    are printed with a prefix, shares of 1 whose unit begins with `%` in percent, other units as
    they are."""

    def said(value: float) -> str:
        if unit == "s":
            return units.seconds(value)
        if unit.endswith("/s"):
            return units.rate(value, unit)
        if unit.startswith("%"):
            return units.percent(value) + unit[1:]
        whole = value == value // 1  # a count
        return f"{f'{value:.0f}' if whole else units.significant(value)} {unit}".strip()

    if guess is None:
        return f"measured: {said(measured)} (no guess yet)"
    off = max(guess, measured) / min(guess, measured) if guess > 0 and measured > 0 else nan
    return f"your guess: {said(guess)}; measured: {said(measured)}; a factor of {off:.2g} apart"


def output(value: Any) -> str:
    """What a notebook shows of a value, marked where it is HTML; nothing of None."""
    if hasattr(value, "_repr_html_"):
        return f"{HTML[0]}{value._repr_html_()}{HTML[1]}"
    return "" if value is None else escape(repr(value))


def _as_measured(name: str, params: Mapping[str, Any], made: Recording | None, ceilings):
    rows = [rows_of.derived(row, ceilings) for row in made.rows] if made else []
    return Measured(name, params, made, rows)


def _tables(chosen: Sequence[Mapping[str, Any]], columns, made: Recording) -> str:
    """A table for each operation and quantity, of the columns asked for if any are."""
    if columns:
        return _table(chosen, columns)
    parts = []
    for (op, quantity), group in rows_of.groups_of(chosen):
        name = rows_of.group_name(op, quantity)
        judged = [row for row in group if row.get("role") == "control" or row.get("verdict")]
        if judged:
            ceilings = recording.known_ceilings(made.machine)
            table = printing.as_html(judged, rows_of.noise_floor(group), (), ceilings)
        else:
            shown = [each for each in group[0] if not units.missing(group[0][each])]
            table = _table(group, dict.fromkeys(["variant", *shown]))
        parts.append(f"<p><strong>{escape(name)}</strong></p>{table}" if name else table)
    warned = "".join(f"<li>{escape(each)}</li>" for each in dict.fromkeys(made.warnings))
    told = f"<details><summary>Warnings of the measurement</summary><ul>{warned}</ul></details>"
    return "".join([*parts, told if warned else ""])


def _table(chosen: Sequence[Mapping[str, Any]], columns: Iterable[str]) -> str:
    def cell(row: Mapping[str, Any], column: str) -> str:
        return "" if units.missing(row.get(column)) else rows_of.ranged(row, column)

    lines = [{rows_of.heading(c): cell(row, c) for c in columns} for row in chosen]
    return printing.html_table(lines) if lines else "<p>No rows are like that.</p>"
