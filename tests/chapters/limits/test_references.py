"""References to what a byte more takes in the cache."""

import pytest

from anatomy.figures.text import inline
from anatomy.table.errors import BadParameter, UnknownName
from tests.chapters.limits import ceilings_rows
from tests.fakes import synthetic


@pytest.fixture
def showing(tmp_path):
    ceilings_rows.bandwidth(tmp_path)
    return synthetic.showing(root=tmp_path)


def test_the_rate_of_a_byte_more_is_that_of_the_cache(showing):
    for op, (rate, _) in ceilings_rows.RATES.items():
        assert f">{rate / 1e12:.1f} TB/s<" in inline.render(showing, f"l2:{op}")


def test_what_a_call_takes_besides_is_its_launch(showing):
    html = inline.render(showing, "l2:copy | fixed")
    assert f">{ceilings_rows.LAUNCH_S * 1e6:.1f} µs<" in html


def test_what_is_not_known_is_an_error(showing):
    with pytest.raises(UnknownName, match="copy"):
        inline.render(showing, "l2:copies")
    with pytest.raises(BadParameter, match="fixed"):
        inline.render(showing, "l2:copy | slope")
