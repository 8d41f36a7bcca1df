"""A loop of one matmul on the lanes of host and GPU: without a wait, and with one in each turn."""

from collections.abc import Sequence
from typing import NamedTuple

from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import Canvas
from anatomy.figures.diagrams.lanes import KERNEL, LANE, LAUNCH, WAIT, Lanes
from anatomy.figures.framing import drawn_from
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.table import units

TURNS = 4  # iterations of the loop with a wait that are drawn
APART = 12  # pixels between a line of code and its time
SHORT = 500  # pixels: a narrower sheet has room for short words
LEAST = 4.0  # pixels of a launch; shorter ones are one box


class Loop(NamedTuple):
    """Recorded seconds of one iteration and of its parts."""

    launch: float  # of the host, to queue the matmul
    kernel: float  # of the GPU, for the matmul
    free: float  # one iteration without the line
    waiting: float  # one iteration with it
    idle: float  # of the GPU, in one iteration with it
    speed: str  # how fast that is beside the one without, in words

    @property
    def until(self) -> float:
        """What the axis shows."""
        return TURNS * self.waiting * 1.02

    def ahead(self) -> list[tuple[float, float]]:
        """When each matmul is queued, and when it begins, where nothing waits: the GPU takes the
        next one when it is there and the last one is done."""
        turns, done = [], 0.0
        while (queued := len(turns) * self.launch) < self.until:
            begins = max(queued + self.launch, done)
            done = begins + self.kernel
            turns.append((queued, begins))
        return turns


@drawn_from()
def host_and_gpu(table: Sequence[Row], *, side: int, line: str = "t.item()") -> str:
    """A loop of matmuls of one size on the lanes of host and GPU, to scale: without a wait the host
    queues ahead; with a line that waits in each iteration, both take turns.

        host_and_gpu("sync_points.bench", side=1728)

    Args:
        experiment: One with rows as `sync_points.bench` has them.
        side: Rows and columns of the matrices.
        line: The line that waits, a variant of the loop.
    """
    loop = recorded(table, side, line)
    pause = _time(loop.idle)
    label = (
        f"A loop of matmuls of side {side}. Without a wait the CPU queues one matmul after the "
        f"other: {_time(loop.free)} an iteration. With {line} in each, CPU "
        f"and GPU take turns: {_time(loop.waiting)}, {loop.speed}. The GPU is idle for {pause} "
        "of each iteration."
    )
    return canvas.both(lambda sheet: _drawn(sheet, loop, line, pause), label)


def recorded(table: Sequence[Row], side: int, line: str) -> Loop:
    """The times of a loop of one size, with a line and without.

    Where the matmul takes longer than queueing it, the GPU is busy throughout: an iteration without
    the line *is* its matmul, at the clock that the loop has, and the GPU is idle for what the line
    adds. Otherwise an iteration without the line is the host's time to queue.
    """

    def one(op: str, variant: str) -> Row:
        return rows.select(table, op=f"{op} {side}", variants=[variant])[0]

    free, waiting = one("loop", "no wait"), one("loop", line)
    kernel, launch = one("product", "product")["median_s"], one("behind", "queue")["median_s"]
    if launch < kernel:
        kernel, idle = free["median_s"], waiting["wait_s"]
    else:
        launch, idle = free["median_s"], waiting["median_s"] - kernel
    # The line returns after both, whatever pace the host had when they were measured alone.
    launch = min(launch, max(waiting["median_s"] - kernel, 0))
    speed = rows.speed_in_words(waiting, short=True)
    return Loop(launch, kernel, free["median_s"], waiting["median_s"], idle, speed)


def _time(seconds: float) -> str:
    """Two digits: hosts differ by more."""
    return units.seconds(seconds, most=2)


def _drawn(sheet: Canvas, loop: Loop, line: str, pause: str) -> None:
    desk = sheet.width > SHORT
    lanes = Lanes(sheet, loop.until)
    iteration = " an iteration" if desk else ""
    y = _head(sheet, 12, "c = a @ b", f"{_time(loop.free)}{iteration}", KERNEL)
    _free(lanes, loop, y)
    said = f"{_time(loop.waiting)}, {loop.speed}"
    y = _head(sheet, y + 2 * LANE + 22, f"c = a @ b; {line}", said, WAIT)
    _waiting(lanes, loop, y, line)
    y += LANE
    idle = (loop.launch + loop.kernel, loop.waiting + loop.launch)
    lanes.pause(y + LANE - 3, *idle, _parted(loop, pause, desk), WAIT)
    lanes.axis(y + LANE + 24)


def _parted(loop: Loop, pause: str, desk: bool) -> str:
    """How long the GPU is idle, and for which two things: both are the CPU's."""
    answer = loop.idle - loop.launch
    if answer <= 0:
        return f"GPU idle: {pause}"
    parts = _time(answer), _time(loop.launch)
    if not desk:
        return "GPU idle: answer {}, launch {}".format(*parts)
    return "GPU idle: {} = {} for the answer + {} for the next launch".format(pause, *parts)


def _head(sheet: Canvas, y: float, code: str, said: str, colour: str) -> float:
    """The loop's code and its time, on a line if that has room; returns where its lanes begin."""
    taken = sheet.words(1, y, code, bold=True, code=True)
    if taken + APART + canvas.wide(said, bold=True) > sheet.width:
        y += 16
    sheet.words(sheet.width - 2, y, said, colour=colour, anchor="end", bold=True)
    return y + 9


def _free(lanes: Lanes, loop: Loop, y: float) -> None:
    lanes.pair(y)
    seen = loop.launch * lanes.pixels_per_s >= LEAST
    if not seen:
        lanes.box(y, 0, lanes.until_s, LAUNCH, "queues ahead")
    for number, (queued, begins) in enumerate(loop.ahead(), start=1):
        if begins > loop.until and not seen:
            break
        if seen:
            lanes.box(y, queued, queued + loop.launch, LAUNCH, str(number))
        lanes.box(y + LANE, begins, begins + loop.kernel, KERNEL, str(number))


def _waiting(lanes: Lanes, loop: Loop, y: float, line: str) -> None:
    lanes.pair(y)
    for turn in range(TURNS):
        start, number = turn * loop.waiting, str(turn + 1)
        queued = start + loop.launch
        lanes.box(y, start, queued, LAUNCH, number)
        lanes.box(y, queued, start + loop.waiting, WAIT, "waits", frame=True)
        lanes.box(y + LANE, queued, queued + loop.kernel, KERNEL, number)
