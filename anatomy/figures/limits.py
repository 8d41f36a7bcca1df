"""The machine's limits on a page."""

from anatomy.figures import framing, rooflines
from anatomy.record.showing import current
from anatomy.table.errors import lookup


def limits(part: str = "ceilings", *, caption: str | None = None) -> str:
    """The machine's limits: its ceilings beside the maker's figures, or another part of them.

        limits("bandwidth", caption="Copy, read and write over the size of the working set.")

    Args:
        part: `ceilings`, `roofline` (of them, by number format), `bandwidth` (over working-set
            size), `floors` (a launch, a wait, a readback) or `graphs` (their cost over length).
    """
    experiment, draw = lookup("part of the limits", part, rooflines.PARTS)
    showing = current()
    ceilings = None if experiment == rooflines.FLOORS else showing.ceilings
    found = showing.find(experiment)
    table = found.recording.rows if found.recording else []
    # The maker's figures stand there without any recording.
    there = table or part == "ceilings"
    return framing.exhibit([found], caption, lambda: draw(table, ceilings) if there else "")
