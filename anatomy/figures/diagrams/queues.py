"""The host's lane and the GPU's lane: launches that queue up, and a GPU that works through them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from anatomy.figures import framing
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, FOURTH, GOOD, MUTED, PAPER, QUIET, THIRD, Canvas
from anatomy.judge import rows
from anatomy.record.showing import current
from anatomy.table import units
from anatomy.table.errors import BadParameter

# How many kernels are drawn, on a desk and on a phone.
KERNELS = {True: 8, False: 5}
LANE, BETWEEN, NAME = 26.0, 8.0, 42.0  # pixels: a lane, the gap under it, room for its name


class Step(NamedTuple):
    """One kernel of a chain: seconds that the host needs to launch it, and the GPU to run it."""

    launch_s: float
    kernel_s: float


def queues(
    experiment: str, ops: Mapping[str, str], *, caption: str | None = None, **params: Any
) -> str:
    """The first kernels of recorded chains as the host launches them and the GPU runs them.

        queues("graph_capture.map", {"pointwise 1024": "tiny", "pointwise 67108864": "large"})

    What the host needs for a launch is its time until a chain is queued, over the kernels; what a
    kernel takes is the time in which the GPU was busy, over the kernels.

    Args:
        ops: Operation of the recording -> its title. Of each the control is drawn.
    """
    found = current().find(experiment, **params)

    def draw() -> str:
        steps = {title: _step(found.recording.rows, op) for op, title in ops.items()}
        label = "Launches on the host and kernels on the GPU: " + "; ".join(
            f"{title}, {_words(step)}" for title, step in steps.items()
        )
        return canvas.both(lambda sheet: _panels(sheet, steps), f"{label}.")

    return framing.exhibit(found, caption, draw)


def _step(table: Sequence[rows.Row], op: str) -> Step:
    own = [row for row in table if row.get("op") == op and row.get("role") == "control"]
    ran = next((r for r in own if r.get("busy_s") and r.get("kernels_per_call")), None)
    if not ran or not ran.get("enqueue_s"):
        raise BadParameter(f"the recording does not say how long the kernels of {op!r} ran.")
    count = ran["kernels_per_call"]
    return Step(ran["enqueue_s"] / count, ran["busy_s"] / count)


def _words(step: Step) -> str:
    launch, kernel = (units.seconds(each, most=2) for each in step)
    bound = "GPU-bound" if step.kernel_s > step.launch_s else "host-bound"
    return f"{launch} to launch a kernel, {kernel} to run it: {bound}"


def _panels(sheet: Canvas, steps: Mapping[str, Step]) -> None:
    count = KERNELS[sheet.width > 500]
    for title, step in steps.items():
        top = sheet.height + (26 if sheet.height else 14)
        sheet.words(0, top, title, bold=True)
        below = sheet.paragraph(0, top + 16, sheet.width, _words(step), colour=MUTED, size=11)
        _lanes(sheet, below - 4, step, count)


def _lanes(sheet: Canvas, top: float, step: Step, count: int) -> None:
    """Both lanes of one chain, and what stands between the end of the queue and its kernels."""
    launches = [(at * step.launch_s, (at + 1) * step.launch_s) for at in range(count)]
    kernels: list[tuple[float, float]] = []
    for _, queued in launches:
        start = max(queued, kernels[-1][1] if kernels else 0.0)
        kernels.append((start, start + step.kernel_s))
    host_bound = step.kernel_s < step.launch_s
    # A chain that the GPU paces is cut where the picture still shows its launches.
    longest = kernels[-1][1] if host_bound else min(kernels[-1][1], 3.2 * step.kernel_s)
    scale = (sheet.width - NAME - 4) / longest
    gpu = top + LANE + BETWEEN
    for y, name in ((top, "CPU"), (gpu, "GPU")):
        sheet.words(0, y + 17, name, colour=MUTED, bold=True)
        sheet.line((NAME, y + LANE), (sheet.width, y + LANE), colour=QUIET, thick=0.6)
    for number, ((l0, l1), (k0, k1)) in enumerate(zip(launches, kernels, strict=True), 1):
        if l0 < longest:
            _box(sheet, top + 6, (l0, min(l1, longest)), scale, GOOD, str(number))
        if k0 < longest:
            _box(sheet, gpu + 4, (k0, min(k1, longest)), scale, THIRD, str(number))
    if host_bound:
        start, end = kernels[0][1], kernels[1][0]
        x0, x1 = (NAME + each * scale for each in (start, end))
        sheet.box(x0, gpu + 4, x1 - x0, LANE - 4, edge=BAD, dashed=True)
        word = "idle" if x1 - x0 > 24 else ""
        sheet.words((x0 + x1) / 2, gpu + 19, word, colour=BAD, anchor="middle", size=10)
    else:
        waiting = sum(k0 >= launches[-1][1] for k0, _ in kernels)
        x = NAME + launches[-1][1] * scale + 6
        said = f"{waiting} wait in the queue; the CPU is free"
        sheet.words(x, top + 18, said, colour=FOURTH, size=10.5)
    _scale_bar(sheet, gpu + LANE + 6, longest, scale)


def _box(sheet: Canvas, y: float, span: tuple[float, float], scale: float, fill, text) -> None:
    x0, x1 = (NAME + each * scale for each in span)
    sheet.box(x0 + 0.4, y, max(x1 - x0 - 0.8, 1.6), LANE - 6, fill=fill, opacity=0.85)
    if x1 - x0 > 11:
        sheet.words((x0 + x1) / 2, y + 14, text, colour=PAPER, size=10, anchor="middle", bold=True)


def _scale_bar(sheet: Canvas, y: float, longest: float, scale: float) -> None:
    step = next(s for s in (1e-3, 1e-4, 5e-5, 2e-5, 1e-5, 5e-6, 1e-6) if s < longest / 3)
    sheet.line((NAME, y), (NAME + step * scale, y), thick=1.6)
    sheet.words(NAME + step * scale + 6, y + 4, units.seconds(step), colour=MUTED, size=10)
