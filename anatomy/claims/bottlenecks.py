"""What the seed says of profiling: the kinds of bottleneck, and what one profiled call shows."""

from anatomy import units
from anatomy.claims import Case, Finding, Need, across, claim, within
from anatomy.claims.table import Table, over_control, why_not
from anatomy.rows import Row

# The kinds that the seed knows.
THREE = ("compute", "memory", "launch")
# What is taken out must have cost this share of the step, or it was not what held it back.
LEAST = 0.10
FIRST, STEADY = 1, (20, 21, 22)
SIDES = {"host": "the host", "device": "the GPU"}


@claim(Need("bottlenecks.confusion"))
def three_bottlenecks(confusion: Table) -> Finding:
    """No work built to wait, or to want for input, is 10 % faster without that and nothing else.

    Such work is a fourth kind where the same result without the wait, or without the loading,
    takes at least so much less. A collective needs several GPUs.
    """
    own = [row for row in confusion if row.get("role") == "control"]
    cases, seen = [], []
    for row in [each for each in confusion if each.get("note") and each.get("expected")]:
        if row["expected"] not in THREE:
            cases.append(Case({"kind": row["expected"], "work": row["op"]}, None, why=row["note"]))
    for row in own:
        if row.get("expected") in (None, *THREE):
            continue
        where = {"kind": row["expected"], "work": row["op"]}
        beside = next((each for each in confusion if _is_without(each, row["op"])), None)
        if reason := why_not(row) or (why_not(beside) if beside else "nothing without it ran"):
            cases.append(Case(where, None, why=reason))
            continue
        ratio = over_control(beside)
        least = within(ratio, 0.0, 1.0 - LEAST)
        cases.append(Case(where, None if least is None else not least, ratio))
        seen.append(f"{row['op']} (built for {row['expected']}) {ratio.text}")
    named = [row for row in own if row.get("expected") and row.get("found")]
    ours = sum(row["found"] == row["expected"] for row in named)
    theirs = sum(row.get("seed_says") == row["expected"] for row in named)
    times = f"Time of a step without its cause over that with it: {'; '.join(seen)}."
    told = (
        f" Of {len(named)} workloads of known bottleneck the classifier named {ours} as built, "
        f"and the three kinds {theirs}."
    )
    return across(cases, (times if seen else "Nothing of another kind was measured.") + told)


def _is_without(row: Row, op: str) -> bool:
    return row.get("op") == op and row.get("variant") == "without"


@claim(Need("bottlenecks.profiled_call"))
def profile_one_call(profiled: Table) -> Finding:
    """What took longest in the profile of call 1 takes longest in calls 20 to 22 too.

    Of each model, on the host and on the GPU; where the later calls differ among themselves it is
    undecided.
    """
    cases, seen = [], []
    for model in dict.fromkeys(row["model"] for row in profiled):
        calls = {row["call"]: row for row in profiled if row["model"] == model}
        for side, words in SIDES.items():
            where = {"model": model, "side": words}
            tops = [calls[number].get(f"top_{side}") for number in STEADY]
            first = calls[FIRST].get(f"top_{side}")
            if first is None or None in tops:
                cases.append(Case(where, None, why=f"nothing of {words} was profiled"))
                continue
            outcome = first == tops[0] if len(set(tops)) == 1 else None
            cases.append(Case(where, outcome))
            seen.append(_told(model, side, calls))
    return across(cases, f"What took longest: {'; '.join(seen)}.")


def _told(model: str, side: str, calls: dict[int, Row]) -> str:
    """The longest of the first call and of a later one, each with its share, in a sentence."""

    def one(row: Row) -> str:
        share = units.percent(row.get(f"top_{side}_share"))
        return f"{_short(row[f'top_{side}'])} ({share} of {units.seconds(row.get(f'{side}_s'))})"

    return (
        f"{model} on {SIDES[side]}: {one(calls[FIRST])} in call {FIRST}, "
        f"{one(calls[STEADY[0]])} in call {STEADY[0]}"
    )


def _short(name: str) -> str:
    """A kernel's name without what makes it long."""
    plain = name.removeprefix("void ").partition("<")[0].partition("(")[0]
    return plain if len(plain) <= 60 else f"{plain[:57]}..."
