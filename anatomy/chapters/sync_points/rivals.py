"""What three explanations say that a line adds to an iteration, beside what was measured; and an
iteration beside its two lines once."""

from collections.abc import Sequence

from anatomy.figures import tables
from anatomy.figures.framing import drawn_from
from anatomy.judge import rows
from anatomy.judge.rows import Row
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


@drawn_from()
def rivals(table: Sequence[Row], *, sides: Sequence[int], line: str = "t.item()") -> str:
    """A table: what each explanation says that the line adds at each size, and what it added.

        rivals("sync_points.bench", sides=[512, 1728])

    Args:
        experiment: One with rows as `sync_points.bench` has them.
        sides: Of the matmuls.
        line: The line that waits, a variant of the loop.
    """
    said = zip(*(added(table, side, line) for side in sides), strict=True)
    lines = [
        [name, *(units.seconds(time, most=3) for time in times)]
        for name, times in zip(EXPLANATIONS, said, strict=True)
    ]
    seen = (rows.select(table, op=f"loop {side}", variants=[line])[0] for side in sides)
    lines.append(["<b>measured</b>", *(units.seconds(row["wait_s"], most=3) for row in seen)])
    heads = ["the line adds", *(f"#side {side}" for side in sides)]
    return tables.listed(heads, lines, f"What {line} adds to an iteration")


@drawn_from()
def once_and_again(table: Sequence[Row], *, sides: Sequence[int]) -> str:
    """A table: a matmul and `.item()` once, with an empty queue, beside an iteration of a loop of
    both, and their quotient on each occasion. A host that was slow on one of them was slow for
    both, so the quotients can lie closer together than the times.

        once_and_again("sync_points.bench", sides=[512, 1728])
    """
    lines = []
    for side in sides:
        (once,) = rows.select(table, op=f"behind {side}", variants=["queue, item"])
        (again,) = rows.select(table, op=f"loop {side}", variants=["t.item()"])
        shares = [units.significant(share) for share in quotients(once, again)]
        lines.append([str(side), tables.time(once), tables.time(again), ", ".join(shares)])
    heads = ["#side", "#both lines, once", "#an iteration", "#iteration / once, each occasion"]
    return tables.listed(heads, lines, "Two lines once, and in a loop")


def quotients(once: Row, again: Row) -> list[float]:
    """How often an iteration takes what its lines take once, on each occasion that timed both; of
    rows that no earlier occasion is known of, by their medians."""
    names = "occasion_medians_s", "median_s"
    below, above = (row.get(names[0]) or [row[names[1]]] for row in (once, again))
    pairs = zip(below, above, strict=False)
    return [more / less for less, more in pairs if None not in (less, more)]
