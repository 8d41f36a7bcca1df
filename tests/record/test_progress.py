"""What a person waiting sees: how many, which, and for how long."""

import io

import pytest

from anatomy.record.progress import Reporter, duration, expected_s


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        *((0.4, "0.4 s"), (0.6, "1 s"), (4.2, "4 s"), (59.4, "59 s"), (59.6, "1 min")),
        *((60, "1 min"), (61, "1 min 1 s"), (125, "2 min 5 s"), (3599, "59 min 59 s")),
        *((3600, "1 h 0 min"), (4200, "1 h 10 min"), (7320, "2 h 2 min")),
    ],
)
def test_durations_read_as_people_say_them(seconds, said):
    assert duration(seconds) == said


def test_what_was_never_measured_is_expected_to_be_like_the_others():
    assert expected_s([10.0, 20.0, None]) == 45.0
    assert expected_s([None, None]) is None
    assert expected_s([]) == 0.0


def test_a_file_gets_one_plain_line_for_each_step():
    stream = io.StringIO()
    with Reporter([30.0, 90.0], stream) as reporter:
        reporter.begin("first [x]")
        reporter.end("first [x]", "28 s")
        reporter.begin("second")
        reporter.end("second", "failed: no")
    assert stream.getvalue().splitlines() == [
        "[1/2] first [x], about 2 min left",
        "first [x]: 28 s",
        "[2/2] second, about 1 min 30 s left",
        "second: failed: no",
    ]


def test_nothing_is_said_of_what_is_left_where_nothing_was_ever_measured():
    stream = io.StringIO()
    with Reporter([None], stream) as reporter:
        reporter.begin("only")
    with Reporter([], stream) as reporter:
        reporter.line("[b]as it is[/b] " + "x" * 200)
    assert stream.getvalue() == "[1/1] only\n[b]as it is[/b] " + "x" * 200 + "\n"


def test_a_terminal_gets_a_bar_that_counts_and_estimates():
    class Terminal(io.StringIO):
        """A stream that says it is a terminal."""

        def isatty(self) -> bool:
            return True

    stream = Terminal()
    with Reporter([30.0, 90.0], stream) as reporter:
        reporter.begin("first")
        reporter.end("first", "28 s")
        reporter.begin("second")
        assert reporter._bar.live.refresh_per_second <= 2, "more would be seen in what is measured"
    shown = stream.getvalue()
    assert shown.endswith("\x1b[2K"), "the bar goes when all is done"
    assert "1/2" in shown and "second" in shown and "about 1 min 30 s left" in shown
