"""What the seed says of each level of the memory, and what the ladder shows beside it."""

from collections.abc import Sequence
from itertools import pairwise

from anatomy.chapters.memory_ladder.judged import LATENCIES, RATES
from anatomy.claims import Cases, Finding, Measured, Need, answer, claim
from anatomy.claims.findings import NOT_MEASURABLE, Unmeasured
from anatomy.claims.needs import CEILINGS, best
from anatomy.claims.table import Table, known, quotient
from anatomy.judge import limits
from anatomy.judge.rows import Row
from anatomy.table import units

BANDWIDTH, LATENCY = Need("memory_ladder.bandwidth"), Need("memory_ladder.latency")
LEVELS = Need("memory_ladder.levels")
# Card that the figures of the seed's Day 14 are of, and its datasheet.
REFLECTION_GPU, REFLECTION_SHEET = "A100", "nvidia-a100-80-sxm"
L1, L2 = 1, 2  # levels of the curve of reads by all SMs, counted from the fastest
OF_ALL = "read by all"


def _levels(table: Table, curve: str, least: int = 1) -> list[Row]:
    """The rows of the levels that a curve has, from the smallest working sets to the largest."""
    found = [row for row in table.select(op=f"{curve}, levels") if row.get("upto_bytes")]
    if len(found) < least:
        raise Unmeasured(f"{least} levels of '{curve}' are asked for; {len(found)} were found.")
    return found


def _rate(table: Table, number: int) -> Measured:
    """The bandwidth on a level, from the lowest of its working sets to the highest."""
    return _fitted(_levels(table, OF_ALL, number)[number - 1])


def _fitted(level: Row, columns: Sequence[str] = RATES, unit: str = "B/s") -> Measured:
    return Measured(*(level[name] for name in columns), unit)


def _on_the_card_meant(table: Table, found: Measured, claimed: float, which: str = "") -> Finding:
    said = f"Here it is {found.text}{which}."
    if REFLECTION_GPU not in table.machine.get("gpu", ""):
        why = f"The figure is of an {REFLECTION_GPU}, another card. {said}"
        return Finding(NOT_MEASURABLE, why, found)
    return answer(found.near(claimed), said, found)


@claim(LEVELS)
def register_bandwidth(levels: Table) -> Finding:
    """Registers deliver three operands of 4 bytes for each FP32 multiply-add: on the card meant, at
    its datasheet's peak, that is within 10 % of the claimed bandwidth."""
    meant = limits.datasheets()[REFLECTION_SHEET].flops_per_s["fp32"] / 2 * 12
    found = Measured.counted(meant, "B/s", recorded=False)
    here = levels.row("registers").get("peak_rate")
    seen = f"By the {REFLECTION_GPU}'s datasheet it is {units.rate(meant, 'B/s')}"
    return answer(found.near(20e12), f"{seen}; here {units.rate(here, 'B/s')}, likewise.", found)


@claim(BANDWIDTH)
def shared_memory_bandwidth(bandwidth: Table) -> Finding:
    """Reads from L1, which shared memory is a part of, lie within 10 % of it, on the card meant."""
    return _on_the_card_meant(bandwidth, _rate(bandwidth, L1), 19e12)


@claim(BANDWIDTH)
def l2_bandwidth(bandwidth: Table) -> Finding:
    """Reads of one set by all SMs, too large for L1, lie within 10 % of it, on the card meant. One
    fetch may serve several SMs, so the L2 itself delivers this or less."""
    which = " at SMs that all read the same lines"
    return _on_the_card_meant(bandwidth, _rate(bandwidth, L2), 6e12, which)


@claim(CEILINGS)
def hbm_bandwidth(ceilings: Table) -> Finding:
    """The best copy lies within 10 % of the claimed bandwidth, on the card that is meant."""
    return _on_the_card_meant(ceilings, best(ceilings, "copy", "bytes"), 2e12)


@claim(LEVELS)
def registers_are_smallest(levels: Table) -> Finding:
    """Of all SMs together, or of one, registers hold less than every other level."""
    known(levels.row("registers"), "gpu_bytes", "The registers are not known.")
    held = {row["variant"]: row["gpu_bytes"] for row in levels if row.get("gpu_bytes")}
    mine = held.pop("registers")
    seen = ", ".join(f"{name} {units.byte_count(size)}" for name, size in held.items())
    over = Measured.counted(mine / held["shared memory"])
    said = f"In all, registers hold {units.byte_count(mine)}; {seen}."
    return answer(all(mine < size for size in held.values()), said, over)


