"""Who sets the pace of a step: the GPU that runs it, or the host that asks for it."""

from collections.abc import Mapping, Sequence

from anatomy import units
from anatomy.claims.findings import Measured
from anatomy.claims.table import between
from anatomy.rows import Row

# Where asking for a step takes at least so much of the step's time, the host sets the pace: what
# is asked for comes unevenly, so that the GPU waits before the two are equal.
HOST_PACED = 0.8
GPU, HOST = "where the GPU sets the pace", "where the host sets the pace"


def pace(row: Row) -> str:
    """Who sets the pace of a row's step; empty where nobody says what asking for it takes."""
    asking = row.get("enqueue_s")
    if units.missing(asking) or units.missing(row.get("median_s")):
        return ""
    return HOST if asking >= HOST_PACED * row["median_s"] else GPU


def listed(seen: Mapping[tuple[str, str], Sequence[Measured]]) -> str:
    """Numbers by heading and name: `where the GPU sets the pace: every layer 0.81× to 0.83×`."""
    parts: dict[str, list[str]] = {}
    for (heading, name), each in sorted(seen.items()):
        many = f" in {len(each)} cells" if len(each) > 1 else ""
        told = f"{name} {between([one.value for one in each])}{many}"
        parts.setdefault(heading, []).append(told)
    return "; ".join(
        f"{heading}: {', '.join(told)}" if heading else ", ".join(told)
        for heading, told in parts.items()
    )
