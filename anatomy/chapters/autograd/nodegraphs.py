"""The graph that autograd built, on a page: what computes told apart from what only hands on."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import starmap
from typing import Any

from anatomy.figures import framing, tables
from anatomy.figures.charts import figures, svg
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.record.showing import current
from anatomy.table import units
from anatomy.table.errors import BadParameter

# What a node does on the way back -> what that is called.
DOES = {
    "computes": "computes",
    "hands on": "is named after arithmetic, and hands its gradient on",
    "moves": "changes a shape, and moves data",
    "free": "changed a shape or copied forwards, and launches nothing",
    "collects": "collects a gradient",
    "collects and copies": "collects a gradient, and copies it",
}
SIGNS = dict(zip(DOES, "●○◆∘▫■", strict=True))
SHAPES, ENDS = ("shape", "copy"), "accumulate"  # kinds of the census that no arithmetic belongs to
PART = "attention"  # the part of the graph that has a band behind it
TIMES = "autograd_graph.costs"  # the experiment that has the times of whole passes
Graph = Mapping[int, Sequence[int]]  # node -> those that its edges lead to
Note = dict[str, Any]  # `text` beside a graph, and the `share` of the largest that its bar has


def graph(
    experiment: str,
    *,
    graphs: Mapping[str, str],
    part: str | None = None,
    times: Mapping[str, str] | None = None,
    caption: str | None = None,
    **params: Any,
) -> str:
    """Graphs of autograd beside each other, and a table of their nodes.

        graph("autograd_graph.nodes", graphs={"manual": "written out", "default": "fused"})

    What a node does is told by what it was seen to launch, and where nobody could see that, by
    whether the gradients that it gave lie in the memory of those that it got.

    Args:
        experiment: Its name; its rows have `node`, `name`, `kind`, `next` and `part`.
        graphs: Op of each graph shown -> what it is called.
        part: Only the nodes of that part, each with its name; by default all.
        times: Op of `autograd_graph.costs` -> what it is called: the time of each graph's variant
            stands beside the graph as a bar, and the memory of the last.
    """
    showing = current()
    found = showing.find(experiment, **params)
    timed = showing.find(TIMES) if times else None

    def draw() -> str:
        table = found.recording.rows
        beside = _times(timed.recording.rows, graphs, times) if timed else {}
        return _shown(table if part is None else _only(table, part), graphs, part, beside)

    return framing.exhibit([found, timed] if timed else found, caption, draw, kind="graph")


def _times(
    table: Sequence[Row], variants: Iterable[str], ops: Mapping[str, str]
) -> dict[str, list[Note]]:
    """By variant: how long it takes in each of these operations, how fast that is, and what memory
    the last of them needs, each with its share of the largest of the variants."""
    there = {op: rows.select(table, op=op, variants=list(variants)) for op in ops}
    bars = [(op, "median_s") for op in ops]
    if not any(units.missing(row.get("peak_bytes")) for row in there[bars[-1][0]]):
        bars.append((bars[-1][0], "peak_bytes"))
    notes: dict[str, list[Note]] = {}
    for op, column in bars:
        most = max(row[column] for row in there[op])
        for row in there[op]:
            if column == "median_s":
                control = row["role"] == "control"
                speed = "" if control else f", {rows.speed_in_words(row, short=True)}"
                text = f"{ops[op]}: {rows.printed(row, column, units.PLAIN_DIGITS)}{speed}"
            else:
                text = f"peak memory: {units.byte_count(row[column])}"
            share = round(row[column] / most, 4)
            notes.setdefault(row["variant"], []).append({"text": text, "share": share})
    return notes


def _only(table: Sequence[Row], part: str) -> list[Row]:
    """The nodes of a part with the edges among them; there is no band behind a part that is all."""
    inside = {(row["op"], row["node"]) for row in table if row.get("part") == part}
    if not inside:
        raise BadParameter(f"no node is of the part {part!r}.")

    def kept(row: Row) -> Row:
        there = [other for other in row["next"] if (row["op"], other) in inside]
        return {**row, "next": there, "part": ""}

    return [kept(row) for row in table if (row.get("op"), row.get("node")) in inside]


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


def _shown(
    every: Sequence[Row],
    graphs: Mapping[str, str],
    part: str | None,
    beside: Mapping[str, Sequence[Note]],
) -> str:
    named, notes, absent = dict[str, list[Row]](), dict[str, Sequence[Note]](), ""
    for op, title in graphs.items():
        mine = rows.select([row for row in every if row.get("op")], op=op)
        if nodes := [row for row in mine if "next" in row]:
            named[title], notes[title] = nodes, beside.get(op, ())
        else:
            reason = mine[0].get("note") or "no nodes were recorded"
            absent += f'<p class="key">Not shown: {escape(f"{title}: {reason}")}.</p>'
    return (_drawn(named, notes, part is not None) if named else "") + absent


def _drawn(
    named: Mapping[str, Sequence[Row]], notes: Mapping[str, Sequence[Note]], name_all: bool
) -> str:
    largest, column = _unit(named)
    panels = [
        _panel(title, mine, largest, column, name_all) | {"notes": list(notes[title])}
        for title, mine in named.items()
    ]
    label = (
        f"Backward graphs of {', '.join(named)}, from the output above to the inputs below. "
        "The table under it has every node."
    ) + "".join(
        f" {title}: {'; '.join(note['text'] for note in said)}."
        for title, said in notes.items()
        if said
    )
    picture = svg.chart([("", svg.Drawing("layered.graphs", (panels,)))], label)
    return picture + _key(named) + figures.twin("".join(starmap(_table, named.items())))


def _unit(named: Mapping[str, Sequence[Row]]) -> tuple[float, str]:
    for column in ("device_s", "host_s"):
        known = [row[column] for mine in named.values() for row in mine if row.get(column)]
        if known:
            return max(known), column
    return 1.0, ""


def _panel(
    title: str, mine: Sequence[Row], largest: float, column: str, name_all: bool
) -> dict[str, Any]:
    placed = layout({row["node"]: row["next"] for row in mine})
    words: dict[int, list[str]] = {}
    for row in mine:
        if name_all or _is_named(row):
            words.setdefault(placed.layers[row["node"]], []).append(short(row["name"]))
    nodes = []
    for row in mine:
        layer, share = placed.layers[row["node"]], round((row.get(column) or 0.0) / largest, 4)
        # One label for a layer: those of several lanes would lie on one another.
        label = ", ".join(dict.fromkeys(words.pop(layer, [])))
        node = {"lane": placed.lanes[row["node"]], "layer": layer, "look": does(row)}
        nodes.append(node | {"share": share, "label": label, "hover": described(row)})
    core = [placed.layers[row["node"]] for row in mine if row.get("part") == PART]
    across, deep = placed.size
    many = sum(row["kind"] != ENDS for row in mine)
    name = f"attention: {len(core)} node{'s' * (len(core) != 1)}"
    return {
        "title": f"{title}, {many} node{'s' * (many != 1)}",
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
    """What the marks mean, and how many there are of each, a column for each graph."""
    counts = [Counter(map(does, mine)) for mine in named.values()]
    lines = [
        [escape(f"{SIGNS[look]}\u00a0{words}"), *(str(count[look]) for count in counts)]
        for look, words in DOES.items()
        if any(count[look] for count in counts)
    ]
    heads = ["a node", *(f"#{title}" for title in named)]
    return tables.listed(heads, lines, "What the marks mean", "key")


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


@dataclass(frozen=True)
class Layout:
    """Where everything goes: each node, and each line from its first point to its last."""

    layers: dict[int, int]  # 0 for the root's
    lanes: dict[int, int]  # 0 for the longest chain's
    edges: dict[tuple[int, int], list[tuple[float, float]]]  # (from, to) -> [(lane, layer), ...]

    @property
    def size(self) -> tuple[int, int]:
        """How many lanes and layers there are."""
        widest = max((point[0] for line in self.edges.values() for point in line), default=0)
        lanes = max([int(widest), *self.lanes.values()], default=0)
        return lanes + 1, max(self.layers.values(), default=0) + 1


def layout(graph: Graph) -> Layout:
    """The layout of a graph without circles, whose keys are all of its nodes, the root first. It is
    Sugiyama's longest-path layering with the lanes of a version control's log: a graph of autograd
    is a long chain with short branches, and reads best with it as a straight line."""
    order = ordered(graph)
    layers = dict.fromkeys(graph, 0)
    for node in order:
        for other in graph[node]:
            layers[other] = max(layers[other], layers[node] + 1)
    tall = dict.fromkeys(graph, 0)
    for node in reversed(order):
        tall[node] = max((tall[other] + 1 for other in graph[node]), default=0)
    lanes, taken = _node_lanes(graph, order, layers, tall)
    edges = {
        (node, other): _line(node, other, layers, lanes, taken)
        for node in order
        for other in dict.fromkeys(graph[node])
    }
    return Layout(layers, lanes, edges)


def ordered(graph: Graph) -> list[int]:
    """The nodes so that each comes before those that its edges lead to."""
    waiting_for = Counter(other for others in graph.values() for other in set(others))
    found = [node for node in graph if not waiting_for[node]]
    for node in found:  # which grows by all that waited for this one alone
        for other in dict.fromkeys(graph[node]):
            waiting_for[other] -= 1
            if not waiting_for[other]:
                found.append(other)
    return found


def _node_lanes(
    graph: Graph, order: Sequence[int], layers: Mapping[int, int], tall: Mapping[int, int]
) -> tuple[dict[int, int], list[set[int]]]:
    """The lane of each node, path by path, and the layers taken in each lane."""
    lanes: dict[int, int] = {}
    taken: list[set[int]] = []
    for start in sorted(order, key=lambda node: (layers[node], -tall[node])):
        if start in lanes:
            continue
        path = [start]
        while free := [other for other in graph[path[-1]] if other not in lanes]:
            path.append(max(free, key=lambda node: tall[node]))
        needed = set(range(layers[start], layers[path[-1]] + 1))
        lanes |= dict.fromkeys(path, _free_lane(taken, needed))
    return lanes, taken


def _free_lane(taken: list[set[int]], needed: set[int], first: int = 0) -> int:
    """The first lane in which these layers are free; they no longer are."""
    taken += (set() for _ in range(first - len(taken)))
    free = (lane for lane in range(first, len(taken)) if not taken[lane] & needed)
    lane = next(free, len(taken))
    taken += [set()] if lane == len(taken) else []
    taken[lane] |= needed
    return lane


def _line(node: int, other: int, layers, lanes, taken) -> list[tuple[float, float]]:
    """The points of one edge; a long one runs in a lane where no node is in its way."""
    begin, end = (lanes[node], layers[node]), (lanes[other], layers[other])
    between = set(range(begin[1] + 1, end[1]))
    if not between:
        return [begin, end]
    for lane in (end[0], begin[0]):
        # Its own lane is free beside it if no node stands there.
        if not any(lanes[n] == lane and layers[n] in between for n in lanes):
            break
    else:
        lane = _free_lane(taken, between, 1)
    points = [begin, (lane, begin[1] + 0.8), (lane, end[1] - 0.8), end]
    return list(dict.fromkeys(points))
