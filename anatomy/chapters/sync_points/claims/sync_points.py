"""What the seed says of synchronization points, put to loops over matmuls of many sizes."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise, permutations
from math import exp, log

from anatomy.claims import (
    FAILS,
    INCONCLUSIVE,
    NOT_MEASURABLE,
    Cases,
    Finding,
    Measured,
    Need,
    Unmeasured,
    answer,
    claim,
    seeds,
)
from anatomy.claims.findings import span
from anatomy.claims.table import Table, decides, over_control, quotient, time_of, trusted, why_not
from anatomy.judge.rows import Row
from anatomy.table import units

BENCH, LOOP = Need("sync_points.bench"), Need("sync_points.training_loop")
SYNC, ITEM, DIRECT, ASYNC = "torch.cuda.synchronize()", "t.item()", "t.numpy()", "no wait"
WAYS = (SYNC, ITEM, "print(t)", "t.cpu()")  # the ways that the seed timed or named in one breath
# The seed's two operations by their time, whatever product takes as long here, in seconds.
SMALL_S, BIG_S = 18e-6, 25e-3
ALL_OF_IT = 0.9  # after a rest a product runs at a clock that is higher by a few percent
AS_WELL_USED = 1.02  # two loops use the GPU equally well up to this
LEVELS = (0.5, 0.1, 0.01)
READ_OFF = 0.1  # of a crossing: it lies somewhere between two sizes, and is known to a tenth


def products(bench: Table) -> list[Row]:
    """The rows of the matmuls alone, sizes rising; Unmeasured if none of them was measured."""
    controls = bench.select(role="control")
    rows = [row for row in controls if row.get("op") == f"product {row.get('side')}"]
    there = [row for row in rows if not why_not(row)]
    if not there:
        raise Unmeasured(why_not(rows[0]) if rows else "there is no such row")
    return sorted(there, key=lambda row: row["side"])


def share_of(row: Row) -> Measured:
    """What a line takes of an iteration: 1 - 1 / ratio, whose noise floor belongs to the ratio."""
    ratio = over_control(row)
    wide = 1 + ratio.floor
    ends = (1 - wide / ratio.low, 1 - 1 / (ratio.high * wide))
    return Measured(1 - 1 / ratio.value, *ends, "share", exact=ratio.exact)


def _waited(row: Row) -> Measured:
    """What an iteration takes more than one without a wait, in seconds."""
    trusted(row)
    if any(units.missing(row.get(name)) for name in ("wait_s", "wait_low_s", "wait_high_s")):
        raise Unmeasured("too few blocks were measured for an interval")
    # What the control differs from itself, of the whole iteration, is noise in the difference.
    noise = (row.get("noise_floor") or 0.0) * row["median_s"]
    ends = (row["wait_low_s"] - noise, row["wait_high_s"] + noise)
    return Measured(row["wait_s"], *ends, "s", exact=decides(row))


def _told(taken: Measured) -> str:
    """A time or share that a line takes, in words; where it may be nothing, only a bound."""
    printed = units.percent if taken.unit == "share" else units.seconds
    value, low, high = map(printed, (taken.value, taken.low, taken.high))
    if taken.low > 0:
        return f"{value} [{low}, {high}]"
    return f"at most {high}" if taken.high > 0 else "nothing"


def _loop(bench: Table, product: Row, line: str) -> Row:
    return bench.row(line, op=f"loop {product['side']}")


def _loops(bench: Table, *lines: str) -> list[tuple[Row, ...]]:
    """Each matmul with the rows of its loops with these lines, where all could be measured."""
    found = [(each, *(_loop(bench, each, line) for line in lines)) for each in products(bench)]
    return [rows for rows in found if not any(map(why_not, rows))]


def _time_and_side(product: Row) -> str:
    return f"{units.seconds(product['median_s'])} (side {product['side']})"


@claim(BENCH)
def item_includes_pending_work(bench: Table) -> Finding:
    """Behind each matmul that outlasts its launch, the host is held for 0.9 of it at the least;
    how much longer is not asked."""
    cases = Cases()
    for product in products(bench):
        op = f"behind {product['side']}"
        queued, waited = bench.row("queue", op=op), bench.row("queue, item", op=op)
        if not (why_not(queued) or why_not(waited)) and product["low_s"] <= queued["high_s"]:
            continue  # over before the line is reached: it says nothing of waiting
        with cases.at(side=product["side"]) as case:
            trusted(queued)
            # The noise floor of this table is that of queueing, a small part of what is held here.
            noise = (queued.get("noise_floor") or 0.0) * queued["median_s"]
            taken = time_of(waited)
            held = quotient(replace(taken, floor=noise / taken.value), time_of(product))
            seen = f"{taken.text} behind one of {_time_and_side(product)}"
            case(held.at_least(ALL_OF_IT), held, seen)
    if not cases:
        return Finding(INCONCLUSIVE, "No matmul lasts longer here than it takes to queue it.")
    return cases.finding(f"Queueing a matmul and reading from it: {cases.said()}.")


@claim(LOOP, BENCH)
def item_doubles_runtime(loop: Table, bench: Table) -> Finding:
    """Training of one model or another with an .item() a step takes twice the time, or more.

    That it can is not refuted by models that don't: then it is undecided, for it was not seen. This
    is of 23 November 2026; until then it failed. A loop over nothing but matmuls is no training:
    the one that .item() slows down most stands beside it.
    """
    cases = Cases()
    for row in loop.select(variant="item each step"):
        with cases.at(model=row["model"]) as case:
            ratio = over_control(row)
            seen = f"{ratio.text} for the {row['model']} model"
            case(ratio.at_least(2.0), ratio, seen)
    beside = ""
    if loops := [row for _, row in _loops(bench, ITEM)]:
        most = over_control(max(loops, key=lambda row: row["ratio"])).text
        beside = f" A loop over nothing but matmuls takes up to {most} with it."
    found = cases.possible(
        f"Time of training with .item() in each step over that without: {cases.said(', ')}.{beside}"
    )
    if found.word == FAILS:
        seen = (f"not seen in {len(cases.measurable)} models",)
        found = replace(found, word=INCONCLUSIVE, short=seen)
    return found


@claim(BENCH)
def sync_costs_the_same(bench: Table) -> Finding:
    """At every size a synchronize adds 10 to 15 us, and at no two of them times whose intervals lie
    apart."""
    found = [(_waited(row), _time_and_side(product)) for product, row in _loops(bench, SYNC)]
    if len(found) < 2:
        return Finding(INCONCLUSIVE, "There are fewer than two sizes to compare.")
    each = [extra for extra, _ in found]
    least, most = min(each, key=lambda extra: extra.high), max(each, key=lambda extra: extra.low)
    claimed = [extra.within(10e-6, 15e-6) for extra in each]
    outcome = False if most.low > least.high else True if all(claimed) else None
    said = "; ".join(f"{_told(extra)} behind a matmul of {place}" for extra, place in found)
    # What is not told from nothing is no number of its own in the ledger.
    shown = span([extra for extra in each if extra.low > 0])
    return answer(outcome, f"What a synchronize adds to an iteration: {said}.", shown)


def _share_at(bench: Table, seconds: float, low: float, high: float) -> Finding:
    """Whether the share of a synchronize is in a range, at the matmul nearest, as a factor."""
    product = min(products(bench), key=lambda row: abs(log(row["median_s"] / seconds)))
    share = share_of(trusted(_loop(bench, product, SYNC)))
    inside = share.within(low, high)
    nearest = f"At a matmul of {_time_and_side(product)}, the nearest"
    evidence = f"{nearest}, a synchronize takes {_told(share)} of an iteration."
    if inside is None:
        evidence += (
            f" The number claimed is one from {units.percent(low)} to {units.percent(high)}. By "
            "the interval and the noise floor, shares inside of that and outside are possible."
        )
    return answer(inside, evidence, share)


@claim(BENCH)
def sync_is_1_percent_of_25_ms(bench: Table) -> Finding:
    """The share of a synchronize at the matmul nearest to 25 ms rounds to 1 %."""
    return _share_at(bench, BIG_S, 0.005, 0.015)


@claim(BENCH)
def sync_is_half_of_18_us(bench: Table) -> Finding:
    """The share of a synchronize at the matmul nearest to 18 us is 45 to 55 %."""
    return _share_at(bench, SMALL_S, 0.45, 0.55)


def _time_of_side(bench: Table, side: int, claimed_s: float) -> Finding:
    """A time on the card of the original suite; on another one it says nothing of the claim."""
    here = time_of(bench.measured("product", op=f"product {side}"))
    card = seeds.figure("fp16-2048", "matmul", "contiguous").gpu
    seen = f"Here it takes {here.text}. The README names no card; its suite ran on an {card}."
    if card.split()[-1] in bench.machine.get("gpu", ""):
        return answer(here.near(claimed_s), seen, here)
    return Finding(NOT_MEASURABLE, f"{seen} That is another card.", here)


@claim(BENCH)
def fp16_8192_is_25_ms(bench: Table) -> Finding:
    """The matmul alone, back to back, takes 25 ms to a tenth, on the original suite's card."""
    return _time_of_side(bench, 8192, BIG_S)


