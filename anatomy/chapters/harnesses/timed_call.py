"""One cold sample over time, as a diagram: what the host queues, and which span the clock takes."""

from anatomy.figures import framing
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import INK, Canvas
from anatomy.figures.diagrams.lanes import COPY, KERNEL, LANE, LAUNCH, WAIT, Lanes

# When each begins and the last ends, in units of the drawing alone: a flush takes as long as it
# takes, and a kernel too.
QUEUED, SLEEPS, FLUSHES, RUNS, ENDS, UNTIL = 3.0, 0.4, 3.2, 4.8, 6.4, 7.9
TOP = 16.0


def timed_call(*, caption: str | None = None) -> str:
    """The host's lane and the GPU's while one cold call is timed.

    timed_call(caption="What is timed.")
    """
    label = (
        "The CPU queues everything while the GPU sleeps. Then the GPU flushes its L2 cache, runs "
        "the kernel between two events, and flushes again for the next call. The span between the "
        "two events is what is timed."
    )
    return framing.exhibit([], caption, lambda: canvas.both(_drawn, label))


def _drawn(sheet: Canvas) -> None:
    lanes = Lanes(sheet, UNTIL)
    gpu = TOP + LANE
    lanes.pair(TOP)
    lanes.box(TOP, 0, QUEUED, LAUNCH, "queues all this")
    lanes.box(TOP, QUEUED, UNTIL, WAIT, "waits", frame=True)
    lanes.box(gpu, SLEEPS, FLUSHES, WAIT, "sleeps", frame=True)
    lanes.box(gpu, FLUSHES, RUNS, COPY, "flush")
    lanes.box(gpu, RUNS, ENDS, KERNEL, "kernel")
    lanes.box(gpu, ENDS, UNTIL, COPY, "flush")
    below = gpu + LANE + 12
    start, end = lanes.at(RUNS) - 3, lanes.at(ENDS) + 3
    for x in (start, end):
        sheet.line((x, gpu - 4), (x, below - 6), colour=INK, thick=2)
    sheet.bracket(start, end, below, colour=INK)
    middle = (start + end) / 2
    sheet.words(middle, below + 15, "timed, event to event", colour=INK, anchor="middle", bold=True)
