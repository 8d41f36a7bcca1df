"""Measured numbers: on which side of an end they lie, what they say, and how they are printed."""

import pytest

from anatomy import claims
from anatomy.claims import Finding, Measured, answer
from anatomy.claims.findings import span
from anatomy.table.errors import UnknownName


@pytest.mark.parametrize(
    ("end", "floor", "least", "most"),
    [  # of the interval [1, 2]
        (0.5, 0.0, True, False),
        (1.0, 0.0, True, None),
        (1.5, 0.0, None, None),
        (2.0, 0.0, None, True),
        (2.5, 0.0, False, True),
        # Noise of 50 % makes it [0.67, 3].
        (0.6, 0.5, True, False),
        (0.8, 0.5, None, None),
        (2.5, 0.5, None, None),
        (3.5, 0.5, False, True),
    ],
)
def test_a_number_lies_on_the_side_of_an_end_on_which_all_of_it_lies(end, floor, least, most):
    number = Measured(1.4, 1.0, 2.0, floor=floor)
    assert (number.at_least(end), number.at_most(end)) == (least, most)


def test_what_took_time_took_more_than_none_and_not_less():
    took = Measured(2.0, 1.9, 2.1, "s", runs=(2.0,))
    assert took.at_least(0.0) is True and took.at_most(0.0) is False
    assert took.within(0, 3.0) is True and took.within(0, 1.5) is False


@pytest.mark.parametrize(("processes", "outcome"), [(5, None), (6, True)])
def test_from_six_processes_on_none_of_them_alone_must_agree(processes, outcome):
    runs = (0.999,) + (1.05,) * (processes - 1)
    seen = Measured(1.05, 1.04, 1.06, floor=0.001, runs=runs)
    assert seen.at_least(1.0) is outcome


@pytest.mark.parametrize(
    ("value", "near"),
    [(1.79, False), (1.81, True), (2.19, True), (2.21, False)],
)
def test_near_is_up_to_a_tenth_off_or_to_what_is_given(value, near):
    number = Measured.counted(value)
    assert number.near(2.0) is near
    assert number.near(2.0, by=0.05) is False and number.near(2.0, by=0.2) is True


@pytest.mark.parametrize(
    ("verdict", "says"),
    [("slower", True), ("same", True), ("faster", False), ("undecided", None), ("", None)],
)
def test_a_number_says_only_what_its_verdict_decides(verdict, says):
    assert Measured(1.0, 1.0, 1.0, verdict=verdict).says("slower", "same") is says


def test_an_inverse_has_its_ends_and_processes_turned_round_and_no_verdict():
    ratio = Measured(2.0, 1.0, 4.0, "x", 3, 0.01, False, (1.0, 2.0, 4.0), "slower")
    other = Measured(0.5, 0.25, 1.0, "x", 3, 0.01, False, (1.0, 0.5, 0.25), "")
    assert ratio.inverse == other


@pytest.mark.parametrize(
    ("number", "text", "middle"),
    [
        (Measured(2.0, 1.5, 2.5, "s", 3), "1.50 s to 2.50 s in 3 cases", "2.00 s"),
        (Measured(2.0, 1.5, 2.5, "x", 3), "1.50× to 2.50× in 3 cases", "2.00×"),
        (Measured(2e9, 1e9, 3e9, "B/s", 3), "1.00 GB/s to 3.00 GB/s in 3 cases", "2.00 GB/s"),
        (Measured(2e9, 1e9, 3e9, "FLOP/s"), "2.0 GFLOP/s [1.0, 3.0]", "2.00 GFLOP/s"),
        (Measured(0.2, 0.1, 0.3, "share", 2), "10.0% to 30.0% in 2 cases", "20.0%"),
        (Measured.counted(5.0, "count"), "5", "5"),
        (Measured.counted(5.5, "count"), "5.50", "5.50"),
        (Measured(5.0, 5.0, 6.0, "count"), "5.00 [5.00, 6.00]", "5.00"),
        (Measured(5.0, 4.0, 5.0, "count"), "5.00 [4.00, 5.00]", "5.00"),
        (Measured(19.0, 19.0, 19.0, "count", 3), "19 in all 3 cases", "19"),
        (Measured.counted(5.0), "5.00×", "5.00×"),
    ],
)
def test_a_number_has_one_text_alone_and_another_of_several_cases(number, text, middle):
    assert (number.text, number.middle) == (text, middle)


def test_the_sum_of_several_numbers_is_as_sure_as_the_least_sure_of_them():
    one = Measured(1.0, 0.9, 1.1, "s", floor=0.02, runs=(1.0,), verdict="slower")
    two = Measured(4.0, 3.0, 5.0, "s", cases=3, floor=0.01, exact=False)
    assert span([one, two]) == Measured(2.0, 0.9, 5.0, "s", 4, 0.02, exact=False)
    assert span([one, one]).exact is True


def test_where_a_number_is_zero_the_median_is_on_the_plain_scale():
    found = span([Measured.counted(value, "count") for value in (0.0, 3.0)])
    assert (found.value, found.low, found.high) == (1.5, 0.0, 3.0)


@pytest.mark.parametrize(
    ("outcome", "word"),
    [(True, claims.HOLDS), (False, claims.FAILS), (None, claims.INCONCLUSIVE)],
)
def test_an_answer_to_one_question_is_one_of_three_words(outcome, word):
    number = Measured.counted(2.0)
    assert answer(outcome, "Seen.", number) == Finding(word, "Seen.", number)


@pytest.mark.parametrize("word", claims.WORDS)
def test_each_of_the_five_words_is_a_verdict_and_no_other(word):
    assert Finding(word, "Seen.", condition="here").condition == "here"
    with pytest.raises(UnknownName, match="no verdict 'not recorded'"):
        Finding(claims.NOT_RECORDED, "")
