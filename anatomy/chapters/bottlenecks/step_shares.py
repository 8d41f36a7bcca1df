"""How CPU and GPU share out one diagnosed step: a bar for each, of what it does for how long."""

from collections.abc import Sequence

from anatomy.chapters.bottlenecks.confusions import EXPERIMENT
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import MUTED, Canvas
from anatomy.figures.diagrams.lanes import COPY, KERNEL, LANE, LAUNCH, SMALL, WAIT, Lanes
from anatomy.figures.framing import drawn_from
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.table import units
from anatomy.table.errors import BadParameter

NEEDED = ("enqueue_share", "sync_share", "idle_share", "transfer_share")
Part = tuple[str, float, str, bool]  # words, share of the step, colour, whether one only stands


@drawn_from(EXPERIMENT)
def step_shares(table: Sequence[Row], op: str) -> str:
    """What CPU and GPU do in a step of a workload, each as shares of it: sums, not an order.

        step_shares("item in every round")

    Raises:
        BadParameter: The workload was not diagnosed, or lacks a share.
    """
    lanes = parts(rows.select(table, op=op, variants=[op])[0])
    label = "; ".join(
        f"{name}: " + ", ".join(f"{words} {units.percent(share)}" for words, share, *_ in each)
        for name, each in lanes.items()
    )
    return canvas.both(lambda sheet: _drawn(sheet, lanes), f"Shares of a step. {label}.")


def parts(row: Row) -> dict[str, Sequence[Part]]:
    """The shares of the CPU and those of the GPU, each adding up to the step."""
    if lacking := [name for name in NEEDED if units.missing(row.get(name))]:
        raise BadParameter(f"{row['op']} has no {', '.join(lacking)}.")
    runs = max(row["enqueue_share"] - row["sync_share"], 0.0)
    kernels = max(1.0 - row["idle_share"] - row["transfer_share"], 0.0)
    return {
        "CPU": [
            ("Python, launches", runs, LAUNCH, False),
            ("waits for the GPU", row["sync_share"], WAIT, True),
        ],
        "GPU": [
            ("kernels", kernels, KERNEL, False),
            ("copies", row["transfer_share"], COPY, False),
            ("idle", row["idle_share"], WAIT, True),
        ],
    }


def _drawn(sheet: Canvas, lanes: dict[str, Sequence[Part]]) -> None:
    bars = Lanes(sheet, until_s=1.0)  # parts of the step in place of seconds
    y = 4.0
    for name, several in lanes.items():
        bars.lane(y, name)
        start = 0.0
        for words, share, colour, stands in several:
            end = min(start + share, 1.0)
            full = f"{words} {units.percent(share, 2)}"
            said = next((each for each in (full, words) if bars.fits(each, start, end)), "")
            bars.box(y, start, end, colour, said, frame=stands, told=full)
            start = end
        y += LANE + 4
    sheet.words(bars.left, y + 8, "0", size=SMALL, colour=MUTED)
    end = sheet.width - 2
    sheet.words(end, y + 8, "the whole step", size=SMALL, anchor="end", colour=MUTED)
