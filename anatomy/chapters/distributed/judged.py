"""What follows from the blocks of several ranks: fits, throughput of a GPU, and who was behind."""

from collections.abc import Sequence
from statistics import median

from anatomy.chapters.distributed import scaling
from anatomy.judge.comparisons import TIMES, Circumstances, Judged, Row, in_columns, interval_of
from anatomy.judge.rules import rule
from anatomy.table import intervals, units

STARTS = ("startup_s", "startup_low_s", "startup_high_s")
RATES = ("bandwidth", "bandwidth_low", "bandwidth_high")
THROUGHPUT = ("throughput", "throughput_low", "throughput_high")
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
    together: dict[tuple, list[int]] = {}
    for place, row in enumerate(rows):
        if not units.missing(row.get("rank")) and row.get("blocks_s"):
            together.setdefault((row.get("op"), row.get("variant")), []).append(place)
    for places in together.values():
        first = [min(block) for block in zip(*(rows[p]["blocks_s"] for p in places), strict=True)]
        for place in places:
            behind = [
                own - least for own, least in zip(rows[place]["blocks_s"], first, strict=True)
            ]
            found = in_columns(TIMES, interval_of(rows[place], known.method))
            yield place, found | {"behind_s": median(behind)}


@rule(
    "distributed.collectives",
    columns=(*STARTS, *RATES, "fit_error", "link_share"),
    source="blocks_s over bytes, of all messages",
)
def fits(rows: Sequence[Row], known: Circumstances) -> Judged:
    """Start-up time and bandwidth, fitted in each block; and bandwidth as a share of the link's."""
    limit = scaling.link(known.machine.get("gpu"))
    for place, row in enumerate(rows):
        timed = not units.missing(row.get("median_s")) and row.get("bytes")
        if limit and timed:
            yield place, {"link_share": row["bytes"] / row["median_s"] / limit}
        if row.get("op") != "fit":
            continue
        same = [each for each in rows if each.get("variant") == row["variant"]]
        curve = [r for r in same if r.get("role") in ("control", "variant") and r.get("blocks_s")]
        found = dict.fromkeys((*STARTS, *RATES, "fit_error"))
        blocks = zip(*(each["blocks_s"] for each in curve), strict=True)
        sent = [each["bytes"] for each in curve]
        made = [scaling.fitted(list(zip(sent, b, strict=True)), row["gpus"]) for b in blocks]
        if made and all(made):
            found |= in_columns(STARTS, intervals.median_interval([f.start_s for f in made]))
            found |= in_columns(RATES, intervals.median_interval([f.rate for f in made]))
            line = found["startup_s"], found["bandwidth"]
            times = [
                (line[0] + n / line[1], median(r["blocks_s"]))
                for n, r in zip(sent, curve, strict=True)
            ]
            found["fit_error"] = max(max(a / b, b / a) for a, b in times) - 1
        yield place, found


@rule(
    "distributed.training",
    columns=(*THROUGHPUT, *EFFICIENCY),
    source="tokens over gpus and median_s, and that over the control's",
)
def throughput(rows: Sequence[Row], known: Circumstances) -> Judged:
    """Tokens of a second and GPU, and as a share of what the control does: from the ratio's own
    interval, which is taken block by block."""
    controls = {
        (row.get("op"), row.get("variant")): row for row in rows if row.get("role") is not None
    }
    for place, row in enumerate(rows):
        if units.missing(row.get("median_s")) or not row.get("tokens") or row.get("role") is None:
            continue
        each = row["tokens"] / row["gpus"]
        ends = (row["median_s"], row["high_s"], row["low_s"])
        found = dict(zip(THROUGHPUT, (round(each / end) for end in ends), strict=True))
        over = controls.get((row["op"], row.get("control")))
        if over and not units.missing(row.get("ratio")):
            work = each / (over["tokens"] / over["gpus"])
            ratios = (row["ratio"], row["ratio_high"], row["ratio_low"])
            found |= zip(EFFICIENCY, (work / ratio for ratio in ratios), strict=True)
        yield place, found | {name: found.get(name) for name in EFFICIENCY}


@rule("distributed.overlap", columns=("hidden_share",), source="hidden_s over communication_s")
def hidden(rows: Sequence[Row], known: Circumstances) -> Judged:
    """The share of communication that runs beside kernels that compute."""
    for place, row in enumerate(rows):
        moving = row.get("communication_s")
        yield place, {"hidden_share": row["hidden_s"] / moving if moving else None}
