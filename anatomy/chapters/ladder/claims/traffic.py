"""What the seed says of the memory that fused attention spares, put to the counted bytes."""

from anatomy.claims import Cases, Finding, Measured, Need, claim
from anatomy.claims.cases import between
from anatomy.claims.table import Table
from anatomy.judge.rows import Row
from anatomy.table import units

TRAFFIC = Need("ladder.traffic")
# The two ways to write attention out: as the ladder's rung 1 does, and with the fewest operators.
WRITTEN_OUT = ("written out", "written out, all in bf16")
FUSED, CLAIMED = "fused", 5.0
# The mask is filled into a copy of the scores, and the counters see kernels alone: a copy is none.
# How often one reads and writes them, in the way that has a mask.
COPIED = {"forward": 2, "forward and backward": 4}


@claim(TRAFFIC)
def dram_access_falls(table: Table) -> Finding:
    """Bytes of attention written out, over those of the fused one, are 5 within 10 %, everywhere.

    The bytes are those that the card's counters saw, from the least of the repeats to the most.
    The counters miss the copies of the scores that a mask makes; the upper end has them in full, as
    if no cache helped. Where the counters could not be read, the bytes that the operators read and
    write count instead, and the evidence says so.
    """
    cases, measured, counted, fewer = Cases(), [], [], 0
    for op in table.distinct("op"):
        fused = table.row(FUSED, op=op)
        for way in WRITTEN_OUT:
            row = table.row(way, op=op)
            where = {name: row[name] for name in ("direction", "sequence", "heads")}
            ratio = _by_counters(row, fused)
            (measured if ratio else counted).append(row)
            fewer += ratio is not None and ratio.low > 1
            ratio = ratio or Measured.counted(row["formula_over_fused"])
            with cases.at(way=way, **where) as case:
                case(ratio.near(CLAIMED), ratio)
    parts = []
    if measured:
        seen = between(row["over_fused"] for row in measured)
        on_paper = between(row["formula_over_fused"] for row in measured)
        parts.append(
            f"The fused one moves fewer bytes in {fewer} of {len(measured)} cases. By the card's "
            f"counters attention written out moves {seen} the bytes of the fused one; on paper, "
            f"where no cache helps, it is {on_paper}."
        )
    if counted:
        on_paper = between(row["formula_over_fused"] for row in counted)
        parts.append(
            f"In {len(counted)} cases the counters were not read; by the operators' inputs and "
            f"outputs it is {on_paper} the bytes."
        )
    return cases.finding(" ".join(parts))


def _by_counters(row: Row, fused: Row) -> Measured | None:
    """The ratio that the counters saw, from the lowest repeat to the highest and the copies."""
    if units.missing(row.get("dram_bytes")) or units.missing(fused.get("dram_bytes")):
        return None
    masked = row["variant"] == WRITTEN_OUT[0]
    copied = COPIED[row["direction"]] * row["score_bytes"] if masked else 0
    return Measured(
        row["dram_bytes"] / fused["dram_bytes"],
        row["dram_low_bytes"] / fused["dram_high_bytes"],
        (row["dram_high_bytes"] + copied) / fused["dram_low_bytes"],
    )
