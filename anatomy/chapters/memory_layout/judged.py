"""Contiguity: after how many uses a copy in a better layout has paid."""

from anatomy.judge import payback
from anatomy.judge.comparisons import comparisons
from anatomy.judge.payback import USES
from anatomy.judge.rules import rule

UNCHANGED = "none"


@rule(
    "remedies.payback",
    columns=(*USES, "pays"),
    source="blocks_s of the copy over what a use of it saves against a use of the view",
)
def paid_back(rows, known):
    """Products after which copying once is cheaper than never, where the copy is faster."""
    for places in comparisons(rows):
        members = [rows[place] for place in places]
        # The control's duplicate comes last, and stands for the control.
        blocks = {(row["case"], row["remedy"], row["step"]): row["blocks_s"] for row in members}
        for place, row in zip(places, members, strict=True):
            found = dict.fromkeys((*USES, "pays"))
            if row["remedy"] != UNCHANGED and row["step"] != "copy" and row["role"] != "again":
                copy = blocks[row["case"], row["remedy"], "copy"]
                use = blocks[row["case"], UNCHANGED, "use"]
                found = payback.paid(row["verdict"], copy, use, row["blocks_s"])
            yield place, found