@claim(BENCH)
def fp16_512_is_18_us(bench: Table) -> Finding:
    """The matmul alone, back to back, takes 18 us to a tenth, on the original suite's card."""
    return _time_of_side(bench, 512, SMALL_S)


@claim(BENCH)
def numpy_synchronizes(bench: Table) -> Finding:
    """An iteration with the call takes longer than one without; an error is no synchronization."""
    row = bench.row(DIRECT)
    if not row.get("raised"):
        ratio = over_control(row)
        return answer(ratio.says("slower"), f"An iteration with it takes {ratio.text}.", ratio)
    by_hand = bench.row("t.cpu().numpy()", op="idle")
    beside = "" if why_not(by_hand) else f" By way of .cpu() it takes {time_of(by_hand).text}."
    return answer(False, f"It raises {row['note']}{beside}")


@claim(BENCH)
def async_is_fastest(bench: Table) -> Finding:
    """At each size, no way beats queueing, and none is slower than a synchronize."""
    cases, sides = Cases(), dict[str, list[str]]()  # what was found -> the sides at which it was
    for product in products(bench):
        op = f"loop {product['side']}"
        with cases.at(side=product["side"]) as case:
            beside = {way: bench.measured(way, op=op)["verdict"] for way in WAYS}
            to_sync = {way: bench.ratio(way, SYNC, op=op).verdict for way in WAYS if way != SYNC}
            worse = [way for way, word in to_sync.items() if word == "slower"]
            beaten = [way for way, word in beside.items() if word == "faster"]
            sure = {"slower"} >= set(beside.values()) and {"same", "faster"} >= set(
                to_sync.values()
            )
            case(False if worse or beaten else True if sure else None)
            slower = f"{', '.join(worse)} slower than a synchronize" if worse else ""
            faster = f"{', '.join(beaten)} faster than queueing" if beaten else ""
            order = "; ".join(filter(None, (faster, slower))) or "none out of that order"
            sides.setdefault(order, []).append(str(product["side"]))
    seen = " ".join(f"At side {', '.join(at)}: {order}." for order, at in sides.items())
    found, there = cases.finding(seen), len(cases.measurable)
    out = Measured.counted(cases.false / there, "share") if there else None
    return replace(found, measured=out)


