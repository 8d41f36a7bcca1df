"""What three explanations say that a line adds to an iteration, beside what was measured."""

from collections.abc import Sequence
from typing import Any

from anatomy.figures import framing, tables
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.record.showing import current
from anatomy.table import units

EXPLANATIONS = (
    "E1: the line's own time, <i>r</i>",
    "E2: the kernel again, <i>k</i>",
    "E3: taking turns, <i>r</i> and the smaller of <i>q</i> and <i>k</i>",
)


def added(table: Sequence[Row], side: int, line: str) -> tuple[float, float, float]:
    """Seconds that each explanation says the line adds to an iteration at one size, in the order
    of `EXPLANATIONS`, from the parts as each was timed alone."""

    def one(op: str, variant: str) -> float:
        return rows.select(table, op=op, variants=[variant])[0]["median_s"]

    reading, kernel = one("idle", line), one(f"product {side}", "product")
    return reading, kernel, reading + min(one(f"behind {side}", "queue"), kernel)


def rivals(
    experiment: str,
    *,
    sides: Sequence[int],
    line: str = "t.item()",
    caption: str | None = None,
    **params: Any,
) -> str:
    """A table: what each explanation says that the line adds at each size, and what it added.

        rivals("sync_points.bench", sides=[512, 1728])

    Args:
        experiment: One with rows as `sync_points.bench` has them.
        sides: Of the matmuls.
        line: The line that waits, a variant of the loop.
    """
    found = current().find(experiment, **params)

    def draw() -> str:
        table = found.recording.rows
        said = zip(*(added(table, side, line) for side in sides), strict=True)
        lines = [
            [name, *(units.seconds(time, most=3) for time in times)]
            for name, times in zip(EXPLANATIONS, said, strict=True)
        ]
        seen = (rows.select(table, op=f"loop {side}", variants=[line])[0] for side in sides)
        lines.append(["<b>measured</b>", *(units.seconds(row["wait_s"], most=3) for row in seen)])
        heads = ["the line adds", *(f"#side {side}" for side in sides)]
        return tables.listed(heads, lines, f"What {line} adds to an iteration")

    return framing.exhibit(found, caption, draw)
