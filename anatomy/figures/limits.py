"""The machine's limits on a page."""

from anatomy.figures import framing, rooflines
from anatomy.record.showing import current


def limits(part: str = "ceilings", *, caption: str | None = None) -> str:
    """The machine's limits: its ceilings beside the maker's figures, or another part of them.

        limits("bandwidth", caption="Copy, read and write over the size of the working set.")

    Args:
        part: `ceilings`, `roofline` (of them, by number format), `bandwidth` (over working-set
            size), `floors` (a launch, a wait, a readback) or `graphs` (their cost over length).
    """
    found, ceilings = rooflines.calls(current(), part)
    return framing.exhibit([found], caption, lambda: rooflines.shown(found, part, ceilings))
