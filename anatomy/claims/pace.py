"""Who sets the pace of a step: the GPU that runs it, or the host that asks for it.

One rule for all claims: it is whichever of the two needs longer. How long the GPU's kernels run is
known where a profile was taken. Elsewhere the step itself stands for them, which is never shorter.
"""

from collections.abc import Mapping, Sequence

from anatomy.claims.cases import between
from anatomy.claims.findings import Measured
from anatomy.judge.rows import Row
from anatomy.table import units

# Without a profile: where asking for a step takes at least so much of the step's time, the host
# sets the pace. What is asked for comes unevenly, so that the GPU waits before the two are equal.
WITHOUT_PROFILE = 0.8
GPU, HOST = "where the GPU sets the pace", "where the host sets the pace"
UNKNOWN = "where the pace is not known"


def pace(row: Row) -> str:
    """Who sets the pace of a row's step: `GPU`, `HOST`, or `UNKNOWN`."""
    asking, running = row.get("enqueue_s"), row.get("busy_s")
    if units.missing(running):
        step = row.get("median_s")
        running = None if units.missing(step) else WITHOUT_PROFILE * step
    if units.missing(asking) or units.missing(running):
        return UNKNOWN
    return HOST if asking >= running else GPU


def listed(seen: Mapping[tuple[str, ...], Sequence[Measured]]) -> str:
    """Numbers by heading and name: `where the GPU sets the pace: every layer 0.81× to 0.83×`."""
    parts: dict[str, list[str]] = {}
    for (heading, *name), each in sorted(seen.items()):
        many = f" in {len(each)} cells" if len(each) > 1 else ""
        text = " ".join([*name, between(one.value for one in each)])
        parts.setdefault(heading, []).append(f"{text}{many}")
    said = (f"{heading or UNKNOWN}: {', '.join(texts)}" for heading, texts in parts.items())
    return "; ".join(said)
