"""A sketch of steps of many kernels on the lanes of CPU and GPU: a wait loses the CPU's lead."""

from typing import NamedTuple

from anatomy.figures import framing
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import Canvas
from anatomy.figures.diagrams.lanes import KERNEL, LANE, LAUNCH, WAIT, Lanes

# All times are made up and in launches: the first kernels of a step are shorter than a launch, the
# last ones longer, and its answer has a way back to Python.
KERNELS = (0.5, 0.5, 0.5, 0.5, 2.2, 2.2, 2.2)
SHORT = sum(kernel < 1 for kernel in KERNELS)
ANSWER = 0.8
STEPS = 2  # with a wait, that are drawn


class Ran(NamedTuple):
    """A kernel: of which step, when its launch begins, and from when to when it runs."""

    step: int
    queued: float
    begins: float
    ends: float


def course(steps: int, *, waits: bool) -> list[Ran]:
    """What runs when: the GPU takes the next kernel once it is launched and the last one is done,
    and a CPU that `waits` begins the next step when it has the answer of this one."""
    ran, at, done = list[Ran](), 0.0, 0.0
    for step in range(1, steps + 1):
        for kernel in KERNELS:
            begins = max(at + 1, done)
            done = begins + kernel
            ran.append(Ran(step, at, begins, done))
            at += 1
        at = done + ANSWER if waits else at
    return ran


def lost_lead(caption: str | None = None) -> str:
    """A step of short and long kernels, without a wait and with one after each: a sketch that no
    recording is behind."""
    label = (
        "A sketch of training steps. Without a wait the CPU has queued the next step before the "
        "GPU is done with this one, and its kernels follow each other. With a wait after each step "
        "the GPU is idle at first, and then runs short kernels as the CPU launches them."
    )
    return framing.exhibit([], caption, lambda: canvas.both(_drawn, label))


def _drawn(sheet: Canvas) -> None:
    waiting = course(STEPS, waits=True)
    lanes = Lanes(sheet, waiting[-1].ends + ANSWER)
    sheet.words(1, 12, "step()", bold=True, code=True)
    _kernels(lanes, 21, course(STEPS + 2, waits=False))
    y = 21 + 2 * LANE + 22
    sheet.words(1, y - 9, "step(); loss.item()", bold=True, code=True)
    _kernels(lanes, y, waiting)
    each = len(KERNELS)
    for last in waiting[each - 1 :: each]:
        lanes.box(y, last.queued + 1, last.ends + ANSWER, WAIT, "waits", frame=True)
    idle = waiting[each - 1].ends, waiting[each + SHORT].begins
    lanes.pause(y + 2 * LANE - 3, *idle, "idle, then at the CPU's pace", WAIT)


def _kernels(lanes: Lanes, y: float, ran: list[Ran]) -> None:
    lanes.pair(y)
    for each in ran:
        lanes.box(y, each.queued, each.queued + 1, LAUNCH, str(each.step))
        lanes.box(y + LANE, each.begins, each.ends, KERNEL, str(each.step))