@claim(BENCH)
def gap_means_utilisation(bench: Table) -> Finding:
    """Of two sizes with clearly different gaps, the one with the larger uses the GPU better.

    One pair that is the other way round refutes it, by 2 % of the time that the GPU is busy.
    """
    # With each product the share of an iteration without a wait in which it runs.
    found = [
        (over_control(row), quotient(time_of(product), time_of(control)), product)
        for product, control, row in _loops(bench, ASYNC, SYNC)
    ]
    if len(found) < 2:
        return Finding(INCONCLUSIVE, "There are fewer than two sizes to compare.")
    better, worse = [], []
    for wide, narrow in permutations(found, 2):
        if wide[0].low <= narrow[0].high * (1 + wide[0].floor + narrow[0].floor):
            continue  # no larger gap
        for ahead, behind, pairs in ((wide, narrow, better), (narrow, wide, worse)):
            if quotient(ahead[1], behind[1]).at_least(AS_WELL_USED):
                pairs.append((wide, narrow))
    if not better and not worse:
        seen = "No two sizes are told apart both by their gap and by how busy they keep the GPU."
        return Finding(INCONCLUSIVE, seen)
    pairs = worse or better
    wide, narrow = max(pairs, key=lambda pair: abs(log(pair[0][1].value / pair[1][1].value)))
    evidence = (
        f"{_gap(wide)}; {_gap(narrow)}. Of the pairs of sizes that differ in both, the larger "
        f"gap goes with the busier GPU in {len(better)} and with the idler one in {len(worse)}."
    )
    as_said = Measured.counted(len(better) / (len(better) + len(worse)), "share")
    return answer(not worse, evidence[0].upper() + evidence[1:], as_said)


