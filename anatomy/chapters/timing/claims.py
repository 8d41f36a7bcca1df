"""What each precaution of a measurement is worth, and how far equals differ."""

from anatomy.claims import Cases, Finding, Measured, Need, answer, claim
from anatomy.claims.table import Table, known
from anatomy.table import units

WAYS, EQUALS = Need("timing.ways"), Need("timing.equals")
OPS = ("GEMM", "addition")
LEAST = 1e-5  # of a stray: samples have five digits
ONE, AFTER, IN_TURN = "one sample each", "one after the other", "in turn"


@claim(WAYS, topic="method")
def without_a_wait_the_asking_is_timed(ways: Table) -> Finding:
    """A host clock without a wait times the asking: half of a GEMM's time or less.

    The time until the call of a GEMM returns is at most half of what the GEMM takes."""
    return ways.at_most(0.5, "perf_counter, no wait", op="GEMM")


@claim(WAYS, topic="method")
def events_alone_time_the_host(ways: Table) -> Finding:
    """A pair of events around one short call times the CPU: 1.5 times the kernel or more.

    An event pair around one small addition, with an empty queue, reads at least 1.5 times as
    much as one around many that were queued behind a sleep."""
    over, seen = ways.beside_control("events, one call", op="addition")
    return answer(over.at_least(1.5), seen, over)


@claim(WAYS, topic="method")
def without_a_flush_copies_look_faster(ways: Table) -> Finding:
    """A copy that fits the L2 cache comes out faster without a flush.

    A copy of 8 MiB back to back takes less time than one that finds the cache flushed."""
    return ways.at_most(1.0, "back to back", op="copy")


@claim(WAYS, topic="method")
def zeros_are_faster(ways: Table) -> Finding:
    """A GEMM of zeros comes out a twentieth faster or more than one of random numbers.

    The same GEMM of zeros takes at most 0.95 of one of random numbers, in the same blocks."""
    return ways.at_most(0.95, "zeros", op="values")


def _stray(equals: Table, op: str, way: str) -> float:
    return known(equals.row(way, op=op), "stray", "too few samples were taken")


@claim(EQUALS, topic="method")
def single_samples_differ_by_a_percent(equals: Table) -> Finding:
    """One sample of each makes two equals differ by 1 % or more in a twentieth of cases.

    The ratio of two neighbouring samples of one callable is 1 % from 1 or more in 5 % of pairs,
    for a large GEMM and for a small addition on the wall."""
    cases = Cases()
    for op in OPS:
        with cases.at(op=op) as case:
            stray = Measured.counted(_stray(equals, op, ONE), "share")
            case(stray.value >= 0.01, stray, f"{op} {stray.text}")
    return cases.finding(f"95 % of pairs differ by at most: {cases.said()}.")


@claim(EQUALS, topic="method")
def in_turn_equals_differ_less(equals: Table) -> Finding:
    """Of as many samples, equals taken in turn differ less than one after the other.

    What 95 % of comparisons stray by: twelve pairs in turn, over twelve samples after twelve."""
    cases = Cases()
    for op in OPS:
        with cases.at(op=op) as case:
            turn, after = (_stray(equals, op, way) for way in (IN_TURN, AFTER))
            over = Measured.counted(turn / max(after, LEAST))
            said = map(units.percent, (turn, after))
            case(turn < after, over, f"{op} {' over '.join(said)}")
    return cases.finding(f"In turn over one after the other: {cases.said()}.")
