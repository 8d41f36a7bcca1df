"""torch.compile: when compiling is paid back, and what one graph break adds."""

from anatomy.judge import payback
from anatomy.judge.comparisons import comparisons, controlled
from anatomy.judge.rules import rule

USES = ("uses", "uses_low", "uses_high")
BREAK = ("break_s", "break_low_s", "break_high_s")


@rule(
    "compilation.map",
    "compilation.layers",
    columns=(*USES, "pays"),
    source="setup_s over what blocks_s of a step save against eager's",
)
def paid_back(rows, known):
    """Steps after which setting a way up is paid back, where it is faster than eager."""
    for place, row, eager in controlled(rows):
        pays, ends = None, payback.NEVER_SAID
        if row.get("setup_s") is not None:
            pays = payback.PAYS.get(row["verdict"], False)
        if pays:
            ends = payback.uses(row["setup_s"], eager["blocks_s"], row["blocks_s"])
        yield place, dict(zip(USES, ends, strict=True)) | {"pays": pays}


@rule(
    "compilation.breaks",
    columns=BREAK,
    source="slope of blocks_s over breaks, on the row with most breaks",
)
def graph_break(rows, known):
    """The slope over all compiled variants of a chain, on the one with most breaks."""
    for places in comparisons(rows):
        members = [rows[place] for place in places if rows[place]["role"] != "again"]
        used = [row for row in members if row.get("breaks") is not None]  # of a compiled chain
        slope = payback.slope([row["breaks"] for row in used], [row["blocks_s"] for row in used])
        most = max(row["breaks"] for row in used)
        for place in places:
            row = rows[place]
            last = row["role"] != "again" and row.get("breaks") == most
            ends = (slope.median, slope.low, slope.high) if last else payback.NEVER_SAID
            yield place, dict(zip(BREAK, ends, strict=True))
