"""Numbers of a claim by who sets the pace of a step; whose rule is `anatomy.judge.pace`."""

from collections.abc import Mapping, Sequence

from anatomy.claims.cases import between
from anatomy.claims.findings import Measured
from anatomy.judge.pace import paced_by
from anatomy.judge.rows import Row

GPU, HOST = "where the GPU is the bottleneck", "where the host is the bottleneck"
UNKNOWN = "where the pace is not known"


def pace(row: Row) -> str:
    """Who sets the pace of a row's step: `GPU`, `HOST`, or `UNKNOWN`."""
    return {"GPU": GPU, "host": HOST, None: UNKNOWN}[paced_by(row)]


def listed(seen: Mapping[tuple[str, ...], Sequence[Measured]]) -> str:
    """Numbers by heading and name: `where the host is the bottleneck: selective 0.34×`."""
    parts: dict[str, list[str]] = {}
    for (heading, *name), each in sorted(seen.items()):
        many = f" in {len(each)} cells" if len(each) > 1 else ""
        text = " ".join([*name, between(one.value for one in each)])
        parts.setdefault(heading, []).append(f"{text}{many}")
    said = (f"{heading or UNKNOWN}: {', '.join(texts)}" for heading, texts in parts.items())
    return "; ".join(said)
