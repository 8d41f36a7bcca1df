"""What blocks in waves, and warps that wait, do to the time of a kernel."""

from anatomy.chapters.occupancy.requirements import ALONE, TOGETHER
from anatomy.claims import Finding, Measured, Need, Unmeasured, answer, claim
from anatomy.claims.table import Table, known

STAIRCASE, THROUGHPUT = Need("occupancy.staircase"), Need("occupancy.throughput")
NEARLY = 1.05  # as fast, to who writes the kernel
ONE, MANY = "1 load at a time", "16 loads at a time"


def _more_over_full(staircase: Table, op: str) -> Measured:
    """Time of a launch of one block more than run at once, over that of as many."""
    names = {row.get("edge"): row["variant"] for row in staircase.select(op=op)}
    if not {"full", "one more"} <= set(names):
        raise Unmeasured(next(iter(staircase)).get("note") or "the times do not go in steps")
    return staircase.ratio(names["one more"], names["full"], op=op)


@claim(STAIRCASE, topic="occupancy")
def staircase_tells_the_sms(staircase: Table) -> Finding:
    """The steps in the run time over the number of blocks tell how many SMs a GPU has.

    Blocks at once, fitted to the times alone, are the driver's SMs times the blocks of each."""
    row, sms = staircase.measured("1 block", op=ALONE), staircase.machine.get("sm_count")
    known(row, "at_once", "the times do not go in steps")
    ends = (row[f"at_once{end}"] / row["blocks_per_sm"] for end in ("", "_low", "_high"))
    found = Measured(*ends, "count")
    seen = f"The times say {found.value:g} SMs ({found.low:g} to {found.high:g}); there are {sms}."
    return answer(found.low <= sms <= found.high, seen, found)


@claim(STAIRCASE, topic="occupancy")
def one_block_more_costs_a_wave(staircase: Table) -> Finding:
    """One block more than fits at once doubles the time of a launch.

    One block more than run at once takes twice as long as these, within 10 %."""
    ratio = _more_over_full(staircase, ALONE)
    return answer(ratio.near(2.0), f"One block more: {ratio.text}.", ratio)


@claim(STAIRCASE, topic="occupancy")
def room_hides_the_step(staircase: Table) -> Finding:
    """Where SMs have room for several blocks, one block more costs no further wave.

    Without shared memory, the same one block more takes at most 5 % longer."""
    ratio = _more_over_full(staircase, TOGETHER)
    return answer(ratio.at_most(NEARLY), f"One block more, with room for it: {ratio.text}.", ratio)


def _at(throughput: Table, loads: str, share: float) -> str:
    """The variant of so many loads at a time whose occupancy is nearest to a share."""
    found = [row for row in throughput.select(loads_each=loads) if row.get("occupancy")]
    if not found:
        raise Unmeasured(next(iter(throughput)).get("note") or "no such row")
    return min(found, key=lambda row: abs(row["occupancy"] - share))["variant"]


@claim(THROUGHPUT, topic="occupancy")
def warps_hide_latency(throughput: Table) -> Finding:
    """Where each thread waits for one load at a time, twice the warps read twice as fast.

    From a quarter of the occupancy to half of it, the rate grows 1.8 times or more."""
    gain = throughput.ratio(_at(throughput, ONE, 0.25), _at(throughput, ONE, 0.5))
    seen = f"Half of the occupancy over a quarter of it: {gain.text} as fast."
    return answer(gain.at_least(1.8), seen, gain)


@claim(THROUGHPUT, topic="occupancy")
def half_the_occupancy_is_enough(throughput: Table) -> Finding:
    """With enough loads at a time, half the occupancy reads memory as fast as all of it.

    With 16 loads at a time, half the occupancy takes at most 5 % longer than all of it."""
    ratio = throughput.ratio(*(_at(throughput, MANY, share) for share in (0.5, 1.0)))
    return answer(ratio.at_most(NEARLY), f"Half over all of it: {ratio.text}.", ratio)


@claim(THROUGHPUT, topic="occupancy")
def more_loads_beat_more_warps(throughput: Table) -> Finding:
    """A quarter of the occupancy with many loads at a time beats all of it with one.

    16 loads at a time at a quarter of the occupancy read faster than one at full occupancy."""
    gain = throughput.ratio(_at(throughput, ONE, 1.0), _at(throughput, MANY, 0.25))
    seen = f"{MANY} at a quarter over one at full occupancy: {gain.text} as fast."
    return answer(gain.at_least(1.0), seen, gain)
