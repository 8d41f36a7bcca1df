"""What three explanations say that a line adds to an iteration, beside what was measured; and an
iteration beside its two lines once."""

from collections.abc import Sequence

from anatomy.figures import tables
from anatomy.figures.framing import drawn_from
from anatomy.judge import rows
from anatomy.judge.comparisons import TIMES
from anatomy.judge.rows import Row
from anatomy.table import units

Times = tuple[float, ...]  # a median and the ends of its interval, in seconds
WAITS = ("wait_s", "wait_low_s", "wait_high_s")
TOO_CLOSE = 0.9  # to E3's 1, for what E1 says of an iteration over its two lines once
EXPLANATIONS = (
    "E1: the line's own time, <i>r</i>",
    "E2: the kernel again, <i>k</i>",
    "E3: taking turns, <i>r</i> and the smaller of <i>q</i> and <i>k</i>",
)


def added(table: Sequence[Row], side: int, line: str) -> tuple[Times, Times, Times]:
    """Seconds that each explanation says the line adds to an iteration at one size, in the order
    of `EXPLANATIONS`, from the parts as each was timed alone, with their intervals."""

    def one(op: str, variant: str) -> Times:
        row = rows.select(table, op=op, variants=[variant])[0]
        return tuple(row[name] for name in TIMES)

    reading, kernel = one("idle", line), one(f"product {side}", "product")
    other = map(min, one(f"behind {side}", "queue"), kernel)
    return reading, kernel, tuple(map(sum, zip(reading, other, strict=True)))


@drawn_from()
def rivals(table: Sequence[Row], *, sides: Sequence[int], line: str = "t.item()") -> str:
    """A table: what each explanation says that the line adds at each size, and what it added.

        rivals("sync_points.bench", sides=[512, 1728])

    Args:
        experiment: One with rows as `sync_points.bench` has them.
        sides: Of the matmuls.
        line: The line that waits, a variant of the loop.
    """
    seen = [rows.select(table, op=f"loop {side}", variants=[line])[0] for side in sides]
    said = [added(table, side, line) for side in sides]
    nearest = [
        min(each, key=lambda times, row=row: abs(times[0] - row["wait_s"]))
        for each, row in zip(said, seen, strict=True)
    ]
    lines = []
    for number, name in enumerate(EXPLANATIONS):
        texts = [tables.lighter(units.seconds_range(*each[number])) for each in said]
        best = [each[number] is near for each, near in zip(said, nearest, strict=True)]
        cells = (f"<b>{t}</b>" if near else t for t, near in zip(texts, best, strict=True))
        lines.append([name, *cells])
    waits = [tables.lighter(units.seconds_range(*(row[w] for w in WAITS))) for row in seen]
    lines.append(["measured", *waits])
    heads = ["the line adds", *(f"#side {side}" for side in sides)]
    return tables.listed(heads, lines, f"What {line} adds to an iteration", "abreast")


@drawn_from()
def once_and_again(table: Sequence[Row], *, sides: Sequence[int]) -> str:
    """A table: a matmul and `.item()` once, with an empty queue, beside an iteration of a loop of
    both; their quotient on each occasion, which is 1 by E3; what E1 says of it; and which of the
    two comes nearer. A host that was slow on one occasion was slow for all, so the quotients can
    lie closer together than the times.

        once_and_again("sync_points.bench", sides=[512, 1728])
    """
    (reading,) = rows.select(table, op="idle", variants=["t.item()"])
    lines = []
    for side in sides:
        queue, once = rows.select(table, op=f"behind {side}", variants=["queue", "queue, item"])
        (kernel,) = rows.select(table, op=f"product {side}", variants=["product"])
        (again,) = rows.select(table, op=f"loop {side}", variants=["t.item()"])
        each = together(once, again, queue, kernel, reading)
        found = [more / less for less, more, *_ in each]
        overlapped = [(max(q, k) + r) / less for less, _, q, k, r in each]
        shares = (", ".join(map(units.significant, them)) for them in (found, overlapped))
        times = tables.time(once), tables.time(again)
        lines.append([str(side), *times, *shares, nearer(found, overlapped)])
    heads = ["#side", "#both lines, once", "#an iteration", "#iteration / once", "#by E1", "nearer"]
    return tables.listed(heads, lines, "Two lines once, and in a loop")


def together(*each: Row) -> list[Times]:
    """Medians of rows on each occasion that timed all of them; of rows that no earlier occasion is
    known of, their medians."""
    medians = (row.get("occasion_medians_s") or [row["median_s"]] for row in each)
    return [times for times in zip(*medians, strict=False) if None not in times]


def nearer(found: Sequence[float], overlapped: Sequence[float]) -> str:
    """Whether quotients lie nearer to E3's 1 or to what E1 says of each, where they all agree and
    the two are far enough apart to tell."""
    if not found or max(overlapped) > TOO_CLOSE:
        return "can't tell"
    pairs = zip(found, overlapped, strict=True)
    turns = {abs(share - 1) < abs(share - said) for share, said in pairs}
    return "can't tell" if len(turns) > 1 else "E3" if turns.pop() else "E1"
