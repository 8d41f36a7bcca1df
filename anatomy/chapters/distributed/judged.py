"""What follows from what several ranks recorded: fits, throughput of a GPU, who was behind, and
how long a GPU had nothing to do."""

from collections.abc import Sequence
from itertools import groupby
from statistics import median

from anatomy.chapters.distributed import scaling
from anatomy.chapters.distributed.requirements import GIGABYTE, STARTUP
from anatomy.judge.comparisons import TIMES, Circumstances, Judged, Row, in_columns, interval_of
from anatomy.judge.limits import datasheet
from anatomy.judge.rules import rule
from anatomy.table import intervals, units

EFFICIENCY = ("efficiency", "efficiency_low", "efficiency_high")


@rule(
    "distributed.collectives",
    "distributed.training",
    columns=(*TIMES, "behind_s"),
    source="blocks_s of a rank, and of the others",
)
def of_ranks(rows: Sequence[Row], known: Circumstances) -> Judged:
    """A rank's own time, and how far it was behind the first one to be done: the median of that
    over the blocks."""
    own = [
        ((str(row.get("op")), str(row.get("variant"))), place)
        for place, row in enumerate(rows)
        if not units.missing(row.get("rank")) and row.get("blocks_s")
    ]
    for _, group in groupby(sorted(own), key=lambda each: each[0]):
        places = [place for _, place in group]
        first = [min(block) for block in zip(*(rows[p]["blocks_s"] for p in places), strict=True)]
        for place in places:
            later = (a - b for a, b in zip(rows[place]["blocks_s"], first, strict=True))
            times = in_columns(TIMES, interval_of(rows[place], known.method))
            yield place, times | {"behind_s": median(later)}


@rule(
    "distributed.collectives",
    columns=(*TIMES, "fit_error", "busy_s"),
    source="blocks_s over bytes, of all messages",
)
def fits(rows: Sequence[Row], known: Circumstances) -> Judged:
    """Seconds to start, and for a gigabyte more, by a line that is fitted in each block. For all of
    a gigabyte more a GPU sends: whatever the host does is in the start."""
    for place, row in enumerate(rows):
        if (op := row.get("op")) not in (STARTUP, GIGABYTE):
            continue
        same = [each for each in rows if each.get("variant") == row["variant"]]
        curve = [r for r in same if r.get("role") in ("control", "variant") and r.get("blocks_s")]
        found = dict.fromkeys((*TIMES, "fit_error", "busy_s"))
        blocks = zip(*(each["blocks_s"] for each in curve), strict=True)
        sent = [each["bytes"] for each in curve]
        made = [scaling.fitted(list(zip(sent, b, strict=True)), row["gpus"]) for b in blocks]
        if made and all(made):
            start, each_byte = ([f.start_s for f in made], [1 / f.rate for f in made])
            seconds = start if op == STARTUP else [row["bytes"] * taken for taken in each_byte]
            found |= in_columns(TIMES, intervals.median_interval(seconds))
            line = [median(start) + n * median(each_byte) for n in sent]
            found["busy_s"] = None if op == STARTUP else found["median_s"]
            times = zip(line, (median(each["blocks_s"]) for each in curve), strict=True)
            found["fit_error"] = max(max(a / b, b / a) for a, b in times) - 1
        yield place, found


@rule("distributed.collectives", columns=("link_share",), source="bytes over median_s")
def of_the_link(rows: Sequence[Row], known: Circumstances) -> Judged:
    """What each GPU sends in a second, as a share of what the maker says that its links carry."""
    sheet = datasheet(known.machine.get("gpu"))
    limit = sheet.link_bytes_per_s if sheet else None
    for place, row in enumerate(rows):
        timed = limit and row.get("bytes") and not units.missing(row.get("median_s"))
        yield place, {"link_share": row["bytes"] / row["median_s"] / limit if timed else None}


@rule(
    "distributed.training",
    columns=("throughput", *EFFICIENCY),
    source="tokens over gpus and median_s, and that over the control's",
)
def throughput(rows: Sequence[Row], known: Circumstances) -> Judged:
    """Tokens of a second and GPU, and as a share of what the control does, where that is one GPU:
    from the ratio's own interval, which is taken block by block."""
    by_name = {(r.get("op"), r.get("variant")): r for r in rows if r.get("role") is not None}
    for place, row in enumerate(rows):
        if units.missing(row.get("median_s")) or not row.get("tokens") or row.get("role") is None:
            continue
        each = row["tokens"] / row["gpus"]
        found = dict.fromkeys(EFFICIENCY) | {"throughput": round(each / row["median_s"])}
        over = by_name.get((row["op"], row.get("control")))
        if over and over["gpus"] == 1 and not units.missing(row.get("ratio")):
            work = each / (over["tokens"] / over["gpus"])
            ratios = (row["ratio"], row["ratio_high"], row["ratio_low"])
            found |= zip(EFFICIENCY, (work / ratio for ratio in ratios), strict=True)
        yield place, found


@rule(
    "distributed.overlap",
    columns=("idle_s",),
    source="profiled_step_s less compute_s and exposed_s",
)
def idle(rows: Sequence[Row], known: Circumstances) -> Judged:
    """Time of a profiled step in which neither a kernel computes nor bytes move."""
    for place, row in enumerate(rows):
        whole, *busy = (row.get(f"{each}_s") for each in ("profiled_step", "compute", "exposed"))
        there = not any(map(units.missing, (whole, *busy)))
        yield place, {"idle_s": max(whole - sum(busy), 0.0) if there else None}
