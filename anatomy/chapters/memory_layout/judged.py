"""Contiguity: after how many uses a copy in a better layout has paid."""

from anatomy.judge import payback
from anatomy.judge.comparisons import comparisons
from anatomy.judge.rules import rule

USES = ("uses", "uses_low", "uses_high")
UNCHANGED = "none"


@rule(
    "remedies.payback",
    columns=(*USES, "pays"),
    source="blocks_s of the copy over what a use of it saves against a use of the view",
)
def paid_back(rows, known):
    """Products after which copying once is cheaper than never, where the copy is faster."""
    for places in comparisons(rows):
        blocks = {}
        for place in places:
            row = rows[place]
            # The control's duplicate comes last, and stands for the control.
            blocks[row["case"], row["remedy"], row["step"]] = row["blocks_s"]
        for place in places:
            row = rows[place]
            found = dict.fromkeys((*USES, "pays"))
            if row["remedy"] != UNCHANGED and row["step"] != "copy" and row["role"] != "again":
                found["pays"] = payback.PAYS.get(row["verdict"], False)
                if found["pays"]:
                    ends = payback.uses(
                        blocks[row["case"], row["remedy"], "copy"],
                        blocks[row["case"], UNCHANGED, "use"],
                        row["blocks_s"],
                    )
                    found |= dict(zip(USES, ends, strict=True))
            yield place, found
