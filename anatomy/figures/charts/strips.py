"""The run strip under a figure, and what stands in its place when there is no current recording.

A gap says that nothing was recorded, a badge that what was recorded no longer speaks for the code
or the machine; both name the command that mends it, and so does the strip of a figure that was made
on another machine than the one shown. None of them ever hides a figure's age or its machine.
"""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from html import escape
from typing import Any

from anatomy.judge import limits, rows
from anatomy.judge.pace import HOST
from anatomy.record import occasions, recording
from anatomy.record.recording import Recording
from anatomy.record.showing import Found, Showing
from anatomy.table import units
from anatomy.table.errors import AnatomyError

_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")  # that of a name, such as fp16, is none


def strip(showing: Showing, found: Sequence[Found]) -> str:
    """The line that says where figures come from, for one recording or for several together; on a
    narrow screen all but the GPU and the date folds away."""
    seen = {each.recording.path: each.recording for each in found if each.recording is not None}
    there = list(seen.values())
    if not there:
        return ""
    facts = _facts(there) + _of_hosts(showing, there) + _card_notes(there, showing.here)
    device = escape(facts[0][1])
    parts = [f"<b>{device}</b>", *(f"{name} {escape(value)}" for name, value in facts[1:])]
    line = " · ".join([*(f"<span>{part}</span>" for part in parts), _files(showing, there)])
    short = f"{device} · {escape(dict(facts)['recorded'])}"
    whole = elsewhere(showing, found)
    whole += f'<div class="strip-line">{line}</div><details class="strip-fold">'
    whole += f"<summary>{short}</summary><div>{line}</div></details>{_warnings(there)}"
    return f'<div class="strip" data-search-exclude>{whole}</div>'


def elsewhere(showing: Showing, found: Iterable[Found]) -> str:
    """That figures are a published machine's, whose name they bear, and what measures them on the
    one shown; empty where all are of that."""
    found = list(found)
    borrowed = [each for each in found if each.instead_of]
    if not borrowed:
        return ""
    names = _several(gpu_of(each.recording) for each in borrowed if each.recording)
    lacking = [each for each in borrowed if each.lacking]
    part = "" if len(borrowed) == len(found) else f" in {len(borrowed)} of {len(found)} recordings"
    some = "" if len(lacking) == len(borrowed) else f"{len(lacking)} of {len(borrowed)} "
    said = f"<b>{escape(names)}</b>{part}: {some}not measured on this machine yet"
    commands = list(dict.fromkeys(each.command for each in lacking))
    how, mend = "; ".join(commands), ""
    if not showing.commands_named.issuperset(commands):
        showing.commands_named.update(commands)
        more = f" and {len(commands) - 1} more" if commands[1:] else ""
        mend = f": <code>{escape(commands[0])}</code>{more}"
    return f'<p class="strip-elsewhere" role="note" title="{escape(how)}">{said}{mend}</p>'


def gpu_of(recording: Recording) -> str:
    """What readers call the machine of a recording."""
    machine = recording.data["machine"]
    return machine.get("gpu") or machine.get("cpu") or machine["slug"]


def notices(showing: Showing, found: Iterable[Found]) -> str:
    """Gaps and badges of recordings that are missing or not current; empty if all are. A page says
    once what mends them; later ones that the same commands mend are a line each."""
    parts, failed = {}, {}
    for each in found:
        if not each.freshness.current:
            parts.setdefault(each.freshness.state, []).append(each)
        if failure := (each.instead_of or each).failure:
            failed[failure.reason] = None
    reasons = "".join(map(_failure, failed))
    return reasons + "".join(_notice(showing, state, each) for state, each in parts.items())


def _failure(reason: str) -> str:
    said = f"<p><b>Could not be measured on this machine:</b> {escape(reason)}</p>"
    return f'<div class="notice failed" role="note" data-search-exclude>{said}</div>'


def commands(found: Iterable[Found]) -> tuple[str, str]:
    """The first of the commands that mend what is not current, as markup, and how many follow."""
    each = list(dict.fromkeys(f.command for f in found if f.lacking or not f.freshness.current))
    return escape(each[0]) if each else "", f" and {len(each) - 1} more" if each[1:] else ""


def _notice(showing: Showing, state: str, found: list[Found]) -> str:
    commands = list(dict.fromkeys(each.command for each in found))
    several = len(commands) > 1
    kind, what, why = "badge", "Out of date", f" {escape(found[0].freshness.reason)}"
    if state == "missing":
        what = f"{len(commands)} recordings are missing" if several else "Not recorded yet"
        kind, why = "gap", ""
    if showing.commands_named.issuperset(commands):
        how = f'role="note" title="{escape("; ".join(commands))}" data-search-exclude'
        return f'<p class="notice {kind} again" {how}><b>{what}.</b></p>'
    showing.commands_named.update(commands)
    where = "" if all(each.on_cpu for each in found) else " on the GPU host"
    said = f"<p><b>{what}.</b>{why} Record {'them' if several else 'it'}{where}:</p>"
    said += f"<pre><code>{escape(chr(10).join(commands))}</code></pre>"
    return f'<div class="notice {kind}" role="note" data-search-exclude>{said}</div>'


def _facts(there: Sequence[Recording]) -> list[tuple[str, str]]:
    data = [each.data for each in there]
    machines = [each["machine"] for each in data]
    floors = [floor for each in there for floor in each.noise_floor.values()]
    facts = [
        ("GPU", _several(map(gpu_of, there))),
        ("torch", _several(each["software"].get("torch") for each in data)),
        ("CUDA", _several(each["software"].get("cuda") for each in data)),
        ("driver", _several(m.get("driver") for m in machines)),
        ("SM clock", _seen(there, "sm_clock_mhz", "MHz")),
        ("power", _seen(there, "power_w", "W")),
        ("temperature", _seen(there, "temperature_c", "°C")),
        ("noise floor", _range(floors, lambda floor: units.percent(floor, 2))),
        ("measured in", _processes(data)),
        ("seen on", _occasions(there)),
        ("recorded", _range([each["started_at"][:10] for each in data], joined=" to ")),
        ("commit", _several(_commit(each["code"]) for each in data)),
    ]
    return [(name, value) for name, value in facts if value]


