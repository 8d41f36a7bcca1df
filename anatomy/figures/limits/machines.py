"""The published machines side by side: what each is, and what it can do at most."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from typing import Any

from anatomy.figures import framing, tables
from anatomy.figures.charts import figures
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import Canvas
from anatomy.judge import limits
from anatomy.judge.limits import Ceiling
from anatomy.judge.rows import Row
from anatomy.record import loading
from anatomy.record.showing import Found, Showing, current
from anatomy.table import units
from anatomy.table.errors import lookup

# Ceilings with a bar, and what is written over it; under them the host's time.
DRAWN = {"copy": "copies through HBM", "matmul bf16": "bf16 GEMMs"}
ASKED = "the CPU's time for one small addition: shorter is faster"
BAR, BESIDE = 22.0, 104.0  # pixels: from bar to bar, and for a figure behind it
COLOURS = (canvas.GOOD, canvas.BAD, canvas.THIRD, canvas.FOURTH)


@dataclass(frozen=True)
class Machine:
    """One machine by all that was recorded on it."""

    slug: str
    block: Mapping[str, Any]  # `machine` of the recording made last
    cpus: str
    cores: str  # of the host, as it counts them
    drivers: str
    torch: str
    recordings: int
    cards: int  # that they were made on
    ceilings: limits.Ceilings
    floors: Sequence[Row]
    found: tuple[Found, ...]  # what its limits and launches were read from

    @property
    def name(self) -> str:
        """What readers call it."""
        return self.block.get("gpu") or self.block.get("cpu") or self.slug

    def row(self, quantity: str) -> Row:
        """The time of one small addition, as this quantity; empty where it was not measured."""
        wanted = limits.LAUNCH | {"quantity": quantity}
        found = (row for row in self.floors if all(row.get(n) == v for n, v in wanted.items()))
        return next(found, {})


def machines(part: str = "facts", *, caption: str | None = None) -> str:
    """The machine shown and the published ones; one without recordings is not listed.

        machines("limits", caption="What each gives at best.")

    Args:
        part: `facts` (what each is) or `limits` (ceilings).
    """
    draw = lookup("part of the machines", part, PARTS)
    showing = current()
    mine = [showing.find(limits.EXPERIMENT), showing.find(limits.FLOORS)]
    there = [] if showing.collecting else list(_machines(showing))
    found = [each for one in there for each in one.found]
    return framing.exhibit(found or mine, caption, lambda: draw(there) if there else "")


def _machines(showing: Showing) -> Iterator[Machine]:
    for slug in dict.fromkeys((showing.machine, *showing.published)):
        if loading.files(showing.root, slug):
            yield showing.once(("machine", slug), lambda slug=slug: _machine(showing, slug))


def _machine(showing: Showing, slug: str) -> Machine:
    page, files = showing.on(slug), loading.files(showing.root, slug)
    every = []
    for file in files:
        # Not `loading.read`, which takes seconds for all: the build has checked them, and fails.
        with suppress(OSError, ValueError):
            every.append(loading.parsed(loading.content(file).decode()))
    every.sort(key=lambda data: data["started_at"])
    blocks = [data["machine"] for data in every]
    ceilings, floors = page.find(limits.EXPERIMENT), page.find(limits.FLOORS)
    return Machine(
        slug,
        blocks[-1] if blocks else {},
        _several(block.get("cpu") for block in blocks),
        _several(str(block.get("cpu_count") or "") for block in blocks),
        _several(block.get("driver") for block in blocks),
        _several(data["software"].get("torch") for data in every),
        len(every),
        len(set(_cards(every))),
        page.ceilings,
        floors.recording.rows if floors.recording else [],
        tuple(each for each in (ceilings, floors) if each.recording),
    )


def _cards(every: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The card of each recording, and of each of its earlier occasions, where it is known."""
    for data in every:
        occasions = (data["machine"], *data.get("occasions", ()))
        yield from filter(None, (each.get("card") for each in occasions))


def _several(values: Iterable[str | None]) -> str:
    return " / ".join(dict.fromkeys(filter(None, values)))


def _facts(there: Sequence[Machine]) -> str:
    lines = [[name, *map(said, there)] for name, said in FACTS.items()]
    kept = [line for line in lines if not set(line[1:]) <= {tables.NONE, ""}]
    return tables.listed(_heads("", there), kept, "The machines", "machines")


def _limits(there: Sequence[Machine]) -> str:
    names = dict.fromkeys(each.name for machine in there for each in machine.ceilings)
    lines = [[escape(n), *(_ceiling(one.ceilings.get(n)) for one in there)] for n in names]
    heads = _heads("ceiling", there)
    table = tables.listed(heads, lines, "Ceilings of the machines", "machines")
    drawn = [name for name in DRAWN if any(one.ceilings.get(name) for one in there)]
    if not drawn:
        return table
    label = (
        f"Bars of {', '.join(drawn)} and the host's time for a small addition, for each machine."
    )
    return canvas.both(lambda sheet: _bars(sheet, there, drawn), label) + figures.twin(table)


