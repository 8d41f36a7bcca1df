"""References to what a byte more takes in the cache, and to what a GEMM sustains."""

import re

import pytest

from anatomy.chapters.limits import calculations, figures
from anatomy.figures.text import inline
from anatomy.record import showing
from anatomy.table.errors import BadParameter, UnknownName
from tests.chapters.limits import ceilings_rows
from tests.fakes import synthetic


@pytest.fixture
def bandwidth(tmp_path):
    ceilings_rows.bandwidth(tmp_path)
    return synthetic.showing(root=tmp_path)


def test_the_rate_of_a_byte_more_is_that_of_the_cache(bandwidth):
    for op, (rate, _) in ceilings_rows.RATES.items():
        assert f">{rate / 1e12:.1f} TB/s<" in inline.render(bandwidth, f"l2:{op}")


def test_what_a_call_takes_besides_is_its_launch(bandwidth):
    html = inline.render(bandwidth, "l2:copy | fixed")
    assert f">{ceilings_rows.LAUNCH_S * 1e6:.1f} µs<" in html


def test_the_best_call_that_fits_is_slower_than_a_byte_more_and_says_its_size(bandwidth):
    html = inline.render(bandwidth, "l2:copy | best")
    rate = float(re.search(r">([\d.]+) TB/s<", html)[1]) * 1e12
    assert 0 < rate < ceilings_rows.RATES["copy"][0]
    assert "MiB" in html and "the fastest of the sizes that fit" in html


def test_the_edge_of_the_cache_lies_between_measured_sizes(bandwidth):
    html = inline.render(bandwidth, "l2:copy | edge")
    assert re.search(r">[\d.]+ MiB<", html) and "half of the step" in html


def test_what_is_not_known_is_an_error(bandwidth):
    with pytest.raises(UnknownName, match="copy"):
        inline.render(bandwidth, "l2:copies")
    with pytest.raises(BadParameter, match="fixed"):
        inline.render(bandwidth, "l2:copy | slope")


@pytest.fixture
def sustained(tmp_path):
    ceilings_rows.sustained(tmp_path)
    return synthetic.showing(root=tmp_path)


def test_what_is_sustained_is_the_second_half_of_the_calls_in_a_row(sustained):
    assert ">1.50 ms<" in inline.render(sustained, "sustained:median_s")
    assert ">733 TFLOP/s<" in inline.render(sustained, "sustained:rate")
    assert "not known" in inline.render(sustained, "sustained:sm_clock_mhz")
    with pytest.raises(UnknownName, match="median_s"):
        inline.render(sustained, "sustained:ratio")
    with pytest.raises(BadParameter, match="format"):
        inline.render(sustained, "sustained:rate | range")


def test_a_rate_that_lasts_is_drawn_with_each_window_in_the_table(sustained):
    with showing.using(sustained):
        html = figures.lasting(caption="One GEMM.")
    assert html.count("<tr>") == 1 + 3  # the head, and no row of the GEMM after a rest
    assert ">846 TFLOP/s<" not in html and ">814 TFLOP/s<" in html
    assert "Rate, TFLOP/s</p>" in html and "SM clock" not in html.partition("<details")[0]


@pytest.mark.parametrize(
    ("bandwidth", "peak", "launch", "thousand"),
    [(4.3e12, 52e12, 12e-6, 1e-3), (2.9e12, 48e12, 6e-6, 1.5e-3)],
)
def test_what_the_page_works_out_from_the_limits(bandwidth, peak, launch, thousand):
    assert calculations.bytes_of_an_addition() == 3 * 64 * 2**20 * 2
    assert calculations.addition_by_its_bytes(bandwidth) == pytest.approx(402653184 / bandwidth)
    assert calculations.addition_by_its_operations(peak) == pytest.approx(2 * 67108864 / peak)
    assert calculations.cpu_per_kernel_of_a_step(4.5e-3, 100) == pytest.approx(45e-6)
    saved = calculations.saved_by_a_kernel_in_a_graph(launch, thousand)
    assert saved == pytest.approx(launch - thousand / 1000)