def _several(values: Iterable[str | None]) -> str:
    return " / ".join(dict.fromkeys(value for value in values if value))


def _seen(there: Sequence[Recording], name: str, unit: str) -> str:
    """What was seen while measuring, or before and after where the rows do not say."""
    conditions = [each.data.get("conditions") or {} for each in there]
    around = [each.get(when) or {} for each in conditions for when in ("before", "after")]
    own = [row for each in there for row in each.rows]
    seen, beside = ([r[name] for r in some if r.get(name) is not None] for some in (own, around))
    span = _range(seen or beside, lambda value: f"{float(units.significant(value, 4)):.0f}")
    return f"{span} {unit}" if span else ""


def _range(values: Sequence, printed: Callable[[Any], str] = str, joined: str = "–") -> str:
    """The least and the greatest; one of them if they are printed alike, and nothing of none."""
    return joined.join(dict.fromkeys(printed(choose(values)) for choose in (min, max) if values))


def _processes(data: Sequence[dict]) -> str:
    """How many fresh processes, where that was not one."""
    names = sorted({str(each["method"].get("process", "")) for each in data})
    return _several(names) if any(each["method"].get("processes") for each in data) else ""


def _occasions(there: Sequence[Recording]) -> str:
    """On how many occasions; figures of one have intervals of their blocks alone."""
    counts = _range([occasions.count(each) for each in there])
    return "one occasion" if counts == "1" else f"{counts} occasions"


def _of_hosts(showing: Showing, there: Sequence[Recording]) -> list[tuple[str, str]]:
    """The host behind figures that it paces, and what one launch costs there."""
    paced = [each for each in there if any(row.get("paced_by") == HOST for row in each.rows)]
    costs = {each.machine: _launch(showing, each.machine) for each in paced}
    facts = [
        ("CPU", _several(each.data["machine"].get("cpu") for each in paced)),
        ("one launch", _several(costs.values())),
    ]
    return [(name, value) for name, value in facts if value]


def _launch(showing: Showing, machine: str) -> str | None:
    """The host's time for one launch on a machine, where that is recorded."""

    def read() -> str | None:
        with suppress(AnatomyError):
            if found := recording.find(showing.root, machine, limits.FLOORS):
                asked = limits.LAUNCH | {"quantity": "host_enqueue"}
                row = rows.meeting(found.rows, asked)[0]
                return units.seconds(row["median_s"]) if row.get("median_s") else None
        return None

    return showing.once(("launch", machine), read)


def _commit(code: dict[str, Any]) -> str:
    if not code.get("commit"):
        return "not recorded"
    return code["commit"][:7] + (" with uncommitted changes" if code.get("dirty") else "")


def _card_notes(there: Sequence[Recording], here: dict | None) -> list[tuple[str, str]]:
    """A note where another card of the model was accepted in place of this host's."""
    if here is None or os.environ.get("ANATOMY_CARD") != "any":
        return []
    others = {each.data["machine"].get("card") for each in there} - {None, here.get("card")}
    note = "another one of this model, accepted by ANATOMY_CARD=any"
    return [("card:", note)] if others else []


def _files(showing: Showing, there: Sequence[Recording]) -> str:
    def link(each: Recording, name: str) -> str:
        return f'<a class="raw" href="{escape(showing.raw_link(each))}">{escape(name)}</a>'

    if len(there) == 1:
        return link(there[0], "raw JSON")
    links = [link(each, f"{each.experiment}/{each.path.name}") for each in there]
    return _folded("files", f"{len(links)} raw JSON files", links)


def _warnings(there: Sequence[Recording]) -> str:
    texts = list(dict.fromkeys(text for each in there for text in each.warnings))
    if not texts:
        return ""
    operations = {row.get("op") for each in there for row in each.rows} - {None}
    word = "1 warning" if len(texts) == 1 else f"{len(texts)} warnings"
    return _folded("warnings", f"{word} while recording", map(escape, _grouped(texts, operations)))


def _folded(kind: str, summary: str, items: Iterable[str]) -> str:
    listed = "".join(f"<li>{item}</li>" for item in items)
    opening = f'<details class="strip-{kind}"><summary>{summary}</summary>'
    return f"{opening}<ul>{listed}</ul></details>"


def _grouped(warnings: Sequence[str], operations: set[str]) -> list[str]:
    """Warnings that say the same of several operations, but for their numbers, as one."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for text in warnings:
        op, _, rest = text.partition(": ")
        op, rest = (op, rest) if rest and op in operations else ("", text)
        groups.setdefault(_NUMBER.sub("#", rest) if op else text, []).append((op, rest))
    lines = []
    for group in groups.values():
        names, texts = zip(*group, strict=True)
        if len(group) == 1:
            lines.append(": ".join(filter(None, group[0])))
        else:
            text = _with_ranges(texts)
            text = f"{text[:1].upper()}{text[1:]} So in {len(group)} comparisons"
            lines.append(f"{text}: {', '.join(names)}.")
    return lines


def _with_ranges(texts: Sequence[str]) -> str:
    """One text for several that differ in numbers: each number as its range."""
    numbers = zip(*(map(float, _NUMBER.findall(text)) for text in texts), strict=True)
    spans = (_range(each, "{:g}".format) for each in numbers)
    return _NUMBER.sub(lambda _: next(spans), texts[0])
