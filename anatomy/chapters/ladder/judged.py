"""The ladder: the rest of a step, shares of the ceiling, a rung over the one before, pay-back."""

from anatomy.judge import occasions, payback, replication
from anatomy.judge.comparisons import comparisons, controlled, rates
from anatomy.judge.payback import USES
from anatomy.judge.rules import rule

BEFORE = ("ratio_before", "ratio_before_low", "ratio_before_high", "verdict_before")
SHARE = ("share_of_ceiling", "share_of_ceiling_low", "share_of_ceiling_high")
EXECUTED = "executed_share"
CEILING = "ceiling "


def _steps_of_rungs(rows):
    """Each step of a rung: its place, its row, and all rows of its comparison by variant."""
    for places in comparisons(rows):
        members = {rows[place]["variant"]: rows[place] for place in places}
        steps = [place for place in places if rows[place].get("rung") is not None]
        yield from ((place, rows[place], members) for place in steps)


@rule(
    *("ladder.training", "ladder.inference", "ladder.decoding", "ladder.regimes"),
    columns=("gap_s",),
    source="median_s less busy_s",
)
def gap(rows, known):
    """The rest of a step, in which no kernel runs. Below zero is what a profile, which is a run and
    a clock of its own, says too much."""
    for place, row, _ in _steps_of_rungs(rows):
        busy = row.get("busy_s")
        yield place, {"gap_s": row["median_s"] - busy if busy else None}


@rule(
    "ladder.training",
    columns=(*SHARE, EXECUTED),
    source="flops over time, over the run's own ceiling; of executed flops by width and sequence",
)
def share_of_ceiling(rows, known):
    """What a step reaches of what the card multiplied at best in its number format, in that run."""
    best = {}
    for row in rows:
        if not str(row.get("op")).startswith(CEILING) or row.get("median_s") is None:
            continue
        if row.get("role") != "again" and row.get("verdict") != "impossible":
            known = best.get(row["products"], [0.0])
            best[row["products"]] = max(known, rates(row, "flops"), key=lambda each: each[0])
    for place, row, _ in _steps_of_rungs(rows):
        ends = (None, None, None)
        if row["products"] in best and row["verdict"] != "impossible":
            (value, low, high), (rate, least, most) = best[row["products"]], rates(row, "flops")
            ends = (rate / value, least / high, most / low)
        executed = _executed(row) if ends[0] and row.get("backend") else None
        found = {EXECUTED: executed and executed * ends[0]}
        yield place, dict(zip(SHARE, ends, strict=True)) | found


def _executed(row):
    """FLOPs that a step executes over those of its formula, which counts attention whole. A fused
    kernel leaves out the half that the causal mask hides; unfused, both matmuls compute it."""
    if row["backend"] == "written out":
        return 1.0
    # 24 C^2 + 4 C T for each token and layer, of which 2 C T are masked.
    return 1 - 2 * row["sequence"] / (24 * row["width"] + 4 * row["sequence"])


@rule(
    "ladder.training",
    columns=(*BEFORE, *USES, "pays"),
    source="blocks_s over those of the way `before`; setup_s over what a step saves",
)
def over_the_rung_before(rows, known):
    """Each way against that of the rung before, and the steps that pay its set-up back. Nothing is
    taken off that: the first step of the rung before is as long as what it was first to load."""
    for place, row, members in _steps_of_rungs(rows):
        found = dict.fromkeys((*BEFORE, *USES, "pays"))
        slower = members.get(row.get("before"))
        if slower is not None:
            slow, fast = slower["blocks_s"], row["blocks_s"]
            over = occasions.ratio(row, slower)
            ratio, word = over.interval, replication.verdict(over, row["noise_floor"])
            found |= zip(BEFORE, (ratio.median, ratio.low, ratio.high, word), strict=True)
            found |= payback.paid(word, row["setup_s"], slow, fast)
        yield place, found


@rule(
    *("ladder.inference", "ladder.decoding"),
    columns=USES,
    source="setup_s over what blocks_s of a call save against rung 0's",
)
def paid_back(rows, known):
    """Calls after which setting a way up is paid back, where it is faster than rung 0."""
    for place, row, control in controlled(rows):
        ends = dict.fromkeys(USES)
        if row["role"] == "variant" and row["verdict"] == "faster":
            ends = payback.uses(row["setup_s"], control["blocks_s"], row["blocks_s"])
        yield place, ends


@rule(
    "ladder.traffic",
    columns=("formula_bytes", "formula_over_fused", "dram_bytes", "over_fused", "over_formula"),
    source="bytes read and written, by the formula and by the counters",
)
def traffic(rows, known):
    """Sums of what is read and written, and those of each way over the fused one's."""
    fused = {row["op"]: _on_paper_and_moved(row) for row in rows if row.get("role") == "control"}
    for place, row in enumerate(rows):
        (paper, moved), (fused_paper, fused_moved) = _on_paper_and_moved(row), fused[row["op"]]
        found = {"formula_bytes": paper, "formula_over_fused": paper / fused_paper}
        found["dram_bytes"] = moved
        found["over_fused"] = moved / fused_moved if moved and fused_moved else None
        found["over_formula"] = moved / paper if moved else None
        yield place, found


def _on_paper_and_moved(row):
    """Bytes by the formula, and by the counters; None where these were not read."""
    counted = row.get("read_bytes") is not None
    moved = row["read_bytes"] + row["written_bytes"] if counted else None
    return row["formula_read_bytes"] + row["formula_written_bytes"], moved
