"""Launches that queue up on the host's lane, and the GPU's lane, which works through them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import MUTED, QUIET, Canvas
from anatomy.figures.diagrams.lanes import KERNEL, LANE, LAUNCH, WAIT, Lanes
from anatomy.figures.framing import drawn_from
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.table import units
from anatomy.table.errors import BadParameter

LOOP, GRAPH = "eager", "graph"
NEEDED = ("links", "kernel_s", "enqueue_s", "median_s")
# How many kernels of a host-bound chain are drawn where not all are, on a desk and on a phone; and
# of one whose kernels pace it how many at least, and how much more than all of its launches take:
# the host is free only after the last.
FIRST, PACING, LAUNCHED = {True: 8, False: 5}, 3.2, 1.8


class Chain(NamedTuple):
    """Equal kernels that follow one another, and what launches them; times in seconds."""

    kernels: int
    launches: int
    launch_s: float
    kernel_s: float
    total_s: float
    host_bound: bool

    def queued(self) -> list[tuple[float, float]]:
        """From when to when the host is at each launch."""
        return [(at * self.launch_s, (at + 1) * self.launch_s) for at in range(self.launches)]

    def ran(self) -> list[tuple[float, float]]:
        """From when to when each kernel runs, so that all are done when the chain is: each once it
        is launched, or evenly after the first launch."""
        if self.host_bound:
            begins = [queued for _, queued in self.queued()]
        else:
            first = min(self.launch_s, max(self.total_s - self.kernels * self.kernel_s, 0.0))
            pitch = (self.total_s - first) / self.kernels
            begins = [first + at * pitch for at in range(self.kernels)]
        pitch = (self.total_s - begins[0]) / self.kernels
        lasts = self.kernel_s if self.host_bound else min(self.kernel_s, pitch)
        return [(begin, begin + lasts) for begin in begins]

    def words(self) -> str:
        """What launching and running takes, and which of both paces the chain."""
        launch, kernel = (units.seconds(each, most=2) for each in (self.launch_s, self.kernel_s))
        if self.launches < self.kernels:
            return f"{launch} to launch {self.kernels} kernels at once, {kernel} to run each"
        bound = "host-bound" if self.host_bound else "GPU-bound"
        return f"{launch} to call an operation, {kernel} to run its kernel: {bound}"


@drawn_from()
def queues(table: Sequence[Row], ops: Mapping[str, str], *, graph: bool = False) -> str:
    """How recorded chains begin, as the host launches their kernels and the GPU runs them; or all
    of each chain, and the same replayed as a CUDA graph, on one scale.

        queues("graph_capture.map", {"pointwise 1024": "tiny", "pointwise 67108864": "large"})

    They are drawn from medians, evenly spaced: what a chain takes is recorded, when each of its
    kernels ran is not.

    Args:
        ops: Chains of the recording -> their titles.
    """
    ways = [LOOP, GRAPH] if graph else [LOOP]
    shown = {title: _chains(table, op, ways) for op, title in ops.items()}
    label = "Launches on the host and kernels on the GPU: " + "; ".join(
        f"{title}, {each.words()}, {units.seconds(each.total_s)} in all"
        for title, chains in shown.items()
        for each in chains
    )
    return canvas.both(lambda sheet: _panels(sheet, shown, graph), f"{label}.")


def _chains(table: Sequence[Row], op: str, ways: Sequence[str]) -> list[Chain]:
    chains = []
    for row in rows.select(table, op=op, quantity="step_wall", variants=ways):
        if lacking := [each for each in NEEDED if units.missing(row.get(each))]:
            raise BadParameter(f"{op}, {row['variant']} has no {', '.join(lacking)}.")
        count, total, kernel = int(row["links"]), row["median_s"], row["kernel_s"]
        launches = count if row["variant"] == LOOP else 1
        paced = row.get("paced_by") == "host" and launches > 1
        asks = total - kernel if paced else min(row["enqueue_s"], total)
        chains.append(Chain(count, launches, asks / launches, kernel, total, paced))
    return chains


def _panels(sheet: Canvas, shown: Mapping[str, Sequence[Chain]], whole: bool) -> None:
    for title, chains in shown.items():
        y = sheet.height + (26 if sheet.height else 14)
        sheet.words(0, y, title, bold=True)
        count = max(chain.kernels for chain in chains) if whole else FIRST[sheet.width > 500]
        until = max(chain.total_s for chain in chains)
        if not whole:
            until = _shown_until(chains[0], count)
        lanes = Lanes(sheet, until)
        for chain in chains:
            time = units.seconds(chain.total_s) if whole else ""
            name = ("Loop" if chain.launches > 1 else "Graph") if whole else ""
            y += 17
            sheet.words(sheet.width - 2, y, time, bold=True, anchor="end")
            x = sheet.words(0, y, name, size=11, bold=True) + 6 if whole else 0
            room = sheet.width - x - (60 if whole else 0)
            y = sheet.paragraph(x, y, room, chain.words(), colour=MUTED, size=11) - 8
            y = _drawn(lanes, y, chain, count)
        lanes.axis(y)


def _shown_until(chain: Chain, count: int) -> float:
    """Until when the first part of a chain is shown: of a host-bound one so many kernels, of
    another one all launches, and some of the time in which the host is free."""
    if chain.host_bound:
        return chain.ran()[:count][-1][1]
    launched = chain.queued()[-1][1]
    return min(chain.total_s, max(PACING * chain.kernel_s, LAUNCHED * launched))


def _drawn(lanes: Lanes, y: float, chain: Chain, count: int) -> float:
    """Both lanes of a chain, and who waits; returns where they end."""
    queued, ran = chain.queued(), chain.ran()
    if chain.host_bound:
        queued, ran = queued[:count], ran[:count]
    lanes.pair(y)
    _numbered(lanes, y, queued, LAUNCH)
    _numbered(lanes, y + LANE, ran, KERNEL)
    if chain.host_bound:
        idle = units.seconds(ran[1][0] - ran[0][1], most=2)
        lanes.pause(y + 2 * LANE - 3, ran[0][1], ran[1][0], f"GPU idle: {idle}", WAIT)
        return y + 2 * LANE + 22
    done = queued[-1][1]
    waiting = sum(start >= done for start, _ in ran)
    said = f"{waiting} wait in the queue; CPU free" if chain.launches > 1 else "CPU free"
    end = min(ran[-1][1], lanes.until_s)
    said = next((text for text in (said, "CPU free") if lanes.fits(text, done, end)), "")
    lanes.box(y, done, end, QUIET, said, frame=True)
    return y + 2 * LANE + 2


def _numbered(lanes: Lanes, y: float, spans: Sequence[tuple[float, float]], fill: str) -> None:
    """A box for each span with its number; with every fifth's where two digits have little room."""
    last = str(len(spans)), *spans[-1]
    every = 1 if lanes.fits(*last) else 5 if lanes.fits(*last, spare=1) else len(spans) + 1
    for number, (start, end) in enumerate(spans, start=1):
        text = "" if number % every else str(number)
        lanes.box(y, start, end, fill, text, spare=1)
