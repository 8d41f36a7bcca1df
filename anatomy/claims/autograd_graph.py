"""What the seed says of the autograd graph, put to walks through one and to what its nodes cost."""

from collections import Counter
from collections.abc import Callable, Iterator

from anatomy import units
from anatomy.claims import Case, Finding, Measured, Need, across, claim, within
from anatomy.claims.table import Table, between, why_not
from anatomy.rows import Row

CENSUS, NODES = Need("autograd_graph.census"), Need("autograd_graph.nodes")
COSTS = Need("autograd_graph.costs")
MANUAL, LAYER = "manual", "layer"
# Ways to attend that are no combination of ordinary operations.
FUSED = ("efficient", "flash", "cudnn", "default")
# The name that the seed looks for.
EFFICIENT_NODE = "ScaledDotProductEfficientAttentionBackward0"
# How far a share may lie from a half and still be called half.
NEAR = 0.05
# Host time of a view under which it counts as nothing: hardly more than a call from C.
NOTHING_S = 20e-9
NOT_COUNTED = "it could not be run"


def _of(table: Table, op: str) -> list[Row]:
    """The rows of one part of the census."""
    return [row for row in table if row.get("op") == op]


def _why(row: Row, column: str) -> str:
    """Why a row lacks a count; empty where it has it."""
    return "" if not units.missing(row.get(column)) else row.get("note") or NOT_COUNTED


@claim(CENSUS)
def attention_nodes_become_one(census: Table) -> Finding:
    """The graph of attention has one node with each backend, alone and with its projections.

    The number is how many nodes written-out attention has for each of fused attention's. Nodes that
    collect the gradients of weights and inputs are not counted.
    """
    cases, seen = [], []
    for part in dict.fromkeys(row["scope"] for row in census if row.get("scope")):
        if part == LAYER:
            continue
        op = f"graph {part}"
        written = census.row(MANUAL, op=op)
        fused: dict[int, list[str]] = {}
        for row in _of(census, op):
            if row["variant"] == MANUAL:
                continue
            where = {"part": part, "backend": row["variant"]}
            if why := _why(row, "nodes") or _why(written, "nodes"):
                cases.append(Case(where, None, why=why))
                continue
            count = row["nodes"]
            ratio = written["nodes"] / count
            # `math` is written out too, inside of PyTorch: its ratio is none of fused attention.
            shown = Measured(ratio, ratio, ratio) if row["variant"] in FUSED else None
            cases.append(Case(where, count == 1, shown))
            fused.setdefault(count, []).append(row["variant"])
        if fused:
            each = ", ".join(f"{count} ({', '.join(names)})" for count, names in fused.items())
            seen.append(f"{part} {written['nodes']} and {each}")
    return across(cases, f"Nodes written out, and fused: {'; '.join(seen)}.")


@claim(COSTS)
def fused_attention_is_faster(costs: Table) -> Finding:
    """Forward and backward pass: time of attention written out over that of fused is 2 to 5.

    For attention alone and for the layer that it is a part of, for each length of the sequence.
    """
    cases, seen = [], {}
    cells = {row["op"]: row for row in costs if row.get("scope")}
    for op, cell in cells.items():
        for backend in FUSED:
            where = {"part": cell["scope"], "backend": backend}
            where |= {"sequence": f"T={cell['sequence']}"}
            written, fused = (costs.row(name, op=op) for name in (MANUAL, backend))
            if why := why_not(written) or why_not(fused):
                cases.append(Case(where, None, why=why))
                continue
            ratio, _ = costs.ratio(MANUAL, backend, op=op)
            floor = fused.get("noise_floor") or 0.0
            speedup = Measured(ratio.median, ratio.low, ratio.high, floor=floor)
            cases.append(Case(where, within(speedup, 2, 5) if ratio.exact else None, speedup))
            if backend == "default":
                seen.setdefault(cell["scope"], []).append(ratio.median)
    told = "; ".join(f"{part} {between(values)}" for part, values in seen.items())
    return across(cases, f"How many times as fast the default backend is: {told or 'not known'}.")


@claim(CENSUS)
def shape_nodes_share(census: Table) -> Finding:
    """Of the nodes of a layer 45 to 55 % are named after an operation that only changes a shape.

    With attention written out and fused; with the nodes that collect gradients, and without them.
    """
    cases: list[Case] = []
    seen: dict[str, list[str]] = {}
    for row in _of(census, f"graph {LAYER}"):
        if why := _why(row, "nodes"):
            where = {"attention": row["variant"], "ends": "both"}
            cases.append(Case(where, None, why=why))
            continue
        for ends, extra in (("not counted", 0), ("counted", row["accumulate_nodes"])):
            share = row["shape_nodes"] / (row["nodes"] + extra)
            near = Measured(share, share, share, "share")
            where = {"attention": row["variant"], "ends": ends}
            cases.append(Case(where, within(near, 0.5 - NEAR, 0.5 + NEAR), near))
        count = (
            f"{row['shape_nodes']} of {row['nodes']}, or of "
            f"{row['nodes'] + row['accumulate_nodes']} with the ends"
        )
        seen.setdefault(count, []).append(row["variant"])
    told = "; ".join(f"{count} ({', '.join(names)})" for count, names in seen.items())
    return across(cases, f"Nodes that change a shape: {told or 'not counted'}.")


