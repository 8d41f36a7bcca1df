"""What the seed says of the autograd graph, put to walks through one and to what its nodes cost."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import product

from anatomy.claims import IN_PART, Cases, Finding, Measured, Need, Unmeasured, claim
from anatomy.claims.cases import between
from anatomy.claims.findings import NEAR
from anatomy.claims.table import Table, known, trusted
from anatomy.judge.rows import Row
from anatomy.table import units

CENSUS, NODES = Need("autograd_graph.census"), Need("autograd_graph.nodes")
COSTS = Need("autograd_graph.costs")
MANUAL, LAYER, ALONE = "manual", "layer", "attention"
LOW, HIGH = 2, 5  # the speed-up that the seed names
# Ways to attend that are no combination of ordinary operations.
FUSED = ("efficient", "flash", "cudnn", "default")
EFFICIENT_NODE = "ScaledDotProductEfficientAttentionBackward0"  # the name that the seed looks for
MANY_NODES = 20  # "20+", of attention written out
NEAR_HALF = 0.1  # how far from a half, as a share of it, a share may lie and still be called half
NOTHING_S = 20e-9  # host time of a view that counts as nothing: hardly more than a call from C
NOT_LISTED = "no kernels were listed"


def _count(row: Row, column: str = "nodes") -> int:
    """What was counted of a row, or Unmeasured with the reason why it was not."""
    return known(row, column, "it could not be run")


def _by_count(counts: Iterable[tuple[object, str]], between: str = ", ") -> str:
    """`1 (flash, cudnn), 3 (math)`: what was counted, and of what."""
    groups: dict[object, list[str]] = {}
    for count, name in counts:
        groups.setdefault(count, []).append(name)
    return between.join(f"{count} ({', '.join(names)})" for count, names in groups.items())


@claim(CENSUS)
def attention_nodes_become_one(census: Table) -> Finding:
    """Unfused attention has 20 nodes up to a tenth, or more, and with each backend one, alone and
    with its projections.

    The number is how many nodes unfused attention has for each of fused attention's. Nodes that
    collect the gradients of weights and inputs are not counted; with them fused attention has more
    than one in any case. The tenth, which other claimed numbers have too, is of 23 November 2026,
    after 19 nodes were counted; until then they were too few.
    """
    cases, seen, brief = Cases(), list[str](), list[str]()
    for part in census.distinct("scope"):
        if part == LAYER:
            continue
        written, counts = census.row(MANUAL, op=f"graph {part}"), []
        for row in census.select(op=f"graph {part}"):
            if row["variant"] == MANUAL:
                continue
            with cases.at(part=part, backend=row["variant"]) as case:
                count, before = _count(row), _count(written)
                # `math` is written out too, inside of PyTorch: its ratio is no fused attention's.
                # That of attention alone is the number: around it lie nodes that stay.
                alone = part == ALONE and row["variant"] in FUSED
                ratio = Measured.counted(before / count) if alone else None
                many = before >= MANY_NODES * (1 - NEAR)
                case(many and count == 1, ratio)
                counts.append((count, row["variant"]))
        if counts:
            seen.append(f"{part}: {written['nodes']} unfused, {_by_count(counts)}")
            chosen = [count for count, backend in counts if backend == "default"]
            called = f"{part} alone" if part == ALONE else part
            brief += [
                f"{'' if count == 1 else 'not '}{called}, {written['nodes']} to {count}"
                for count in chosen
            ]
    found = cases.finding(f"Backward nodes of {'; '.join(seen)}.")
    return replace(found, condition="; ".join(brief) or found.condition, short=())


@claim(COSTS)
def fused_attention_is_faster(costs: Table) -> Finding:
    """Forward and backward pass: unfused attention takes at least twice the time of fused.

    For attention alone and for the layer that it is a part of, for each length of the sequence.
    """
    cases = Cases()
    cells = {row["op"]: row for row in costs if row.get("scope")}
    for (op, cell), backend in product(cells.items(), FUSED):
        place = {"part": cell["scope"], "backend": backend, "sequence": f"T={cell['sequence']}"}
        with cases.at(**place) as case:
            speedup = costs.ratio(MANUAL, backend, op=op)
            case(speedup.at_least(LOW), speedup)
    parts = cases.of(backend="default").numbers_by("part").items()
    seen = "; ".join(f"{part} {between(each.value for each in found)}" for (part,), found in parts)
    times = f"How many times as fast the default backend is: {seen or 'not known'}."
    return cases.finding(f"{times} {cases.tally(LOW, HIGH)}")


@claim(CENSUS)
def shape_nodes_share(census: Table) -> Finding:
    """Of the nodes of a layer 45 to 55 % are named after an operation that only changes a shape."""
    cases, counts = Cases(), []
    for row in census.select(op=f"graph {LAYER}"):
        for ends, with_them in (("not counted", False), ("counted", True)):
            with cases.at(attention=row["variant"], ends=ends) as case:
                nodes = _count(row) + (row["accumulate_nodes"] if with_them else 0)
                share = Measured.counted(row["shape_nodes"] / nodes, "share")
                case(share.near(0.5, NEAR_HALF), share)
        if not units.missing(nodes := row.get("nodes")):
            more = f"{nodes + row['accumulate_nodes']} with the ends"
            counts.append((f"{row['shape_nodes']} of {nodes}, or of {more}", row["variant"]))
    seen = _by_count(counts, "; ")
    return cases.finding(f"Nodes that change a shape: {seen or 'not counted'}.")


@claim(COSTS)
def shape_nodes_cost_nothing(costs: Table) -> Finding:
    """On the way back a view takes no host time, and no shape operation launches a kernel."""
    slope = next((row for row in costs if not units.missing(row.get("view_s"))), None)
    cases = Cases()
    with cases.at(on="host", operation="view") as case:
        if slope is None:
            raise Unmeasured("the chain of views could not be measured")
        each = Measured(slope["view_s"], slope["view_low_s"], slope["view_high_s"], "s")
        nothing = each.within(-NOTHING_S, NOTHING_S)
        case(nothing, each, f"Host time of a view: {each.text}")
    for row in costs.select(op="backward of one operation"):
        with cases.at(on="GPU", operation=row["variant"]) as case:
            if units.missing(trusted(row).get("kernels_per_call")):
                raise Unmeasured(NOT_LISTED)
            case(row["kernels_per_call"] == 0)
    seen, brief = [cases.said()] if cases.said() else [], ""
    if on_gpu := cases.of(on="GPU").measurable:
        launching = [case.where["operation"] for case in on_gpu if not case.outcome]
        seen.append(f"Operations that launch kernels: {', '.join(launching) or 'none'}")
        brief = f"true of the GPU in {len(on_gpu) - len(launching)} of {len(on_gpu)} operations"
        if [case.outcome for case in cases.of(on="host").measurable] == [False]:
            brief += ", not of the CPU"
    found = cases.finding(f"{'. '.join(seen) or 'Nothing was measured'}.")
    if found.word == IN_PART and brief:
        found = replace(found, condition=brief, short=())
    return found


@claim(CENSUS)
def graph_size_constant(census: Table) -> Finding:
    """A layer's graph has as many nodes at each batch and sequence as at most of them."""
    cases, seen = Cases(), []
    for attention in census.distinct("attention", op="sizes"):
        rows = census.select(op="sizes", attention=attention)
        sizes = [row.get("nodes") for row in rows]
        counts = Counter(size for size in sizes if not units.missing(size)).most_common()
        for row in rows:
            batch, sequence = f"B={row['batch']}", f"T={row['sequence']}"
            with cases.at(attention=attention, batch=batch, sequence=sequence) as case:
                nodes = _count(row)
                case(nodes == counts[0][0], Measured.counted(nodes, "count"))
        seen.append(f"{attention} {', '.join(f'{nodes} in {count}' for nodes, count in counts)}")
    return cases.finding(f"Nodes, and in how many of the sizes: {'; '.join(seen)}.")


