"""Cases of a claim in words: where it holds as shortly as they allow, and what each says."""

from itertools import product

import pytest

from anatomy import claims
from anatomy.claims import Case, Cases, Measured, Unmeasured
from anatomy.claims.cases import between
from anatomy.table import units

OUTCOMES = {"+": True, "-": False, "?": None}


def numbered(**outcomes: str) -> list[Case]:
    """Cases by op, numbered on: `a="+-?"` are its outcomes."""
    signs = [(op, sign) for op, every in outcomes.items() for sign in every]
    return [Case({"op": op, "n": n}, OUTCOMES[sign]) for n, (op, sign) in enumerate(signs)]


def where_of(cases) -> str:
    found = Cases(cases).finding("Seen.")
    assert found.word == claims.IN_PART
    assert f"Seen. It holds {found.condition}." in found.evidence
    assert found.short[-1] in found.condition
    return found.condition


@pytest.mark.parametrize(
    ("true", "false", "said"),
    [
        (1, 1, "for 0, 1 of 2 cases"),
        (2, 1, "except for 2, in 2 of 3 cases"),
        (5, 5, "for 0/1/2/3/4, 5 of 10 cases"),
        (5, 9, "for 0/1/2/3/4, 5 of 14 cases"),
        (6, 5, "except for 6/7/8/9/10, in 6 of 11 cases"),
        (6, 6, "in 6 of 12 cases"),
        (7, 6, "in 7 of 13 cases"),
    ],
)
def test_up_to_five_places_are_named_and_of_two_lists_the_shorter(true, false, said):
    assert where_of(Case({"n": n}, n < true) for n in range(true + false)) == said


SIX = dict.fromkeys("bcdefg", "+-")


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ({"a": "++++++", "b": "------"}, "for a, 6 of 12 cases"),
        (
            {"a": "+++", "b": "---", "c": "+-+-+-+"},
            "always for a; never for b; in part for c; 7 of 13 cases in all",
        ),
        (
            {"a": "++++++", "b": "?", "c": "-----", "d": "+-"},
            "always for a; never for c; in part for d; undecided for b; 7 of 14 cases in all",
        ),
        (
            {"a": "++++++", "b": "?-", "c": "-----", "d": "?+"},
            "always for a; never for c; in part for d; undecided for b; 7 of 15 cases in all",
        ),
        ({"a": "+"} | SIX, "always for a; in part for 6 combinations; 7 of 13 cases in all"),
        ({"a": "-"} | SIX, "never for a; in part for 6 combinations; 6 of 13 cases in all"),
        (
            {"a": "+++"} | dict.fromkeys("bcdef", "+--"),
            "always for a; in part for b/c/d/e/f; 8 of 18 cases in all",
        ),
        (
            dict.fromkeys("bcdef", "++") | {"g": "------+"},
            "always for b/c/d/e/f; in part for g; 11 of 17 cases in all",
        ),
        (
            dict.fromkeys("bcdef", "--") | {"g": "++++++-"},
            "never for b/c/d/e/f; in part for g; 6 of 17 cases in all",
        ),
        # No list of five or fewer says it.
        (dict.fromkeys("abcdef", "++") | {"g": "------+"}, "in 13 of 19 cases"),
        (SIX, "in 6 of 12 cases"),
    ],
)
def test_of_many_cases_it_is_said_where_always_never_and_partly(outcomes, said):
    assert where_of(numbered(**outcomes)) == said


@pytest.mark.parametrize(
    ("more", "said"),
    [  # of the cases with size 2; to tell them apart takes three more places to name
        (2, "always for a; never for c; in part for b; 12 of 22 cases in all"),
        (3, "always for a; never for c; in part for b; 13 of 23 cases in all"),
        (4, "always for a, b 2; never for c; in part for b 1; 14 of 24 cases in all"),
    ],
)
def test_a_second_column_is_named_where_it_tells_apart_more_than_it_adds(more, said):
    cases = [
        Case({"op": op, "size": size, "n": n}, outcome)
        for op, outcome in (("a", True), ("c", False))
        for size, n in product((1, 2), range(4))
    ]
    cases += [Case({"op": "b", "size": 1, "n": n}, n % 2 == 0) for n in range(4)]
    cases += [Case({"op": "b", "size": 2, "n": n}, True) for n in range(more)]
    assert where_of(cases) == said


def test_two_columns_of_three_may_decide_it():
    cases = [
        Case({"a": a, "b": b, "n": n}, a == b) for a, b, n in product((0, 1), (0, 1), range(3))
    ]
    assert where_of(cases) == "for 0 0, 1 1, 6 of 12 cases"


@pytest.mark.parametrize(
    ("other", "said"),
    [  # the cases whose outcome is another than their numbers say
        ({}, "in 6 of 12 cases"),
        ({"000": False}, "for 0 0 2, 0 1 1, 1 0 1, 1 1 0/2, 5 of 12 cases"),
        ({"001": True}, "except for 0 1 0/2, 1 0 0/2, 1 1 1, 7 of 12 cases"),
        # Beside what is undecided nothing is said to be all but so.
        ({"001": None}, "in 6 of 12 cases"),
    ],
)
def test_where_no_two_columns_say_anything_five_cases_are_named(other, said):
    cases = (
        Case({"gpu": "toy", "a": a, "b": b, "n": n}, other.get(f"{a}{b}{n}", (a + b + n) % 2 == 0))
        for a, b, n in product((0, 1), (0, 1), (0, 1, 2))
    )
    assert where_of(cases) == said, "what all have in common is not said"