@claim(COSTS)
def shape_nodes_cost_nothing(costs: Table) -> Finding:
    """On the way back a view takes no host time, and no shape operation launches a kernel.

    The host's time is the slope over chains of views; under 20 ns of it count as nothing.
    """
    slope = next((row for row in costs if not units.missing(row.get("view_s"))), None)
    where = {"on": "host", "operation": "view"}
    told = []
    if slope is None:
        cases = [Case(where, None, why="the chain of views could not be measured")]
    else:
        each = Measured(slope["view_s"], slope["view_low_s"], slope["view_high_s"], "s")
        cases = [Case(where, within(each, -NOTHING_S, NOTHING_S), each)]
        told.append(f"Host time of a view: {each.text}")
    launched = []
    for row in _of(costs, "backward of one operation"):
        if row.get("role") == "again":
            continue
        where = {"on": "GPU", "operation": row["variant"]}
        count = row.get("kernels_per_call")
        if why := why_not(row) or ("no kernels were listed" if units.missing(count) else ""):
            cases.append(Case(where, None, why=why))
            continue
        cases.append(Case(where, count == 0))
        launched += [row["variant"]] if count else []
    if any(case.where["on"] == "GPU" and not case.why for case in cases):
        told.append(f"Operations that launch kernels: {', '.join(launched) or 'none'}")
    return across(cases, f"{'. '.join(told) or 'Nothing was measured'}.")


@claim(CENSUS)
def graph_size_constant(census: Table) -> Finding:
    """A layer's graph has as many nodes at each batch and sequence as at most of them."""
    cases, seen = [], []
    rows = _of(census, "sizes")
    for attention in dict.fromkeys(row["attention"] for row in rows):
        mine = [row for row in rows if row["attention"] == attention]
        counts = Counter(row["nodes"] for row in mine if not _why(row, "nodes"))
        usual = counts.most_common(1)[0][0] if counts else None
        for row in mine:
            where = {"attention": attention, "batch": f"B={row['batch']}"}
            where |= {"sequence": f"T={row['sequence']}"}
            why, nodes = _why(row, "nodes"), row.get("nodes")
            size = None if why else Measured(nodes, nodes, nodes, "count")
            cases.append(Case(where, None if why else nodes == usual, size, why=why))
        told = ", ".join(f"{nodes} in {count}" for nodes, count in counts.most_common())
        seen.append(f"{attention} {told}")
    return across(cases, f"Nodes, and in how many of the sizes: {'; '.join(seen)}.")


@claim(CENSUS)
def efficient_backward_node(census: Table) -> Finding:
    """By default, the node of fused attention has that name, for each number format and mask."""
    cases, seen = [], {}
    for row in _of(census, "fused node"):
        where = {"dtype": row["dtype"], "mask": row["mask"]}
        if why := _why(row, "nodes"):
            cases.append(Case(where, None, why=why))
            continue
        name = row.get("fused_node") or "none, for there are several"
        cases.append(Case(where, name == EFFICIENT_NODE))
        seen.setdefault(name, []).append(row["variant"])
    told = "; ".join(f"{name} in {len(which)}" for name, which in seen.items())
    return across(cases, f"The node by default, by number format and mask: {told}.")


@claim(NODES)
def graph_shows_fusion(nodes: Table) -> Finding:
    """Each node of the graph, its ends apart, launches one kernel on the way back."""
    cases, seen = [], []
    for op in dict.fromkeys(row["op"] for row in nodes if row["op"] != "memory"):
        rows = [row for row in _of(nodes, op) if row.get("kind") != "accumulate"]
        where = {"attention": op}
        launched = [row.get("kernels_per_call") for row in rows]
        if any(map(units.missing, launched)):
            why = next((row[n] for row in rows for n in ("note", "remark") if row.get(n)), "")
            cases.append(Case(where, None, why=why or "no kernels were listed"))
            continue
        cases.append(Case(where, all(count == 1 for count in launched)))
        none, one = (sum(count == n for count in launched) for n in (0, 1))
        several = len(launched) - none - one
        seen.append(f"{op}: {none} nodes launch none, {one} one, {several} several")
    return across(cases, f"Kernels on the way back, {'; '.join(seen) or 'not listed'}.")


@claim(CENSUS)
def every_operation_adds_nodes(census: Table) -> Finding:
    """Each of these lines of code on a tensor that wants a gradient adds a node to its graph."""
    cases, none = [], []
    for row in _of(census, "operations"):
        where = {"line": row["variant"]}
        if why := _why(row, "nodes_added"):
            cases.append(Case(where, None, why=why))
            continue
        cases.append(Case(where, row["nodes_added"] > 0))
        none += [] if row["nodes_added"] else [row["variant"]]
    return across(cases, f"Lines that add none: {'; '.join(none) or 'none'}.")


@claim(CENSUS)
def graph_shows_memory_and_compute(census: Table) -> Finding:
    """Layers whose graphs are the same, node by node and edge by edge, need as much: of memory
    between the passes, and of floating-point operations.
    """
    quantities: tuple[tuple[str, str, Callable], ...] = (
        ("memory", "saved_bytes", units.byte_count),
        ("arithmetic", "layer_flops", lambda n: units.rate(n, "FLOP")),
    )
    cases, seen = [], []
    for what, column, printed in quantities:
        groups = list(_alike(census, column))
        several = [values for values in groups if len(values) > 1]
        if not several:
            cases.append(Case({"of": what}, None, why="no two sizes have one graph"))
            continue
        widest = max(several, key=lambda values: max(values) / min(values))
        cases.append(Case({"of": what}, all(len(set(values)) == 1 for values in several)))
        seen.append(f"{what} from {printed(min(widest))} to {printed(max(widest))}")
    return across(cases, f"Behind one and the same graph: {'; '.join(seen)}.")


def _alike(census: Table, column: str) -> Iterator[list[float]]:
    """The values of a column in layers of one and the same graph."""
    groups: dict[str, list[float]] = {}
    for row in _of(census, "sizes"):
        if row.get("signature") and row.get(column):
            groups.setdefault(row["signature"], []).append(row[column])
    yield from groups.values()
