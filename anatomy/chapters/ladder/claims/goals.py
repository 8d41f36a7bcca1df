"""The goals that the ladder was built to reach: a rung against the best bfloat16 matmul of its own
run, and FP8 in PyTorch and Triton against Transformer Engine."""

from collections.abc import Sequence
from dataclasses import replace

from anatomy.chapters.ladder.claims.rungs import STEP, TRAINING, WIDTHS
from anatomy.chapters.ladder.shown import rungs
from anatomy.claims import Cases, Finding, Unmeasured, claim
from anatomy.claims.table import Table, quotient, rate_of, ratio, why_not
from anatomy.judge.rows import Row
from anatomy.table import units

NEEDS = dict(zip(WIDTHS, TRAINING, strict=True))
CEILING = f"{rungs.CEILING}bf16"
ENGINE, OURS = "4_transformer_engine", "5_fastest"
GOAL = {
    "place": "a goal of this site, set on 21 November 2026 before it was measured",
    "topic": "the ladder",
}
REWORDED = (
    "a goal of this site, set on 21 November 2026 before it was measured as one of PyTorch alone; "
    '"and Triton" was added that day after the first recording'
)
# Errors of two ways count as equal up to a tenth: they round at other places.
AS_FAR = 1.1
# A loss may come out right by luck; below what rounding to bfloat16 may move it by, it is no worse.
LOSS_NO_WORSE = 2**-8


@claim(NEEDS[4096], number="85 %", claimed=(0.85, 1.0), unit="share", **GOAL)
def ladder_goal_at_4096(table: Table) -> Finding:
    """At width 4096 the best bf16 rung reaches 85 % or more of the card's best bf16 matmul in the
    same run.

    TFLOP/s of the fastest bf16 rung over those of the fastest matmul, at width 4096."""
    return _of_ceiling(table, 0.85)


@claim(NEEDS[1024], number="65 %", claimed=(0.65, 1.0), unit="share", **GOAL)
def ladder_goal_at_1024(table: Table) -> Finding:
    """At width 1024 the best bf16 rung reaches 65 % or more of the card's best bf16 matmul in the
    same run.

    TFLOP/s of the fastest bf16 rung over those of the fastest matmul, at width 1024."""
    return _of_ceiling(table, 0.65)


@claim(*NEEDS.values(), **GOAL | {"place": REWORDED})
def ladder_goal_beyond_engine(*tables: Table) -> Finding:
    """FP8 in PyTorch and Triton is faster than Transformer Engine's own layer under its best
    recipe, in the same run, at an equal error of loss and gradients.

    The fastest way of rung 5 in FP8 with no larger error, over the fastest recipe of rung 4."""
    cases = Cases()
    for table in tables:
        width = table.params["width"]
        with cases.at(width=width) as case:
            theirs = _fastest(_steps(table, "fp8", ENGINE), "Transformer Engine in FP8")
            mine = _steps(table, "fp8", OURS)
            equal = [row for row in mine if not why_not(row) and _no_worse(row, theirs)]
            ours = _fastest(equal or mine, "Rung 5 in FP8")
            over = ratio(ours, theirs)
            pair = f"{ours['variant']} takes {over.text} of the time of {theirs['variant']}"
            errors = "at an equal error" if equal else "at a larger error"
            beside = _besides_attention(ours, theirs)
            seen = f"width {width}: {pair}, {errors} of loss and gradients{beside}"
            case(over.at_most(1.0) if equal else False, over, seen)
    seen = cases.said()
    return cases.finding(f"{seen[:1].upper()}{seen[1:]}.")


def _of_ceiling(table: Table, least: float) -> Finding:
    """Share of the best matmul of the same run that the fastest bf16 rung reaches."""
    best = _fastest(_steps(table, "bf16"), "No rung in bf16")
    products = [row for row in table.select(op=CEILING) if not why_not(row)]
    if not products:
        raise Unmeasured("The best matmul of this run was not measured.")
    product = max(products, key=lambda row: row["flops"] / row["median_s"])
    rates = [rate_of(row, "flops", "FLOP/s") for row in (best, product)]
    share = replace(quotient(*rates), unit="share")
    reached, top = (units.rate(rate.value, rate.unit) for rate in rates)
    cases = Cases()
    with cases.at() as case:
        case(share.at_least(least), share)
    return cases.finding(
        f"{best['variant']} reaches {share.text} of the best matmul: {reached} of {top} "
        f"({product['variant']}).{_masked(best)}"
    )


def _masked(best: Row) -> str:
    """The same share without the half of attention that the causal mask hides."""
    if units.missing(share := best.get("executed_share")):
        return ""
    return f" Without the half of attention that the mask hides it is {units.percent(share)}."


def _besides_attention(ours: Row, theirs: Row) -> str:
    """Time of all kernels but attention's over that of the other way's, by their profiles: both
    call the same kernels of cuDNN, and what stands around them is no matter of FP8."""
    parts = [(row.get("busy_s"), row.get("attention_s")) for row in (ours, theirs)]
    if any(map(units.missing, sum(parts, ()))):
        return ""
    mine, other = (busy - attention for busy, attention in parts)
    if other <= 0:
        return ""
    return f"; by one profile, without attention's kernels {units.ratio(mine / other)}"


def _steps(table: Table, format: str, rung: str | None = None) -> list[Row]:
    """The rows of steps whose matmuls are in a format, of one rung or of all, measured or not."""
    steps = table.select(op=STEP) if rung is None else table.select(op=STEP, rung=rung)
    return [row for row in steps if rungs.format_of(row) == format]


def _fastest(found: Sequence[Row], what: str) -> Row:
    """The fastest of rows that could be measured; Unmeasured, as the first one says, if none is."""
    there = [row for row in found if not why_not(row)]
    if not there:
        reason = why_not(found[0]) if found else "it is not in the recording"
        raise Unmeasured(f"{what} has no time: {reason.rstrip('.')}.")
    return min(there, key=lambda row: row["median_s"])


def _no_worse(ours: Row, theirs: Row) -> bool:
    """Whether neither error of one way is larger than another's, up to what counts as equal."""
    loss = max(AS_FAR * theirs["loss_error"], LOSS_NO_WORSE)
    gradients = AS_FAR * theirs["gradient_error"]
    return ours["loss_error"] <= loss and ours["gradient_error"] <= gradients