def test_cases_that_nothing_tells_apart_are_counted():
    assert where_of([Case({"op": "a"}, True), Case({"op": "a"}, False)]) == "in 1 of 2 cases"


@pytest.mark.parametrize(
    ("places", "said"),
    [
        (("where it rains",), "where it rains, 1 of 3 cases"),
        (("where it rains", "where it snows"), "where it rains/snows, 2 of 4 cases"),
        (("where it rains", "indoors"), "where it rains or indoors, 2 of 4 cases"),
    ],
)
def test_places_that_say_where_need_no_for(places, said):
    here = [Case({"at": place}, True) for place in places]
    assert where_of([*here, *(Case({"at": n}, False) for n in range(2))]) == said


@pytest.mark.parametrize(
    ("outcomes", "short"),
    [
        # A place that is only counted, and all but some, are told in full alone.
        ({"a": "+"} | SIX, ("always for a", "7 of 13 cases")),
        ({"a": "+++", "b": "-"}, ("3 of 4 cases",)),
        ({"a": "+-", "b": "--"}, ("1 of 4 cases",)),
        ({"a": "??"}, ("2 of 2 cases undecided",)),
        ({"a": "+++??"}, ("holds in 3 of 5 cases, 2 undecided",)),
        ({"a": "-?"}, ("fails in 1 of 2 cases, 1 undecided",)),
        ({"a": "++"}, ()),
    ],
)
def test_where_there_is_less_room_it_is_said_in_clauses(outcomes, short):
    assert Cases(numbered(**outcomes)).finding("Seen.").short == short


@pytest.mark.parametrize(
    ("true", "said", "short"),
    [
        (True, "for 1 (1 1 or 2 2), 2 of 8 cases", ("only for 1", "2 of 8 cases")),
        (False, "except for 1 (1 1 or 2 2), 6 of 8 cases", ("6 of 8 cases",)),
    ],
)
def test_what_all_places_share_is_a_clause_where_they_are_all(true, said, short):
    every = product((1, 2), repeat=3)
    outcomes = {each: (each in ((1, 1, 1), (1, 2, 2))) is true for each in every}
    cases = (Case(dict(zip("abc", each, strict=True)), true) for each, true in outcomes.items())
    found = Cases(cases).finding("Seen.")
    assert (found.condition, found.short) == (said, short)
    two = {(1, 1): True, (1, 2): True, (1, 3): False, (2, 1): False}
    found = Cases(Case({"a": a, "b": b}, each) for (a, b), each in two.items()).finding("Seen.")
    assert found.condition == "for 1 (1 or 2), 2 of 4 cases", "two columns decide it"
    assert found.short == ("only for 1", "2 of 4 cases")


def test_of_cases_that_cannot_be_measured_the_first_says_why():
    first, other = (Case({"n": n}, None, why=why) for n, why in enumerate(("No room.", "No GPU.")))
    none = Cases([first, other]).finding("Seen.")
    assert (none.word, none.evidence) == (claims.NOT_MEASURABLE, "No room.")
    some = Cases([first, other, Case({"n": 2}, True)]).finding("Seen.")
    assert some.evidence == "Seen. 2 of 3 cases can't be measured: No room."
    assert Cases().finding("Seen.").evidence == "There is no such case."


def test_a_block_that_reads_what_cannot_be_measured_is_a_case_with_its_reason():
    cases = Cases()
    for n in range(3):
        with cases.at(n=n) as case:
            if n == 1:
                raise Unmeasured("no room")
            case(n == 0, Measured.counted(2.0 + n), f"it is {n}")
    assert [(case.where["n"], case.outcome, case.why) for case in cases] == [
        *((0, True, ""), (1, None, "no room"), (2, False, "")),
    ]
    assert cases.said() == "it is 0; it is 2" and cases.said(" and ") == "it is 0 and it is 2"
    assert cases.range == "2.00× to 4.00×" and cases.of(n=2) == cases[2:]


def test_of_no_number_there_is_no_range():
    assert Cases([Case({}, True)]).range == between([]) == units.NOT_MEASURED


def test_an_end_has_the_digits_that_its_interval_pays_for():
    timed, counted = Measured(2.0, 1.9, 2.1), Measured.counted(3.0)
    cases = Cases(Case({"op": "a", "n": n}, True, each) for n, each in enumerate((counted, timed)))
    assert cases.ends("op") == "a 2.0× (1) to 3.00× (0)"


def test_of_a_promise_of_nothing_it_is_not_counted_what_is_a_gain():
    gains = Cases(Case({}, True, Measured.counted(value)) for value in (0.9, 1.5, 3.0))
    assert gains.tally(1.0, 2.0) == (
        "1.00× or more is reached in 2 of 3 cases (up to 2.00× in 1, beyond it in 1)."
    )
    none = gains.tally(4.0, 5.0)
    assert none == "4.00× or more is reached in 0 of 3 cases; 2 are faster at all, 1 slower."
