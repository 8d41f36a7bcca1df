"""The sweep of FMAs: where its slope ends and its flat part begins."""

from anatomy.chapters.roofline import roofs
from anatomy.chapters.roofline.roofs import RIDGE
from anatomy.judge.comparisons import comparisons, in_columns
from anatomy.judge.rules import rule


@rule("roofline.intensity", columns=RIDGE, source="flops, bytes and blocks_s of all rows")
def corner(rows, known):
    """On the control, for it is all rows' together."""
    for places in comparisons(rows):
        found = roofs.ridge([rows[place] for place in places if rows[place]["role"] != "again"])
        for place in places:
            told = found and rows[place]["role"] == "control"
            yield place, in_columns(RIDGE, found) if told else dict.fromkeys(RIDGE)
