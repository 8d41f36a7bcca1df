"""Where figures come from, and what stands in their place when there is no current recording.

Under a figure stands a short line, which leads to one fold at the end of the page; that says all
about each recording behind it. A gap says that nothing was recorded, a badge that what was recorded
no longer speaks for the code or the machine; both name the command that mends it, and so does the
line of a figure that was made on another machine than the one shown. A page has one badge, under
its lead, and a mark at each number and figure that it speaks of. None of them ever hides a figure's
age or its machine.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from html import escape
from typing import Any

from anatomy.figures.text import spans
from anatomy.judge import limits, rows
from anatomy.judge.pace import HOST
from anatomy.record import occasions, recording
from anatomy.record.recording import Recording
from anatomy.record.showing import Found, Showing
from anatomy.table import units
from anatomy.table.errors import AnatomyError, UnknownName

SOURCES = "numbers"  # id of the fold at the end of a page
AGED = "out-of-date"  # id of a page's one badge
MOST_COMMANDS = 2  # that stand open above a figure; more are in a fold
PACED = "host-paced"  # the tag of what the host paces, as `tables.TAGS` has it
HOW = ("device", "iters")  # parameters that say how it was measured, not what
WIDENED = "how-we-measure.md#would-you-get-the-same"  # what a figure may be on another host
FURTHER = "what another host may show"  # by which an interval goes beyond its occasions
_IN_AXIS = re.compile(r"interval over \d+ occasions")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")  # that of a name, such as fp16, is none


def under(showing: Showing, found: Iterable[Found], body: str = "") -> str:
    """The line under a figure: the machine, which leads to all about its recordings, and the CPU
    behind what the `body` marks as host-paced; the first line of a page whose figure's intervals
    are over occasions says what those are. What stands in for another machine says so."""
    there = {each.recording.path: each for each in found if each.recording is not None}
    if not there:
        return ""
    ids = [showing.cite(each) for each in there.values()]
    recordings = [each.recording for each in there.values()]
    one = len(ids) == 1
    title = call(next(iter(there.values()))) if one else "All recordings behind it"
    where = f'href="#{escape(ids[0] if one else SOURCES)}" title="{escape(title)}"'
    line = f"<a {where}>{escape(_several(map(gpu_of, recordings)))}</a>"
    line += "" if one else f", {len(ids)} recordings"
    line += spans.stale(*there.values())
    if PACED in body and (cpu := _several(each.data["machine"].get("cpu") for each in recordings)):
        line += f" · what the host paces follows the CPU: {escape(cpu)}"
    if FURTHER not in showing.said_once and (axis := _IN_AXIS.search(body)):
        showing.said_once.add(FURTHER)
        counts = _by_machine(recordings)
        over, told = (axis[0], "it spans") if len(counts) < 2 else (_each(counts), "they span")
        line += f" · {over}, {_cards(recordings)}: {told} them and, further, {_further(showing)}"
    return f'{elsewhere(showing, there.values())}<p class="from">{line}</p>'


def _further(showing: Showing) -> str:
    """`FURTHER`, which leads to the page that says by how much, where the site has it."""
    with suppress(UnknownName):
        return f'<a href="{escape(showing.link_to(WIDENED))}">{FURTHER}</a>'
    return FURTHER


def _by_machine(recordings: Iterable[Recording]) -> dict[str, int]:
    """On how many occasions each machine's rows were measured, of machines with several."""
    counts: dict[str, int] = {}
    for each in recordings:
        most = max((row.get("occasions") or 0 for row in each.rows), default=0)
        counts[gpu_of(each)] = max(counts.get(gpu_of(each), 0), most)
    return {name: count for name, count in counts.items() if count}


def _each(counts: Mapping[str, int]) -> str:
    """`intervals over 3 occasions (NVIDIA H200) and 2 (NVIDIA A100)`."""
    (name, first), *rest = counts.items()
    said = "".join(f" and {count} ({escape(other)})" for other, count in rest)
    return f"intervals over {first} occasions ({escape(name)}){said}"


def _cards(recordings: Sequence[Recording]) -> str:
    """On how many cards some recordings were made on all their occasions, and of which days."""
    newest = [{**each.data, **each.data["machine"]} for each in recordings]
    every = [*newest, *(one for each in newest for one in each.get("occasions", ()))]
    cards = len({each["card"] for each in every})
    days = _range([each["started_at"][:10] for each in every], joined=" to ")
    return f"{cards} card{'s' * (cards != 1)}, {days}"


def sources(showing: Showing) -> str:
    """What is inside the fold at the end of a page: of each recording behind it, once, the machine,
    versions, conditions, noise floor and warnings. What all have in common is said above them."""
    cited = showing.cited()
    there = [each.recording for _, each in cited]
    if not there:
        return ""
    each_has = [_facts([one]) + _of_hosts(showing, [one]) for one in there]
    common = [fact for fact in each_has[0] if all(fact in facts for facts in each_has)]
    common = common if len(there) > 1 else []
    notes = [*common, *_card_notes(there, showing.here)]
    head = f'<p class="strip">All: {_line(notes)}</p>' if notes else ""
    items = []
    for (name, found), facts in zip(cited, each_has, strict=True):
        raw = f'<a class="raw" href="{escape(showing.raw_link(found.recording))}">raw JSON</a>'
        own = [fact for fact in facts if fact not in common]
        line = " · ".join(filter(None, (_line(own), raw)))
        said = f"<code>{escape(call(found))}</code> {line}{_warnings(found.recording)}"
        items.append(f'<li id="{escape(name)}">{said}</li>')
    return f"<summary>Where these numbers come from</summary>{head}<ul>{''.join(items)}</ul>"


