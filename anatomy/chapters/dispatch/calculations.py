"""Answers of the exercises on single calls."""

from anatomy.figures.curriculum.calculations import calculation

ADD = 'dispatch.calls."one call"."torch.add"'
CALLS = 32 * 40  # of a token: layers of a decoder, and operators of each


@calculation(unit="tokens", call=f"{ADD}.median_s")
@calculation("tokens-at-the-pace-of-calls-at-least", unit="tokens", call=f"{ADD}.high_s")
@calculation("tokens-at-the-pace-of-calls-at-most", unit="tokens", call=f"{ADD}.low_s")
def tokens_at_the_pace_of_calls(call: float) -> float:
    """A second over 32 times 40 calls."""
    return round(1 / (CALLS * call))


@calculation(unit="s", view='dispatch.calls."one call"."x.view(1)".median_s')
def views_of_a_layer(view: float) -> float:
    """Eight views of each of 32 layers."""
    return 8 * 32 * view
