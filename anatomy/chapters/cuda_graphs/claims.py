"""What the seed says of CUDA graphs, put to the recordings of `graph_capture`."""

from anatomy.claims import Cases, Finding, Need, Unmeasured, claim
from anatomy.claims.table import Table, bytes_over, judged, speed_up, trusted
from anatomy.judge.rows import Row
from anatomy.table import units

MAP, TRAINING = Need("graph_capture.map"), Need("graph_capture.training")
POOLS = Need("graph_capture.pools")
# Upper ends in seconds of the classes of mean kernel duration, and what they are called.
CLASSES = {3e-6: "under 3 µs", 10e-6: "3 to 10 µs", 30e-6: "10 to 30 µs", 100e-6: "30 to 100 µs"}
# The advice is for "static shapes, small kernels": those that a launch can take as long as.
SMALL = ("under 3 µs", "3 to 10 µs")
LONGEST, UNKNOWN = "over 100 µs", "of unknown length"
# What holds memory: a step with all that is reserved, forward passes with what is above the model.
STEP = "training steps, model included"
FORWARD = "forward passes in "
KINDS = {"own pools": f"{FORWARD}pools of their own", "one pool": f"{FORWARD}one pool"}
NO_BYTES = "nobody counted the allocator's bytes"
CLAIMED = (1.5, 2.0)  # the speed-up that the seed names


def kernel_class(seconds: float | None) -> str:
    """The class of a mean kernel duration, in words: `3 to 10 µs`."""
    if units.missing(seconds):
        return UNKNOWN
    return next((name for most, name in CLASSES.items() if seconds < most), LONGEST)


def _replays(*tables: Table) -> list[Row]:
    """The rows of plain replays, on the wall."""
    found = [row for t in tables for row in t.select(variant="graph", quantity="step_wall")]
    return [row for row in found if not row["op"].startswith("first call")]


@claim(MAP, TRAINING)
def cuda_graphs_are_faster(chains: Table, steps: Table) -> Finding:
    """Where kernels are small, under 10 us in the mean, and so are meant, the replay of every cell
    is at least 1.5 times as fast on the wall.

    Shapes are static in all of them. Cells of longer kernels stand beside it and decide nothing.
    """
    replays = _replays(chains, steps)
    kinds = [{"kernels": kernel_class(r.get("kernel_s")), "work": r["work"]} for r in replays]
    rows = zip(kinds, replays, strict=True)
    every = judged(rows, lambda gain: gain.at_least(CLAIMED[0]), speed_up)
    found = {n: every.of(kernels=n).measurable for n in (*CLASSES.values(), LONGEST, UNKNOWN)}
    seen = ", ".join(f"{each.range} ({name})" for name, each in found.items() if each)
    times = "Time of the loop over that of the replay, by a kernel's mean duration"
    small = Cases(case for case in every if case.why or case.where["kernels"] in SMALL)
    tally = f"Of kernels under 10 µs: {small.tally(*CLAIMED)} Of all: {every.tally(*CLAIMED)}"
    return small.finding(f"{times}: {seen}. {tally}")


@claim(TRAINING, POOLS)
def cuda_graphs_memory_neutral(steps: Table, pools: Table) -> Finding:
    """What the allocator holds with the graph lies within 10 % of what it holds without.

    Of a training step all reserved bytes count, of forward passes what comes on top of the model.
    """
    cases = Cases()
    for row in _replays(steps):
        with cases.at(kind=STEP, case=row["op"]) as case:
            trusted(row)
            eager = steps.row("eager", op=row["op"], quantity="step_wall")
            ratio = bytes_over(row, eager, "reserved_bytes", NO_BYTES)
            case(ratio.near(1.0), ratio)
    eager_pools = {row["graphs"]: row for row in pools.select(way="eager")}
    for row in pools.select(way=tuple(KINDS)):
        with cases.at(kind=KINDS[row["way"]], case=row["variant"]) as case:
            if row.get("note"):
                raise Unmeasured(row["note"])
            ratio = bytes_over(row, eager_pools.get(row["graphs"], {}), "pool_bytes", NO_BYTES)
            case(ratio.near(1.0), ratio)
    found = {kind: cases.of(kind=kind).measurable for kind in (STEP, *KINDS.values())}
    seen = "; ".join(f"{kind} {each.range}" for kind, each in found.items() if each)
    return cases.finding(f"Bytes held with graphs over bytes held without: {seen}.")
