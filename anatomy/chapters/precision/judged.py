"""Precision: the share of gradients that became 0."""

from anatomy.judge.rules import rule


@rule("precision.gradients", columns=("underflow_share",), source="underflow over gradients")
def underflow(rows, known):
    """Gradients that are 0 in a format, as a share of those that should not be."""
    for place, row in enumerate(rows):
        if row.get("gradients") and row.get("underflow") is not None:
            yield place, {"underflow_share": row["underflow"] / row["gradients"]}
