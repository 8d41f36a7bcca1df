"""channels_last: after how many layers converting the input once has paid."""

from anatomy.judge import payback
from anatomy.judge.comparisons import comparisons
from anatomy.judge.payback import USES
from anatomy.judge.rules import rule

NCHW, LAST, CONVERTED = "NCHW", "channels_last", "channels_last, input converted"


@rule(
    "channels_last.map",
    columns=USES,
    source="blocks_s with and without the conversion, over what channels_last saves against NCHW",
)
def paid_back(rows, known):
    """Layers after which one conversion has paid, on the row of channels_last if it is faster."""
    for places in comparisons(rows):
        named = {rows[place]["variant"]: rows[place] for place in places}
        if CONVERTED not in named:
            continue
        direct = named[LAST]["blocks_s"]
        for place in places:
            ends = dict.fromkeys(USES)
            if rows[place]["variant"] == LAST and rows[place]["verdict"] == "faster":
                with_it = zip(named[CONVERTED]["blocks_s"], direct, strict=True)
                cost = [max(0.0, more - less) for more, less in with_it]
                ends = payback.uses(cost, named[NCHW]["blocks_s"], direct)
            yield place, ends
