"""What the seed says of profiling: the kinds of bottleneck, and what one profiled call shows."""

from collections.abc import Mapping
from dataclasses import replace

from anatomy.claims import Case, Cases, Finding, Measured, Need, Unmeasured, claim
from anatomy.claims.table import Table, over_control, trusted
from anatomy.judge.rows import Row
from anatomy.table import kernel_names, units

THREE = ("compute", "memory", "launch")  # the kinds that the seed knows
LEAST = 0.10  # share of the step that what is taken out must have cost, or it held nothing back
FIRST, STEADY = 1, (20, 21, 22)
SIDES = {"host": "the host", "device": "the GPU"}
# Work that runs other kernels when it does not wait, so that its ratio is not the wait's alone:
# `nonzero_static` neither counts first nor brings the count to the host.
NOT_ALONE = ("nonzero in every round",)


@claim(Need("bottlenecks.confusion"))
def three_bottlenecks(confusion: Table) -> Finding:
    """No work built to wait, or to want for input, is 10 % faster without that and nothing else.

    Such work is a fourth kind where the same result without its cause takes that much less.
    """
    cases, beside = Cases(), Cases()
    others = [each for each in confusion if each.get("expected") not in (None, *THREE)]
    cases += [Case(_kind(row), None, why=row["note"]) for row in others if row.get("note")]
    for row in [each for each in others if each.get("role") == "control"]:
        with (beside if row["op"] in NOT_ALONE else cases).at(**_kind(row)) as case:
            ratio = over_control(_without(confusion, trusted(row)))
            least = ratio.at_most(1.0 - LEAST)
            seen = f"{row['op']} ({row['expected']}) {ratio.text}"
            case(None if least is None else not least, ratio, seen)
    # What could not be measured is a case like all others.
    cases += [case for case in beside if case.why]
    kinds = {case.where["kind"] for case in cases if case.outcome is False}
    times = f"Time of a step with one cause taken out, over that with it: {cases.said()}."
    said = times if cases.said() else "Nothing of another kind was measured."
    if kinds:
        are = "is" if len(kinds) == 1 else "are"
        said += f" So {' and '.join(sorted(kinds))} {are} beside the three."
    if beside.said():
        said += f" Not counted, because other kernels run without it: {beside.said()}."
    finding = cases.finding(f"{said} {_names(confusion.select(role='control'))}")
    decided = any(case.outcome is not None for case in cases)
    count = Measured.counted(float(len(THREE) + len(kinds)), "count")
    return replace(finding, measured=count if decided else None)


def _kind(row: Row) -> dict[str, str]:
    return {"kind": row["expected"], "work": row["op"]}


def _without(confusion: Table, row: Row) -> Row:
    """The row of the same work without its cause; Unmeasured is raised where there is none."""
    if found := confusion.select(op=row["op"], variant="without"):
        return found[0]
    raise Unmeasured("nothing without it ran")


def _names(own: list[Row]) -> str:
    """How many workloads each judge called what they were built as, in a sentence."""
    named = [row for row in own if row.get("expected") and row.get("found")]
    ours = sum(row["found"] == row["expected"] for row in named)
    theirs = sum(row.get("seed_says") == row["expected"] for row in named)
    nameable = sum(row["expected"] in THREE for row in named)
    kinds = f"the three kinds named {theirs}, of {nameable} that they have a name for"
    return f"Of {len(named)} workloads of known bottleneck diagnose named {ours} as built; {kinds}."


@claim(Need("bottlenecks.profiled_call"))
def profile_one_call(profiled: Table) -> Finding:
    """What took longest in the profile of call 1 takes longest in calls 20 to 22 too.

    Of each model, on host and GPU; undecided where only some later calls name what the first did.
    """
    cases = Cases()
    for model in profiled.distinct("model"):
        calls = {row["call"]: row for row in profiled.select(model=model)}
        for side, words in SIDES.items():
            with cases.at(model=model, side=words) as case:
                first, *tops = (calls[number].get(f"top_{side}") for number in (FIRST, *STEADY))
                if None in (first, *tops):
                    raise Unmeasured(f"nothing of {words} was profiled")
                same = [top == first for top in tops]
                outcome = all(same) if len(set(same)) == 1 else None
                case(outcome, said=_longest(model, side, calls))
    return cases.finding(f"What took longest: {cases.said()}.")


def _longest(model: str, side: str, calls: Mapping[int, Row]) -> str:
    """The longest of the first call and of the later ones, and their times, in a sentence."""
    first, later = calls[FIRST], [calls[number] for number in STEADY]
    names = list(dict.fromkeys(_short(row[f"top_{side}"]) for row in later))
    share = units.percent(first.get(f"top_{side}_share"))
    one, own = units.seconds(first.get(f"{side}_s")), _short(first[f"top_{side}"])
    ends = (pick(row.get(f"{side}_s") or 0.0 for row in later) for pick in (min, max))
    rest = " to ".join(dict.fromkeys(map(units.seconds, ends)))
    what = "the same" if names == [own] else " or ".join(names)
    then = f"{what} in calls {STEADY[0]} to {STEADY[-1]} (of {rest})"
    return f"{model} on {SIDES[side]}: {own} in call {FIRST} ({share} of {one}), {then}"


def _short(name: str) -> str:
    """An operator's name as it is; a kernel's without what makes it long."""
    return name if name.startswith("aten::") else kernel_names.short(name)
