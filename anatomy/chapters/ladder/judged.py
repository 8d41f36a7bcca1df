"""The ladder: the rest of a step, shares of the ceiling, a rung over the one before, pay-back."""

from anatomy.judge import payback
from anatomy.judge.comparisons import comparisons, controlled
from anatomy.judge.rules import rule
from anatomy.table import intervals

USES = ("uses", "uses_low", "uses_high")
BEFORE = ("ratio_before", "ratio_before_low", "ratio_before_high", "verdict_before")
SHARE = ("share_of_ceiling", "share_of_ceiling_low", "share_of_ceiling_high")
CEILING = "ceiling "


@rule(
    *("ladder.training", "ladder.inference", "ladder.decoding", "ladder.regimes"),
    columns=("gap_s",),
    source="median_s less busy_s",
)
def gap(rows, known):
    """The rest of a step, in which no kernel runs."""
    for places in comparisons(rows):
        for place in places:
            row = rows[place]
            if row.get("rung") is not None:
                busy = row.get("busy_s")
                yield place, {"gap_s": max(0.0, row["median_s"] - busy) if busy else None}


@rule("ladder.training", columns=SHARE, source="flops over time, over the run's own ceiling")
def share_of_ceiling(rows, known):
    """What a step reaches of what the card multiplied at best in its number format, in that run."""
    best = {}
    for row in rows:
        if not str(row.get("op")).startswith(CEILING) or row.get("median_s") is None:
            continue
        if row.get("role") == "again" or row.get("verdict") == "impossible":
            continue
        rates = tuple(row["flops"] / row[name] for name in ("median_s", "high_s", "low_s"))
        if row["products"] not in best or rates[0] > best[row["products"]][0]:
            best[row["products"]] = rates
    for places in comparisons(rows):
        for place in places:
            row = rows[place]
            if row.get("rung") is None:
                continue
            ceiling = best.get(row["products"])
            if ceiling is None or row["verdict"] == "impossible":
                yield place, dict.fromkeys(SHARE)
                continue
            value, low, high = ceiling
            rate, least, most = (row["flops"] / row[n] for n in ("median_s", "high_s", "low_s"))
            yield place, dict(zip(SHARE, (rate / value, least / high, most / low), strict=True))


@rule(
    "ladder.training",
    columns=(*BEFORE, *USES, "pays"),
    source="blocks_s over those of the way `before`; setup_s less its, over what a step saves",
)
def over_the_rung_before(rows, known):
    """Each way against that of the rung before, and the steps that pay its set-up back."""
    for places in comparisons(rows):
        named = {rows[place]["variant"]: rows[place] for place in places}
        for place in places:
            row = rows[place]
            if row.get("rung") is None:
                continue
            found = dict.fromkeys((*BEFORE, *USES, "pays"))
            slower = named.get(row.get("before"))
            if slower is not None:
                slow, fast = slower["blocks_s"], row["blocks_s"]
                ratio = intervals.ratio_interval(fast, slow)
                word = intervals.verdict(ratio, row["noise_floor"])
                ends = (ratio.median, ratio.low, ratio.high, word)
                found |= dict(zip(BEFORE, ends, strict=True))
                found["pays"] = payback.PAYS.get(word, False)
                if found["pays"]:
                    cost = max(0.0, row["setup_s"] - slower["setup_s"])
                    steps = payback.uses(cost, slow, fast)
                    found |= dict(zip(USES, steps, strict=True))
            yield place, found


@rule(
    *("ladder.inference", "ladder.decoding"),
    columns=USES,
    source="setup_s over what blocks_s of a call save against rung 0's",
)
def paid_back(rows, known):
    """Calls after which setting a way up is paid back, where it is faster than rung 0."""
    for place, row, control in controlled(rows):
        ends = payback.NEVER_SAID
        if row["role"] == "variant" and row["verdict"] == "faster":
            ends = payback.uses(row["setup_s"], control["blocks_s"], row["blocks_s"])
        yield place, dict(zip(USES, ends, strict=True))


@rule(
    "ladder.traffic",
    columns=("formula_bytes", "formula_over_fused", "dram_bytes", "over_fused", "over_formula"),
    source="bytes read and written, by the formula and by the counters",
)
def traffic(rows, known):
    """Sums of what is read and written, and those of each way over the fused one's."""
    sums = [
        {
            "formula_bytes": row["formula_read_bytes"] + row["formula_written_bytes"],
            "dram_bytes": None
            if row.get("read_bytes") is None
            else row["read_bytes"] + row["written_bytes"],
        }
        for row in rows
    ]
    fused = {row["op"]: each for row, each in zip(rows, sums, strict=True) if _is_fused(row)}
    for place, (row, own) in enumerate(zip(rows, sums, strict=True)):
        least, moved = fused[row["op"]], own["dram_bytes"]
        both = moved, least["dram_bytes"]
        yield (
            place,
            own
            | {
                "formula_over_fused": own["formula_bytes"] / least["formula_bytes"],
                "over_fused": both[0] / both[1] if all(both) else None,
                "over_formula": moved / own["formula_bytes"] if moved else None,
            },
        )


def _is_fused(row) -> bool:
    return row.get("role") == "control"
