"""What six ways to capture a function make of it, put to runs of each and to their times."""

from collections.abc import Iterable

from anatomy.claims import Case, Cases, Finding, Measured, Need, answer, claim
from anatomy.claims.table import Table, judged, known, over_control
from anatomy.judge.rows import Row

CATALOGUE, CALLS, CODE = (Need(f"capture.{name}") for name in ("catalogue", "calls", "code"))
TRACE, SCRIPT = "jit.trace", "jit.script"
ON_DATA = ("if on a tensor", "while on a tensor")
RIGHT = ("right", "graph break", "left to Python")
SMALL, LARGE = "small input", "large input"
# What each language calls what the code of x.cos().cos() does.
READS, WRITES, COSINES = ("tl.load(", "loadu("), (".store(",), ("cos(",)


def _among(outcomes: tuple[str, ...], rows: Iterable[Row]) -> Cases:
    """Whether what became of each function is one of the outcomes."""
    each = ((row["op"], row["outcome"]) for row in rows)
    return Cases(Case({"function": op}, it in outcomes, said=f"{op} {it}") for op, it in each)


@claim(CATALOGUE)
def trace_bakes_branches(catalogue: Table) -> Finding:
    """Of three functions with a branch or a loop jit.trace returns a wrong answer for an input that
    goes another way than the example."""
    branches = (*ON_DATA, "if on a shape")
    cases = _among(("wrong answer",), catalogue.select(variant=TRACE, op=branches))
    return cases.finding(f"Traced: {cases.said()}.")


@claim(CATALOGUE)
def jit_is_an_option(catalogue: Table) -> Finding:
    """jit.trace and jit.script are each right on one function or more, and each gives no warning
    that it is deprecated."""
    cases = Cases()
    for way in (TRACE, SCRIPT):
        rows = catalogue.select(variant=way)
        right = sum(row["outcome"] in RIGHT for row in rows)
        old = any(row["deprecated"] for row in rows)
        with cases.at(asked="whether it works", way=way) as case:
            case(right > 0, said=f"{way} is right on {right} of {len(rows)}")
        with cases.at(asked="whether it is kept up", way=way) as case:
            case(not old, said=f"{way} {'warns' if old else 'does not warn'} that it is deprecated")
    return cases.finding(f"{cases.said()}.")


@claim(CATALOGUE, topic="graph capture")
def compile_is_never_wrong(catalogue: Table) -> Finding:
    """torch.compile is right on all eight functions, on some of them in pieces.

    Of every function of the catalogue, compiled, both answers are right, and so is what it
    prints."""
    cases = _among(RIGHT, catalogue.select(variant="compile"))
    return cases.finding(f"Compiled: {cases.said()}.")


@claim(CATALOGUE, topic="graph capture")
def export_refuses_branches(catalogue: Table) -> Finding:
    """torch.export refuses a branch on data instead of guessing it.

    An if and a while on a tensor's value each raise an error when they are exported."""
    cases = _among(("error",), catalogue.select(variant="export", op=ON_DATA))
    return cases.finding(f"Exported: {cases.said()}.")


@claim(CALLS, topic="graph capture")
def a_graph_alone_saves_nothing(calls: Table) -> Finding:
    """A graph that is captured and not compiled runs no faster than eager.

    On a large input fx and export take at least 0.95 of the time of eager."""
    rows = [({"way": way}, calls.row(way, op=LARGE)) for way in ("fx.symbolic_trace", "export")]
    cases = judged(rows, lambda ratio: ratio.at_least(0.95))
    return cases.finding(f"Over eager: {cases.spans('way')}.")


@claim(CALLS, topic="graph capture")
def compiling_halves_a_large_call(calls: Table) -> Finding:
    """On a large input the compiled function is at least twice as fast as the eager one.

    Six operations on each element, in one kernel in place of six."""
    ratio = over_control(calls.row("compile", op=LARGE))
    return answer(ratio.at_most(0.5), f"Compiled over eager: {ratio.text}.", ratio)


@claim(CALLS, topic="graph capture")
def small_calls_gain_too(calls: Table) -> Finding:
    """On a small input, too, the compiled function is faster than the eager one.

    A thousand elements, where the host is what both wait for."""
    ratio = over_control(calls.row("compile", op=SMALL))
    return answer(ratio.says("faster"), f"Compiled over eager: {ratio.text}.", ratio)


@claim(CODE, topic="fusion")
def two_cosines_are_one_kernel(code: Table) -> Finding:
    """x.cos().cos() compiles to one read, two cosines and one write.

    Counted in the code of the kernel that the compiler wrote."""
    written = known(code.row("kernel"), "generated")
    reads, cosines, writes = (sum(map(written.count, each)) for each in (READS, COSINES, WRITES))
    seen = f"{reads} reads, {cosines} cosines, {writes} writes in its kernel."
    return answer((reads, cosines, writes) == (1, 2, 1), seen, Measured.counted(reads + writes))