def _of_size(levels: Table, claimed: dict[str, float]) -> Finding:
    cases = Cases()
    for name, size in claimed.items():
        with cases.at(level=name) as case:
            here = known(levels.row(name), "gpu_bytes", "The device does not say.")
            case(abs(here / size - 1) <= 0.1, Measured.counted(here / size), units.byte_count(here))
    if REFLECTION_GPU not in levels.machine.get("gpu", ""):
        said = f"The figure is of an {REFLECTION_GPU}. Here it is {cases.said(' and ')}."
        return Finding(NOT_MEASURABLE, said)
    return cases.finding(f"Here it is {cases.said(' and ')}.")


@claim(LEVELS)
def sram_is_20_mb(levels: Table) -> Finding:
    """L1 and shared memory of all SMs are within 10 % of it, on the card that is meant."""
    return _of_size(levels, {"L1 and shared memory": 20 * 2**20})


@claim(LEVELS)
def l2_is_40_mb(levels: Table) -> Finding:
    """The L2 cache and the HBM are within 10 % of it, on the card that is meant."""
    return _of_size(levels, {"L2": 40 * 2**20, "HBM": 80 * 2**30})


@claim(BANDWIDTH, topic="memory hierarchy", measures="rate of a level / of the next")
def reads_have_three_levels(bandwidth: Table) -> Finding:
    """Reads from L1, of lines in the L2 that all SMs read, and from HBM come at three rates, each
    at least 1.5 times as fast as the next.

    Of reads by all SMs the first two levels, L1 and L2; of reads in parts the last one, HBM: a set
    that all SMs read never shows HBM's rate, for what one of them fetched serves the others."""
    found = _levels(bandwidth, OF_ALL)[:L2] + _levels(bandwidth, "read in parts")[-1:]
    rates, cases = [_fitted(row) for row in found], Cases()
    for place, (near, far) in enumerate(pairwise(rates), 1):
        with cases.at(step=place) as case:
            case(quotient(near, far).at_least(1.5), quotient(near, far))
    return cases.finding(f"The rates: {', '.join(each.text for each in rates)}.")


@claim(LATENCY, topic="memory hierarchy", measures="latency of the last level / of the first")
def hbm_is_ten_times_as_far(latency: Table) -> Finding:
    """A load from HBM takes ten times as long as one from L1, or more.

    The latency of the largest working sets over that of the smallest is 10 or more."""
    levels = _levels(latency, "chase")
    near, far = (_fitted(levels[at], LATENCIES, "s") for at in (0, -1))
    over = quotient(far, near)
    return answer(over.at_least(10), f"{far.text} after {near.text}: {over.text}.", over)


@claim(BANDWIDTH, topic="memory hierarchy", measures="bandwidth of one pass a launch / of many")
def one_pass_hides_the_cache(bandwidth: Table) -> Finding:
    """A kernel that reads a working set in the L2 only once gets less than three quarters of what
    many passes in one launch get.

    Best rate of one pass a launch, over sets of at most the L2's level, to the rate of that, at
    which all SMs read the same lines."""
    many = _rate(bandwidth, L2)
    inside = _levels(bandwidth, OF_ALL)[L2 - 1]["upto_bytes"]
    every = bandwidth.select(op="read once")
    fits = [row for row in every if (row.get("working_set_bytes") or 0) <= inside]
    once = best(Table(fits, bandwidth.params), "read once", "bytes")
    over = quotient(once, many)
    return answer(over.at_most(0.75), f"{once.text} in one pass, {many.text} in many.", over)


@claim(
    LATENCY,
    LEVELS,
    topic="memory hierarchy",
    measures="longest chain on the L2's level / size of the L2",
)
def l2_is_full_early(latency: Table, levels: Table) -> Finding:
    """A chain of loads by one thread outgrows the L2 before its reported size.

    Loads of a chain no longer than the L2 take at least 1.5 times as long as the L2's."""
    size = levels.row("L2").get("gpu_bytes") or 0
    level = _levels(latency, "chase", L2)[L2 - 1]
    slow = [
        row
        for row in latency.select()
        if level["upto_bytes"] < (row.get("working_set_bytes") or 0) <= size
        and (row.get("latency_s") or 0) >= 1.5 * level["latency_s"]
    ]
    last = level["upto_bytes"]
    said = f"The level ends after {units.byte_count(last)}, of {units.byte_count(size)}."
    return answer(bool(slow), said, Measured.counted(last / size))