def call(found: Found) -> str:
    """The call as it would be written, with the parameters that say what was measured."""
    pairs = [f"{name}={value}" for name, value in found.params.items() if name not in HOW]
    return f"{found.name}({', '.join(pairs)})"


def _line(facts: Iterable[tuple[str, str]]) -> str:
    """Facts with their names; a GPU needs none."""
    said = (f"<b>{escape(v)}</b>" if n == "GPU" else f"{n} {escape(v)}" for n, v in facts)
    return " · ".join(f"<span>{each}</span>" for each in said)


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
    why = f"{some}not measured on this machine yet" if lacking else spans.OTHER_ROWS
    said = f"<b>{escape(names)}</b>{part}: {why}"
    commands = list(dict.fromkeys(each.command for each in lacking))
    how, mend = "; ".join(commands), ""
    if not showing.said_once.issuperset(commands):
        showing.said_once.update(commands)
        more = f" and {len(commands) - 1} more" if commands[1:] else ""
        mend = f": <code>{escape(commands[0])}</code>{more}"
    return f'<p class="strip-elsewhere" role="note" title="{escape(how)}">{said}{mend}</p>'


def gpu_of(recording: Recording) -> str:
    """What readers call the machine of a recording."""
    machine = recording.data["machine"]
    several = f"{count} × " if (count := machine.get("count") or 1) > 1 else ""
    return several + (machine.get("gpu") or machine.get("cpu") or machine["slug"])


def aged(showing: Showing) -> str:
    """What is inside a page's one badge: how many of its recordings are not current, from when they
    are, why, and what records them anew. Empty if all are current."""
    there = [each for _, each in showing.cited()]
    old = [each for each in there if not each.freshness.current]
    if not old:
        return ""
    every = "All" if len(old) == len(there) else f"{len(old)} of the {len(there)}"
    count = "The one recording" if len(there) == 1 else f"{every} recordings"
    when = _range([each.recording.data["started_at"][:10] for each in old], joined=" to ")
    why = _several(each.freshness.reason for each in old)
    mend = escape("\n".join(dict.fromkeys(each.command for each in old)))
    said = f"<b>Out of date:</b> {count.lower() if count[0].isdigit() else count}"
    said += f" behind this page {'is' if len(old) == 1 else 'are'} of {when}. {escape(why)}"
    said += f" What comes from {'it' if len(old) == 1 else 'them'} is marked {spans.STALE}."
    fold = f"<summary>Record anew</summary><pre><code>{mend}</code></pre>"
    return f'<p>{said}</p><details class="twin">{fold}</details>'


def mostly_aged(showing: Showing) -> bool:
    """Whether at least half of the recordings behind a page are not current."""
    there = [each for _, each in showing.cited()]
    return 2 * sum(not each.freshness.current for each in there) >= len(there)


def notices(showing: Showing, found: Iterable[Found], drawn: bool = False) -> str:
    """Gaps and badges of recordings that are missing or not current; empty if all are. A page says
    once what mends them; later ones that the same commands mend are a line each. What is `drawn` on
    a page from an old recording has a mark in the line under it, for the page has the badge."""
    parts, failed = {}, {}
    for each in found:
        marked = drawn and showing.fronts is not None and each.freshness.state != "missing"
        if not each.freshness.current and not marked:
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
    if showing.said_once.issuperset(commands):
        how = f'role="note" title="{escape("; ".join(commands))}" data-search-exclude'
        return f'<p class="notice {kind} again" {how}><b>{what}.</b></p>'
    showing.said_once.update(commands)
    where = "" if all(each.on_cpu for each in found) else " on the GPU host"
    said = f"<p><b>{what}.</b>{why} Record {'them' if several else 'it'}{where}:</p>"
    lines = f"<pre><code>{escape(chr(10).join(commands))}</code></pre>"
    if len(commands) > MOST_COMMANDS:
        lines = f"<details><summary>{len(commands)} commands</summary>{lines}</details>"
    said += lines
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
        ("SM clock", seen(there, "sm_clock_mhz", "MHz")),
        ("power", seen(there, "power_w", "W")),
        ("temperature", seen(there, "temperature_c", "°C")),
        ("noise floor", _range(floors, lambda floor: units.percent(floor, 2))),
        ("measured in", _processes(data)),
        ("seen on", _occasions(there)),
        ("recorded", _range([each["started_at"][:10] for each in data], joined=" to ")),
        ("commit", _several(_commit(each["code"]) for each in data)),
    ]
    return [(name, value) for name, value in facts if value]


def _several(values: Iterable[str | None]) -> str:
    return " / ".join(dict.fromkeys(value for value in values if value))


def seen(there: Sequence[Recording], name: str, unit: str) -> str:
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
    """The host behind figures that it paces, and what calling one operation costs there."""
    paced = [each for each in there if any(row.get("paced_by") == HOST for row in each.rows)]
    costs = {each.machine: _launch(showing, each.machine) for each in paced}
    facts = [
        ("CPU", _several(each.data["machine"].get("cpu") for each in paced)),
        ("one operation called", _several(costs.values())),
    ]
    return [(name, value) for name, value in facts if value]


def _launch(showing: Showing, machine: str) -> str | None:
    """The host's time to call one operation on a machine, where that is recorded."""

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


def _warnings(there: Recording) -> str:
    texts = list(dict.fromkeys(there.warnings))
    if not texts:
        return ""
    operations = {row.get("op") for row in there.rows} - {None}
    word = "1 warning" if len(texts) == 1 else f"{len(texts)} warnings"
    lines = "".join(f"<li>{escape(line)}</li>" for line in _grouped(texts, operations))
    summary = f"<summary>{word} while recording</summary>"
    return f'<details class="strip-warnings">{summary}<ul>{lines}</ul></details>'


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
