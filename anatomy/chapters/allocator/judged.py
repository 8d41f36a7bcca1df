"""What the parts of a training step hold at most, from its blocks."""

from anatomy.chapters.allocator.lifetimes import levels
from anatomy.judge.rules import rule


@rule(
    "allocator.training_step",
    columns=("most_bytes", "activations_share"),
    source="block_bytes from born_event to died_event",
)
def held(rows, known):
    """The most bytes that live at once in each part of a step, and what share of these are
    activations."""
    ends = {at: row.get("died_event") for at, row in enumerate(rows) if row.get("kind") == "part"}
    if None in ends.values():  # it could not be recorded
        return
    held, began = levels(rows, max(ends.values())), 0
    for place, end in ends.items():
        part = held[began:end]
        peak = part.loc[part.sum(axis=1).idxmax()]
        share = peak["activations"] / peak.sum()
        yield place, {"most_bytes": int(peak.sum()), "activations_share": float(share)}
        began = end
