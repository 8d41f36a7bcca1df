"""A layout for graphs that flow one way: the longest-path layering of Sugiyama's method, with the
lanes of a version control's log, for a graph of autograd is a long chain with short branches.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Graph = Mapping[int, Sequence[int]]


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
    """The layout of a graph without circles, whose keys are all of its nodes, the root first."""
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