@claim(CENSUS)
def efficient_backward_node(census: Table) -> Finding:
    """By default, the node of fused attention has that name, for each number format and mask.

    The number is how many of these have it.
    """
    cases, names = Cases(), Counter()
    for row in census.select(op="fused node"):
        with cases.at(dtype=row["dtype"], mask=row["mask"]) as case:
            _count(row)
            name = row.get("fused_node") or "none, for there are several"
            case(name == EFFICIENT_NODE)
            names[name] += 1
    seen = "; ".join(f"{name} in {count}" for name, count in names.items())
    found = cases.finding(f"The node by default, by number format and mask: {seen}.")
    there = len(cases.measurable)
    return replace(found, measured=Measured.counted(cases.true / there, "share") if there else None)


@claim(NODES)
def graph_shows_fusion(nodes: Table) -> Finding:
    """Each node of the graph, its ends apart, launches one kernel on the way back."""
    cases = Cases()
    for op in nodes.distinct("op"):
        if op == "memory":
            continue
        rows = [row for row in nodes.select(op=op) if row.get("kind") != "accumulate"]
        with cases.at(attention=op) as case:
            launched = [row.get("kernels_per_call") for row in rows]
            if any(map(units.missing, launched)):
                why = next((row[n] for row in rows for n in ("note", "remark") if row.get(n)), "")
                raise Unmeasured(why or NOT_LISTED)
            none, one = launched.count(0), launched.count(1)
            several = len(launched) - none - one
            seen = f"{op}: {none} nodes launch none, {one} one, {several} several"
            case(one == len(launched), said=seen)
    return cases.finding(f"Kernels on the way back, {cases.said() or 'not listed'}.")


@claim(CENSUS)
def every_operation_adds_nodes(census: Table) -> Finding:
    """Each of these lines of code on a tensor that wants a gradient adds a node to its graph."""
    cases = Cases()
    for row in census.select(op="operations"):
        with cases.at(line=row["variant"]) as case:
            added = _count(row, "nodes_added")
            case(added > 0, said="" if added else row["variant"])
    return cases.every(f"Lines that add none: {cases.said() or 'none'}.")


@claim(CENSUS)
def graph_shows_memory_and_compute(census: Table) -> Finding:
    """Layers whose graphs are the same, node by node and edge by edge, need as much: of memory
    between the passes, and of floating-point operations."""
    cases = Cases()
    for what, column, printed in (
        ("memory", "saved_bytes", units.byte_count),
        ("arithmetic", "layer_flops", lambda n: units.rate(n, "FLOP")),
    ):
        with cases.at(of=what) as case:
            several = [values for values in _alike(census, column) if len(values) > 1]
            if not several:
                raise Unmeasured("no two sizes have one graph")
            widest = max(several, key=lambda values: max(values) / min(values))
            ends = f"from {printed(min(widest))} to {printed(max(widest))}"
            same = all(len(set(values)) == 1 for values in several)
            case(same, said=f"{what} {ends}")
    return cases.finding(f"Behind one and the same graph: {cases.said()}.")


def _alike(census: Table, column: str) -> Iterable[list[float]]:
    """The values of a column in layers of one and the same graph."""
    groups: dict[str, list[float]] = {}
    for row in census.select(op="sizes"):
        if row.get("signature") and row.get(column):
            groups.setdefault(row["signature"], []).append(row[column])
    return groups.values()
