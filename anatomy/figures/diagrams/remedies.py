"""What shorter kernels and fewer launches do to a step that the host paces, and to one that the GPU
does: a sketch on the lanes of both, in which nothing is measured."""

from collections.abc import Iterator
from typing import NamedTuple

from anatomy.figures import framing
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import GOOD, MUTED, Canvas
from anatomy.figures.diagrams.lanes import KERNEL, LANE, LAUNCH, Lanes

KERNELS = 5
BESIDE = 28.0  # pixels between two steps on a desk
SOONER = 0.9  # of the time before: what ends later than that ends about as before


class Step(NamedTuple):
    """A step by what paces it: how long launching one kernel takes, and running it."""

    paced: str
    launch: float
    kernel: float


class Remedy(NamedTuple):
    """What is changed: whether one launch replaces all, and by what kernels are shortened."""

    words: str
    graph: bool = False
    shorter: float = 1.0


STEPS = (
    Step("Host-bound: the GPU waits for launches", 1.0, 0.4),
    Step("GPU-bound: launches wait in a queue", 0.3, 1.02),
)
REMEDIES = (
    Remedy("as it is"),
    Remedy("CUDA graph: one launch", graph=True),
    Remedy("bf16: shorter kernels", shorter=0.5),
)


def remedies(*, caption: str | None = None) -> str:
    """Two steps as they are, as a CUDA graph, and with kernels of half the length."""
    ends = "; ".join(
        f"{step.paced}: " + ", ".join(f"{each.words} {_ends(step, each)}" for each in REMEDIES[1:])
        for step in STEPS
    )
    label = f"Launches on the CPU and kernels on the GPU. {ends}."
    return framing.exhibit([], caption, lambda: canvas.both(_drawn, label))


def launches(step: Step, remedy: Remedy) -> list[tuple[float, float]]:
    """From when to when the host launches."""
    return [
        (at * step.launch, (at + 1) * step.launch) for at in range(1 if remedy.graph else KERNELS)
    ]


def kernels(step: Step, remedy: Remedy) -> Iterator[tuple[float, float]]:
    """From when to when each kernel runs: once it is launched and the one before is done."""
    there = [end for _, end in launches(step, remedy)]
    done = 0.0
    for number in range(KERNELS):
        begin = max(there[min(number, len(there) - 1)], done)
        done = begin + remedy.shorter * step.kernel
        yield begin, done


def _ends(step: Step, remedy: Remedy) -> str:
    before, after = ([*kernels(step, each)][-1][1] for each in (REMEDIES[0], remedy))
    return "ends sooner" if after < SOONER * before else "ends about as before"


def _drawn(sheet: Canvas) -> None:
    desk = sheet.width > 500
    width = (sheet.width - BESIDE) / 2 if desk else sheet.width
    for number, step in enumerate(STEPS):
        one = Canvas(width)
        _step(one, step)
        x, y = (number * (width + BESIDE), 0) if desk else (0, sheet.height + 18 * bool(number))
        sheet.place(one, x, y)


def _step(sheet: Canvas, step: Step) -> None:
    before = [*kernels(step, REMEDIES[0])][-1][1]
    lanes = Lanes(sheet, before * 1.03)
    sheet.words(1, 12, step.paced, bold=True)
    for number, remedy in enumerate(REMEDIES):
        y = 34 + number * (2 * LANE + 24)
        sheet.words(1, y, remedy.words)
        if number:
            said = _ends(step, remedy)
            colour = GOOD if said == "ends sooner" else MUTED
            sheet.words(sheet.width - 1, y, said, colour=colour, anchor="end", bold=True)
        lanes.pair(y + 6)
        for begin, end in launches(step, remedy):
            lanes.box(y + 6, begin, end, LAUNCH)
        for begin, end in kernels(step, remedy):
            lanes.box(y + 6 + LANE, begin, end, KERNEL)
        lanes.mark(y + 6, end)
