"""What the parts of a training step hold at most, from its blocks."""

from anatomy.chapters.allocator.lifetimes import levels
from anatomy.judge.rules import rule
from anatomy.table import units

ACTIVATIONS = "activations"
COLUMNS = ("most_bytes", "activations_share")


@rule(
    "allocator.training_step",
    columns=COLUMNS,
    source="block_bytes from born_event to died_event",
)
def held(rows, known):
    """The most bytes that live at once in each part of a step, and what share of these are
    activations."""
    parts = [(place, row) for place, row in enumerate(rows) if row.get("kind") == "part"]
    if units.missing(parts[-1][1].get("died_event")):
        yield from ((place, dict.fromkeys(COLUMNS)) for place, _ in parts)
        return
    by_kind = levels(rows, parts[-1][1]["died_event"])
    total = [sum(each) for each in zip(*by_kind.values(), strict=True)]
    began = 0
    for place, row in parts:
        ended = row["died_event"]
        most = max(range(began, ended), key=total.__getitem__, default=None)
        if most is not None:
            share = by_kind.get(ACTIVATIONS, [0] * len(total))[most] / total[most]
            yield place, {"most_bytes": total[most], "activations_share": share}
        began = ended
