"""Answers of the exercises on single calls."""

from anatomy.figures.curriculum.calculations import calculation

ADD = 'dispatch.calls."one call"."torch.add".{}'
CALLS = 32 * 40  # of a token: layers of a decoder, and operators of each


def tokens_at_the_pace_of_calls(call: float) -> float:
    """A second over 32 times 40 calls."""
    return round(1 / (CALLS * call))


for _name, _end in (("", "median_s"), ("-at-least", "high_s"), ("-at-most", "low_s")):
    calculation(f"tokens-at-the-pace-of-calls{_name}", unit="tokens", call=ADD.format(_end))(
        tokens_at_the_pace_of_calls
    )


@calculation(unit="s", view='dispatch.calls."one call"."x.view(1)".median_s')
def views_of_a_layer(view: float) -> float:
    """Eight views of each of 32 layers."""
    return 8 * 32 * view
