"""How often a callable is timed at the least."""

import pytest

from anatomy.parts.repeats import LONG_S, least_calls


class Watch:
    """A clock on which a call takes as many seconds as it returns."""

    def wall(self, calls):
        return sum(call() for call in calls)


@pytest.mark.parametrize(
    ("seconds", "asked", "given"),
    [
        ([LONG_S / 2, LONG_S], 200, 200),
        ([LONG_S / 2, LONG_S * 1.01], 200, 12),
        ([LONG_S * 10], 3, 3),
    ],
)
def test_a_long_call_is_timed_a_dozen_times_if_more_were_asked_for(seconds, asked, given):
    calls = [lambda each=each: each for each in seconds]
    assert least_calls(asked, calls, Watch()) == given


def test_who_asks_may_say_what_is_long():
    assert least_calls(200, [lambda: 1.5e-3], Watch(), 2e-3) == 200
    assert least_calls(200, [lambda: 2.5e-3], Watch(), 2e-3) == 12


def test_what_a_call_takes_to_set_itself_up_does_not_make_it_long():
    takes = iter([1.0, LONG_S / 2])
    assert least_calls(200, [lambda: next(takes)], Watch()) == 200