def _bars(sheet: Canvas, there: Sequence[Machine], names: Sequence[str]) -> None:
    """A bar for each machine under the name of each ceiling, to one scale for each ceiling."""
    room, y = sheet.width - BESIDE, 0.0
    bars: dict[str, list[tuple[float, float, float, str]]] = {}  # value, its ends, in words
    for name in names:
        known = [one.ceilings.get(name) for one in there]
        rates = [(f.value, units.rate(f.value, f.unit)) for f in known if f]
        bars[DRAWN[name]] = [(value, value, value, text) for value, text in rates]
    times = [one.row("host_enqueue") for one in there]
    if all(row.get("median_s") for row in times):
        ends = [tuple(row[name] for name in ("median_s", "low_s", "high_s")) for row in times]
        bars[ASKED] = [(*time, units.seconds_range(*time)) for time in ends]
    called = _called(there)
    for title, several in bars.items():
        sheet.words(0, y + 12, title, bold=True)
        most = max(end for *_, end, _ in several)
        for number, (value, low, end, text) in enumerate(several):
            top = y + 19 + number * BAR
            sheet.box(0, top, room * value / most, BAR - 4, fill=COLOURS[number % 4])
            here, ends = room * value / most, [room * each / most for each in (low, end)]
            sheet.line((ends[0], top + 9), (here, top + 9), colour=canvas.PAPER, thick=2)
            sheet.line((here, top + 9), (ends[1], top + 9), thick=2)
            sheet.words(room * end / most + 6, top + 12.5, text, bold=True)
            sheet.words(6, top + 12.5, called[number], colour=canvas.PAPER, bold=True)
        y += 19 + len(several) * BAR + 12
    sheet.space(2)


def _called(there: Sequence[Machine]) -> list[str]:
    """The first words of their names where these differ, such as H100 and H200."""
    names = [one.name.removeprefix("NVIDIA ") for one in there]
    short = [name.partition(" ")[0] for name in names]
    return short if len({*short}) == len(short) else names


def _heads(first: str, there: Sequence[Machine]) -> list[str]:
    return [first, *(f"#{name}" for name in _called(there))]


def _ceiling(found: Ceiling | None) -> str:
    """A rate; one that only the maker states says so."""
    if found is None:
        return tables.NONE
    text = escape(units.rate(found.value, found.unit))
    if found.kind == "measured":
        return text
    return f'<span class="cited" title="{escape(found.source)}">{text}</span>'


def _occasions(one: Machine) -> str:
    """The time until the call returns on each day, card and host that it was measured on."""
    times = one.row("host_enqueue").get("occasion_medians_s") or ()
    return " / ".join(units.seconds(time, most=2) for time in filter(None, times)) or tables.NONE


def _block(name: str, printed: Callable[[Any], str] = str) -> Callable[[Machine], str]:
    def said(one: Machine) -> str:
        value = one.block.get(name)
        return tables.NONE if units.missing(value) else escape(printed(value))

    return said


def _gpus(one: Machine) -> str:
    """How many GPUs, where it is more than one."""
    return str(one.block["count"]) if (one.block.get("count") or 1) > 1 else ""


# The GPU, then the host, which host-bound times follow, then what was recorded on them.
FACTS: dict[str, Callable[[Machine], str]] = {
    "GPU": lambda one: escape(one.name),
    "GPUs": _gpus,
    "memory": _block("memory_bytes", units.byte_count),
    "L2 cache": _block("l2_bytes", units.byte_count),
    "multiprocessors (SMs)": _block("sm_count"),
    "highest SM clock": _block("max_sm_clock_mhz", "{:g} MHz".format),
    "power limit": _block("power_limit_w", "{:g} W".format),
    "CPU": lambda one: escape(one.cpus) or tables.NONE,
    "its cores, as the host counts them": lambda one: one.cores or tables.NONE,
    "one small addition, until its call returns": lambda one: tables.time(one.row("host_enqueue")),
    "on each occasion, the newest last": _occasions,
    "from call to call": lambda one: tables.time(one.row("step_wall")),
    "driver": lambda one: escape(one.drivers) or tables.NONE,
    "torch": lambda one: escape(one.torch) or tables.NONE,
    "recordings": lambda one: str(one.recordings),
    "cards they were made on": lambda one: str(one.cards) if one.cards else "",
    "its name here": lambda one: tables.code(one.slug),
}
PARTS: dict[str, Callable[[Sequence[Machine]], str]] = {"facts": _facts, "limits": _limits}
