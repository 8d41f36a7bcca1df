"""Claims and tables have one verdict; what is left open counts for none."""

from dataclasses import replace

import numpy as np
import pytest

from anatomy import claims
from anatomy.claims import Case, Cases, Measured
from anatomy.claims.findings import span
from anatomy.claims.table import rate_of, time_of
from anatomy.table import intervals
from anatomy.table.intervals import Interval


@pytest.mark.parametrize(
    ("outcomes", "word"),
    [
        ((False, False, True, None), claims.HOLDS),
        ((False, False, None), claims.INCONCLUSIVE),
        ((False, False), claims.FAILS),
    ],
)
def test_what_can_be_holds_if_it_is_so_once(outcomes, word):
    found = Cases(Case({"n": n}, outcome) for n, outcome in enumerate(outcomes))
    assert found.possible("Seen.").word == word
    assert f"in {outcomes.count(True)} of {len(outcomes)} cases" in found.possible("").evidence
    assert Cases([Case({}, None, why="no")]).possible("").word == claims.NOT_MEASURABLE


@pytest.mark.parametrize(
    ("outcomes", "word"),
    [
        ((True, True, False), claims.FAILS),
        ((True, None), claims.INCONCLUSIVE),
        ((True, True), claims.HOLDS),
    ],
)
def test_a_sentence_about_every_case_fails_by_one(outcomes, word):
    found = Cases(Case({"n": n}, outcome) for n, outcome in enumerate(outcomes)).every("Seen.")
    assert found.word == word
    if word == claims.FAILS:
        assert found.condition == "so in 2 of 3 cases" and found.condition in found.evidence


def test_beside_what_is_undecided_nothing_is_said_to_be_all_but_so():
    several = {f"{op}_{size}": True for op in "abcd" for size in "12"}
    outcomes = several | {"a_1": False, "b_2": None}
    cases = (
        Case(dict(zip(("op", "size"), key.split("_"), strict=True)), each)
        for key, each in outcomes.items()
    )
    found = Cases(cases).finding("").condition
    assert "except" not in found and "always for c/d" in found and "6 of 8 cases" in found


# What a table calls a ratio to a claimed number decides on which side of that it lies.
@pytest.mark.parametrize("claimed", [1.0, 2.0])
def test_a_claimed_number_and_a_table_have_one_verdict(claimed):
    seed = 20261122
    print(f"seed {seed}")
    generator = np.random.default_rng(seed)
    for _ in range(1000):
        low, middle, high = sorted(np.exp(generator.normal(0, 0.02, 3)) * claimed)
        floor = generator.choice([0.0, 0.01])
        over = Interval(middle / claimed, low / claimed, high / claimed)
        word = intervals.verdict(over, floor)
        seen = Measured(middle, low, high, floor=floor, runs=(middle,))
        assert seen.at_least(claimed) is {"slower": True, "faster": False}.get(word)
        assert seen.at_most(claimed) is {"slower": False, "faster": True}.get(word)
        inverse = seen.inverse.at_most(1 / claimed)
        assert inverse is seen.at_least(claimed)


def test_equals_of_one_process_are_on_no_side_of_1():
    seen = Measured(0.99, 0.989, 0.991, floor=0.001, runs=(0.99,))
    assert seen.at_most(1.0) is None and seen.within(0, 1.0) is None
    several = replace(seen, runs=(0.99, 0.991, 0.989))
    assert several.at_most(1.0) is True
    assert replace(seen, runs=(0.99, 0.999, 0.989)).at_most(1.0) is None, "all must agree"
    assert Measured.counted(1.0).at_most(1.0) is True, "a count is what it is"


def test_three_blocks_decide_nothing_of_a_time_a_rate_or_a_sum():
    row = {"median_s": 1.0, "low_s": 0.99, "high_s": 1.01, "flops": 8.0, "noise_floor": 0.001}
    few, enough = (row | {"blocks_s": [1.0] * count} for count in (3, 6))
    for read in (time_of, lambda row: rate_of(row, "flops", "FLOP/s")):
        assert read(few).at_least(0.5) is None and read(enough).at_least(0.5) is True
    assert span([time_of(few), time_of(enough)]).exact is False
