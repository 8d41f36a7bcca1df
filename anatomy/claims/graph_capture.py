"""What the seed says of CUDA graphs, put to the recordings of `graph_capture`."""

from collections.abc import Iterator, Sequence

from anatomy import units
from anatomy.claims import Case, Finding, Measured, Need, across, claim, within
from anatomy.claims.contiguity import NEAR
from anatomy.claims.promises import reaches, tally
from anatomy.claims.table import Table, between, over_control, why_not
from anatomy.rows import Row

MAP, TRAINING = Need("graph_capture.map"), Need("graph_capture.training")
POOLS = Need("graph_capture.pools")
# Upper ends in seconds of the classes of mean kernel duration, and what they are called.
CLASSES = (
    *((3e-6, "under 3 µs"), (10e-6, "3 to 10 µs")),
    *((30e-6, "10 to 30 µs"), (100e-6, "30 to 100 µs")),
)
LONGEST, UNKNOWN = "over 100 µs", "of unknown length"
# What holds memory: a step with all that is reserved, forward passes with what is above the model.
STEP = "training steps, model included"
KINDS = {
    "own pools": "forward passes in pools of their own",
    "one pool": "forward passes in one pool",
}
# The speed-up that the seed names.
CLAIMED = (1.5, 2.0)


def kernel_class(seconds: float | None) -> str:
    """The class of a mean kernel duration, in words: `3 to 10 µs`."""
    if units.missing(seconds):
        return UNKNOWN
    return next((name for most, name in CLASSES if seconds < most), LONGEST)


def speed_up(row: Row) -> Measured:
    """Time of the control over that of a row: the inverse of its ratio, with its interval."""
    return over_control(row).inverse


def gains_in(
    cells: Sequence[tuple[dict[str, str], Row]], claimed: tuple[float, float], said: str
) -> Finding:
    """Whether a technique gains in every cell what was promised.

    Args:
        cells: What tells each apart, and its row.
        claimed: The speed-up that the seed names, lower and upper end.
        said: What the numbers in the evidence are.
    """
    cases = []
    for where, row in cells:
        if reason := why_not(row):
            cases.append(Case(where, None, why=reason))
            continue
        gain = speed_up(row)
        cases.append(Case(where, reaches(gain, claimed[0]), gain))
    there = [case for case in cases if case.measured]
    if not there:
        return across(cases, "")
    kernels = "kernels" in there[0].where
    seen = _by_class(there) if kernels else between([case.measured.value for case in there])
    return across(cases, f"{said}: {seen}. {tally(cases, *claimed)}")


def _by_class(cases: Sequence[Case]) -> str:
    """Ratios apart by the kernels' duration, shortest first: `5.1× to 8.4× (under 3 µs), ...`."""
    names = [*(name for _, name in CLASSES), LONGEST, UNKNOWN]
    seen = {
        name: [case.measured.value for case in cases if case.where["kernels"] == name]
        for name in names
    }
    return ", ".join(f"{between(values)} ({name})" for name, values in seen.items() if values)


def _replays(*tables: Table) -> Iterator[Row]:
    """The rows of plain replays, on the wall."""
    for table in tables:
        for row in table:
            steady = not row["op"].startswith("first call")
            if steady and row["variant"] == "graph" and row["quantity"] == "step_wall":
                yield row


@claim(MAP, TRAINING)
def cuda_graphs_are_faster(chains: Table, steps: Table) -> Finding:
    """In every cell, whatever its kernels' duration, the replay is at least 1.5 times as fast on
    the wall.
    """
    cells = [
        ({"kernels": kernel_class(row.get("kernel_s")), "work": row["work"]}, row)
        for row in _replays(chains, steps)
    ]
    said = "Time of the loop over that of the replay, by a kernel's mean duration"
    return gains_in(cells, CLAIMED, said)


@claim(TRAINING, POOLS)
def cuda_graphs_memory_neutral(steps: Table, pools: Table) -> Finding:
    """What the allocator holds with the graph lies within 10 % of what it holds without.

    Of a training step all that is reserved counts, of forward passes what comes on top of the
    model. Bytes are counted, not timed: they have no interval.
    """
    cases = []
    for row in _replays(steps):
        where = {"kind": STEP, "case": row["op"]}
        if reason := why_not(row):
            cases.append(Case(where, None, why=reason))
            continue
        eager = steps.row("eager", op=row["op"], quantity="step_wall")
        cases.append(_held(where, row.get("reserved_bytes"), eager.get("reserved_bytes")))
    eager_bytes = {row["graphs"]: row.get("pool_bytes") for row in pools if row["way"] == "eager"}
    for row in pools:
        if row["way"] == "eager":
            continue
        where = {"kind": KINDS[row["way"]], "case": row["variant"]}
        if row.get("note"):
            cases.append(Case(where, None, why=row["note"]))
            continue
        cases.append(_held(where, row.get("pool_bytes"), eager_bytes.get(row["graphs"])))
    seen = {
        kind: [c.measured.value for c in cases if c.measured and c.where["kind"] == kind]
        for kind in (STEP, *KINDS.values())
    }
    said = "; ".join(f"{kind} {between(values)}" for kind, values in seen.items() if values)
    return across(cases, f"Bytes held with graphs over bytes held without: {said}." if said else "")


def _held(where: dict, above: float | None, below: float | None) -> Case:
    """Whether two numbers of bytes are about the same."""
    if units.missing(above) or units.missing(below) or not below:
        return Case(where, None, why="nobody counted the allocator's bytes")
    ratio = above / below
    seen = Measured(ratio, ratio, ratio)
    return Case(where, within(seen, 1 - NEAR, 1 + NEAR), seen)
