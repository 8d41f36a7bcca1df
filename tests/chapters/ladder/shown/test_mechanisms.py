"""What is drawn of a tensor core and of a fused sum and norm, without a recording."""

import pytest

from anatomy.chapters.ladder.shown import mechanisms
from anatomy.record.showing import using
from tests.fakes import synthetic


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (mechanisms.multipliers, ("Ordinary unit", "1 multiplication", "Tensor core")),
        (mechanisms.two_layouts, ("x, forward", "no neighbours", "transposed copy, backward")),
        (mechanisms.sum_and_norm, ("7 trips, 24 bytes", "4 trips, 12 bytes", "+, norm, cast")),
    ],
)
def test_a_mechanism_is_named_on_a_desk_and_on_a_phone(draw, words):
    with using(synthetic.showing()):
        html = draw(caption="See it.")
    assert html.count("<svg") == 2 and "See it." in html
    for word in words:
        assert html.count(f">{word}<") == 2, f"{word} has no room on one of them"


def test_bytes_are_those_of_every_trip():
    assert mechanisms.moved(mechanisms.EAGER) == 4 + 2 + 4 + 4 + 4 + 4 + 2
    assert mechanisms.moved(mechanisms.FUSED) == 4 + 2 + 4 + 2