def _gap(size: tuple[Measured, Measured, Row]) -> str:
    """A size with the ratio of its two loops, and how busy the one without a wait keeps the GPU."""
    ratio, used, product = size
    return (
        f"behind matmuls of {_time_and_side(product)} a synchronize makes an iteration take "
        f"{ratio.text} of its time without, in which the GPU is busy for "
        f"{units.percent(min(1.0, used.value))}"
    )


@claim(BENCH, topic="sync points", measures="share of an iteration that a readback takes")
def readback_share_falls(bench: Table) -> Finding:
    """Where the GPU is the bottleneck, what a readback takes of an iteration falls as the kernel
    grows, from more than half to less than a hundredth.

    Of the sizes that leave the GPU no pause: over half at the first, under 1 % at the last.

    With *q* to queue a kernel, *k* for the kernel and *r* for the line, the share is
    (q + r) / (q + k + r): over half at k = q, and falling from there on. At k = q either side may
    be named the bottleneck, so there the kernel is held against the iteration without the line.
    """
    loops = _loops(bench, ITEM, ASYNC)
    points = [
        (product, share_of(row))
        for product, row, free in loops
        if row.get("bound_by") == "GPU" or free["median_s"] <= AS_WELL_USED * product["median_s"]
    ]
    if len(points) < 2:
        return Finding(INCONCLUSIVE, "The GPU is the bottleneck at fewer than two sizes.")
    (first, most), (last, least) = points[0], points[-1]
    evidence = (
        f"It takes {_told(most)} of an iteration behind matmuls of {_time_and_side(first)} and "
        f"{_told(least)} behind those of {_time_and_side(last)}{_crossings(points)}."
    )
    shortest, share = loops[0][0], share_of(loops[0][1])
    if shortest is not first and share.high < most.low:
        evidence += " Behind shorter ones, where the host is the bottleneck, it takes less: "
        evidence += f"{_told(share)} at {_time_and_side(shortest)}."
    elif shortest is not first:
        evidence += (
            f" Behind the shortest, where the host is the bottleneck, it takes {_told(share)}."
        )
    ends = [most.within(LEVELS[0], 1.0), least.at_most(LEVELS[-1])]
    outcome = False if False in ends else None if None in ends else True
    if outcome is None and ends[1] is None:
        level = f"above {units.percent(LEVELS[-1])} or below"
        evidence += f" Whether the share behind the longest is {level} is not decided."
    return answer(outcome, evidence, most)


def _crossings(points: list[tuple[Row, Measured]]) -> str:
    """Between which matmuls the share falls through each of `LEVELS`, in words; not through one
    that no share is shown to be below, or above, though medians may lie on its two sides."""
    found = []
    for level in LEVELS:
        above = [row["median_s"] for row, share in points if share.low > level]
        below = [row["median_s"] for row, share in points if share.high < level]
        at = crossing(((row["median_s"], share.value) for row, share in points), level)
        if not above or not below or at is None or above[-1] > below[0]:
            continue
        ends = (1 - READ_OFF) * at, (1 + READ_OFF) * at
        found.append(
            f"{units.percent(level)} between {units.seconds(above[-1])} and "
            f"{units.seconds(below[0])} ({units.seconds(at, *ends)} by the medians)"
        )
    return f"; it falls through {', and '.join(found)}" if found else ""


def crossing(points: Iterable[tuple[float, float]], level: float) -> float | None:
    """Where a line falls through a level, between two points, along the logarithm of the first."""
    for (left, above), (right, below) in pairwise(points):
        if above >= level > below:
            part = (above - level) / (above - below)
            return exp(log(left) + part * (log(right) - log(left)))
    return None
