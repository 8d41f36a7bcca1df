"""The graph that autograd built, on a page: what computes told apart from what only hands on."""

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from itertools import starmap
from typing import Any

from anatomy.chapters.autograd import layering
from anatomy.figures import framing, tables
from anatomy.figures.charts import figures, svg
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.record.showing import current
from anatomy.table import units

# What a node does on the way back -> what that is called.
DOES = {
    "computes": "computes",
    "hands on": "is named after arithmetic, and hands its gradient on",
    "moves": "changes a shape, and moves data",
    "free": "changes a shape, and launches nothing",
    "collects": "collects a gradient",
    "collects and copies": "collects a gradient, and copies it",
}
SIGNS = dict(zip(DOES, "●○◆∘▫■", strict=True))
SHAPES, ENDS = ("shape", "copy"), "accumulate"  # kinds of the census that no arithmetic belongs to
PART = "attention"  # the part of the graph that has a band behind it


def graph(
    experiment: str, *, graphs: Mapping[str, str], caption: str | None = None, **params: Any
) -> str:
    """Graphs of autograd beside each other, and a table of their nodes.

        graph("autograd_graph.nodes", graphs={"manual": "written out", "default": "fused"})

    What a node does is told by what it was seen to launch, and where nobody could see that, by
    whether the gradients that it gave lie in the memory of those that it got.

    Args:
        experiment: Its name; its rows have `node`, `name`, `kind`, `next` and `part`.
        graphs: Op of each graph shown -> what it is called.
    """
    found = current().find(experiment, **params)
    return framing.exhibit(
        found, caption, lambda: _shown(found.recording.rows, graphs), kind="graph"
    )


def does(row: Row) -> str:
    """What a node does on the way back, one of `DOES`."""
    launched = row.get("kernels_per_call")
    if row.get("kind") == ENDS:
        # What only stores a gradient launches nothing; where that was not seen, it is taken so.
        return "collects and copies" if launched else "collects"
    idle = bool(row.get("hands_on")) if units.missing(launched) else not launched
    if row.get("kind") in SHAPES:
        return "free" if idle else "moves"
    return "hands on" if idle else "computes"


def _shown(every: Sequence[Row], graphs: Mapping[str, str]) -> str:
    named, absent = dict[str, list[Row]](), ""
    for op, title in graphs.items():
        mine = rows.select([row for row in every if row.get("op")], op=op)
        if nodes := [row for row in mine if "next" in row]:
            named[title] = nodes
        else:
            reason = mine[0].get("note") or "no nodes were recorded"
            absent += f'<p class="key">Not shown: {escape(f"{title}: {reason}")}.</p>'
    return (_drawn(named) if named else "") + absent


def _drawn(named: Mapping[str, Sequence[Row]]) -> str:
    largest, column = _unit(named)
    panels = [_panel(title, mine, largest, column) for title, mine in named.items()]
    label = (
        f"Backward graphs of {', '.join(named)}, from the output above to the inputs below. "
        "The table under it has every node."
    )
    picture = svg.chart([("", svg.Drawing("layered.graphs", (panels,)))], label)
    return picture + _key(named) + figures.twin("".join(starmap(_table, named.items())))


def _unit(named: Mapping[str, Sequence[Row]]) -> tuple[float, str]:
    """The largest time of a node, and which time that is."""
    for column in ("device_s", "host_s"):
        known = [row[column] for mine in named.values() for row in mine if row.get(column)]
        if known:
            return max(known), column
    return 1.0, ""


def _panel(title: str, mine: Sequence[Row], largest: float, column: str) -> dict[str, Any]:
    """One graph as `layered.graphs` draws it."""
    placed = layering.layout({row["node"]: row["next"] for row in mine})
    words: dict[int, list[str]] = {}
    for row in mine:
        if _is_named(row):
            words.setdefault(placed.layers[row["node"]], []).append(short(row["name"]))
    nodes = []
    for row in mine:
        layer, share = placed.layers[row["node"]], round((row.get(column) or 0.0) / largest, 4)
        # One label for a layer: those of several lanes would lie on one another.
        label = ", ".join(words.pop(layer, [])) if _is_named(row) else ""
        node = {"lane": placed.lanes[row["node"]], "layer": layer, "look": does(row)}
        nodes.append(node | {"share": share, "label": label, "hover": described(row)})
    core = [placed.layers[row["node"]] for row in mine if row.get("part") == PART]
    across, deep = placed.size
    name = f"attention: {len(core)} node{'s' * (len(core) != 1)}"
    return {
        "title": f"{title}, {sum(row['kind'] != ENDS for row in mine)} nodes",
        "lanes": across,
        "layers": deep,
        "nodes": nodes,
        "edges": [[list(point) for point in line] for line in placed.edges.values()],
        "band": [min(core), max(core), name] if core else None,
    }


def _is_named(row: Row) -> bool:
    """Whether a node has its name beside it: those that hand on a gradient as it is have not."""
    return row["kind"] == "compute" or does(row) == "moves"


def short(name: str) -> str:
    """A node's name without what all have, and without what would not fit beside it."""
    plain = name.partition("Backward")[0].removeprefix("Native")
    return plain.replace("ScaledDotProduct", "SDPA ").replace("Attention", "")


def described(row: Row) -> str:
    """One node in words, for whoever points at it."""
    parts = [f"{row['node']} {row['name']}: {DOES[does(row)]}"]
    if not units.missing(row.get("device_s")):
        count = row["kernels_per_call"]
        kernels = f"{count} kernel{'s' * (count != 1)}"
        parts.append(f"{kernels}, {units.seconds(row['device_s'])} on the GPU")
    if row.get("holds"):
        parts.append(f"holds {row['holds']}, {units.byte_count(row['held_bytes'])}")
    return "; ".join(parts)


def _key(named: Mapping[str, Sequence[Row]]) -> str:
    """What the marks mean, and how many there are of each in each graph."""
    counted = {title: Counter(map(does, mine)) for title, mine in named.items()}
    items = []
    for look, words in DOES.items():
        numbers = [counted[title][look] for title in named]
        if any(numbers):
            items.append(f"{SIGNS[look]} {words} ({' and '.join(map(str, numbers))})")
    return f'<p class="key">{escape("; ".join(items))}</p>'


def _table(title: str, mine: Sequence[Row]) -> str:
    timed = any(not units.missing(row.get("device_s")) for row in mine)
    total = sum(row.get("host_s") or 0.0 for row in mine)
    measured = [
        ("#kernels", lambda row: str(row["kernels_per_call"])),
        ("#GPU time", lambda row: units.seconds(row["device_s"])),
    ]

    def share(row: Row) -> str:
        return units.percent(row["host_s"] / total) if row.get("host_s") and total else ""

    def memory(row: Row) -> str:
        return units.byte_count(row["own_bytes"]) if row.get("own_bytes") else ""

    columns = [
        ("node", lambda row: f"{row['node']} {tables.code(row['name'])}"),
        ("next", lambda row: ", ".join(map(str, row["next"])) or tables.NONE),
        ("on the way back", lambda row: escape(DOES[does(row)])),
        *(measured if timed else []),
        ("#share of the host's time", share),
        ("holds", lambda row: escape(row.get("holds") or "")),
        ("#memory of its own", memory),
    ]
    return tables.by_columns(columns, mine, f"Nodes, {title}", "nodes")
