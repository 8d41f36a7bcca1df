"""Numbers are printed with their unit, with the digits that the interval pays for."""

import re
from functools import partial
from math import inf, nan

import numpy as np
import pandas as pd
import pytest

from anatomy.table import units
from anatomy.table.errors import BadParameter, MeasurementError

MISSING = (None, nan, pd.NA, pd.NaT, np.float64("nan"))


@pytest.mark.parametrize(
    ("x", "low", "high", "text"),
    [
        (57.6e-6, 57.4e-6, 57.9e-6, "57.6 µs [57.4, 57.9]"),
        (57.61e-6, 57.605e-6, 57.614e-6, "57.610 µs [57.605, 57.614]"),
        (57.6e-6, 52e-6, 63e-6, "58 µs [52, 63]"),  # half-width 5.5: no decimal
        (57.6e-6, 20e-6, 100e-6, "58 µs [20, 100]"),  # never under two digits
        (412e-6, 350e-6, 480e-6, "410 µs [350, 480]"),  # half-width 65: tens
        (1.006e-3, 1.0058e-3, 1.0063e-3, "1.0060 ms [1.0058, 1.0063]"),
        (9.2e-9, 9.1e-9, 9.3e-9, "9.2 ns [9.1, 9.3]"),
        (0.3e-9, 0.2e-9, 0.4e-9, "0.30 ns [0.20, 0.40]"),
        (999.6e-6, 999.1e-6, 1000.2e-6, "999.6 µs [999.1, 1000.2]"),
        (999.97e-6, 999.3e-6, 1000.6e-6, "1.0000 ms [0.9993, 1.0006]"),  # rounds up to 1000
        (12.0, 11.9, 12.2, "12.0 s [11.9, 12.2]"),
        (4096.0, 4000.0, 4200.0, "4100 s [4000, 4200]"),
        (2e-6, 2e-6, 2e-6, "2.0000 µs [2.0000, 2.0000]"),  # no width, yet not endless digits
        (2e-6, 1e-6, inf, "2.00 µs [1.00, ∞]"),
        (inf, 3.0, inf, "∞ s [3, ∞]"),
        (inf, inf, inf, "∞ s [∞, ∞]"),
        (0.0, -0.004, 0.004, "0 s [-0.004, 0.004]"),
    ],
)
def test_a_time_has_the_digits_its_interval_pays_for(x, low, high, text):
    assert units.seconds_range(x, low, high) == text
    assert units.seconds(x, low, high) == text.split(" [")[0]


RANGED = (
    partial(units.with_interval, unit="W"),
    partial(units.with_interval, most=3),
    units.seconds_range,
    units.ratio_range,
    lambda x, low, high: units.rate_range(x, "B/s", low, high),
)


@pytest.mark.parametrize("ranged", RANGED)
def test_a_number_lies_in_its_interval_as_it_reads_too(ranged):
    seed = 20261123
    print(f"seed {seed}")
    generator = np.random.default_rng(seed)
    for _ in range(3000):
        # From lopsided to even, and from narrower than a digit to wider than the number.
        below, above = 10 ** generator.uniform(-7, 1, 2)
        x = 10 ** generator.uniform(-9, 13)
        text = ranged(x, x / (1 + below), x * (1 + above))
        read = re.fullmatch(r"([\d.]+).* \[([\d.]+), ([\d.]+)\]", text).groups()
        number, low, high = map(float, read)
        assert low <= number <= high, text


@pytest.mark.parametrize("ranged", RANGED)
@pytest.mark.parametrize("ends", [(203e-6, 245e-6), (150e-6, 199e-6), (245e-6, 150e-6)])
def test_a_number_outside_of_its_interval_is_refused(ranged, ends):
    with pytest.raises(MeasurementError, match=r"0\.0002 lies outside of its own interval"):
        ranged(200e-6, *ends)


def test_no_end_reads_one_where_the_interval_leaves_it_out():
    assert units.ratio_range(0.967, 0.938, 0.998) == "0.97× [0.94, 0.998]"
    assert units.ratio_range(1.04, 1.0007, 1.08) == "1.04× [1.001, 1.08]"
    assert units.ratio_range(0.99, 0.96, 1.003) == "0.99× [0.96, 1.00]", "1 lies in it"


def test_an_end_reads_zero_only_where_it_is():
    assert units.seconds_range(32e-3, 0.24e-3, 47e-3) == "32 ms [0.2, 47]"
    assert units.seconds_range(32e-3, -0.24e-3, 47e-3) == "32 ms [-0.2, 47]"
    assert units.seconds_range(32e-3, 0, 47e-3) == "32 ms [0, 47]"
    assert units.ratio_range(0.032, 0.00024, 0.047) == "0.032× [0.0002, 0.047]"


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (57.6e-6, "57.6 µs"),
        (1.0, "1.00 s"),
        (0.99949, "999 ms"),
        (0.9996, "1.00 s"),
        (9.996e-6, "10.0 µs"),
        (1e-9, "1.00 ns"),
        (1e-6, "1.00 µs"),
        (1e-3, "1.00 ms"),
        (0.25e-9, "0.250 ns"),
        (0, "0 s"),
        (-3.2e-6, "-3.20 µs"),
        (inf, "∞ s"),
        (123.4, "123 s"),
        (np.float32(0.5), "500 ms"),
    ],
)
def test_a_time_without_an_interval_has_three_digits(x, text):
    assert units.seconds(x) == text
    assert units.seconds(x, None, nan) == text


@pytest.mark.parametrize(
    ("x", "low", "high", "text"),
    [
        (1.992, 1.97, 2.01, "1.99×"),
        (1.9924, 1.9921, 1.9927, "1.9924×"),
        (2.4, 1.0, 4.1, "2.4×"),
        (0.998, None, None, "0.998×"),
        (1.0, None, None, "1.00×"),
        (12.34, None, None, "12.3×"),
        (103.7, 101.2, 105.9, "104×"),
        (inf, 3.0, inf, "∞×"),
    ],
)
def test_a_ratio_ends_in_a_times_sign(x, low, high, text):
    assert units.ratio(x, low, high) == text


def test_ratios_and_plain_numbers_can_show_their_interval():
    assert units.ratio_range(1.992, 1.97, 2.01) == "1.99× [1.97, 2.01]"
    assert units.with_interval(412.3, 410.1, 414.6, "W") == "412 W [410, 415]"
    assert units.with_interval(7.0, 6.0, 8.0) == "7.0 [6.0, 8.0]"
    assert units.with_interval(7.0) == "7.00"


@pytest.mark.parametrize(
    ("x", "unit", "text"),
    [
        (812e12, "FLOP/s", "812 TFLOP/s"),
        (4.02e12, "B/s", "4.02 TB/s"),
        (672e9, "B/s", "672 GB/s"),
        (999.7e9, "B/s", "1.00 TB/s"),
        (1.07e15, "FLOP/s", "1.07 PFLOP/s"),
        (5e18, "FLOP/s", "5000 PFLOP/s"),
        (12.0, "B/s", "12.0 B/s"),
        (0.5, "B/s", "0.500 B/s"),
        (0, "B/s", "0 B/s"),
    ],
)
def test_rates_have_decimal_prefixes(x, unit, text):
    assert units.rate(x, unit) == text


def test_a_rate_too_is_shown_as_its_interval_allows():
    assert units.rate(812.4e12, "FLOP/s", 780e12, 850e12) == "810 TFLOP/s"


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (16 * 2**20, "16.0 MiB"),
        (2**30 - 1, "1.00 GiB"),
        (1023 * 2**20, "1023 MiB"),
        (141 * 10**9, "131 GiB"),
        (2**60, "1048576 TiB"),
    ],
)
def test_bytes_have_binary_prefixes(n, text):
    assert units.byte_count(n) == text


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.8123, "81.2%"),
        (0.004, "0.40%"),
        (0.00034, "0.03%"),
        (1.0, "100%"),
        (0, "0%"),
        (1.23, "123%"),
    ],
)
def test_shares_are_percentages_with_two_decimals_at_most(x, text):
    assert units.percent(x) == text


@pytest.mark.parametrize(
    ("x", "digits", "text"),
    [(1234.5, 3, "1230"), (0.00123, 2, "0.0012"), (9.996, 3, "10.0"), (0, 3, "0"), (-1.5, 1, "-2")],
)
def test_significant_digits_without_exponent(x, digits, text):
    assert units.significant(x, digits) == text


@pytest.mark.parametrize("x", MISSING)
def test_what_was_not_measured_says_so(x):
    texts = [units.seconds(x), units.ratio(x), units.rate(x, "B/s"), units.byte_count(x)]
    texts += [units.percent(x), units.significant(x), units.format_value(x, ".2f")]
    texts += [units.seconds_range(x, x, x), units.with_interval(x, 1, 2, "W")]
    assert set(texts) == {"not measured"}


@pytest.mark.parametrize("x", [-0.0, -1e-12, -0.0004])
def test_nothing_reads_minus_zero(x):
    texts = [units.with_interval(x, x - 0.5, x + 0.5), units.percent(x / 100)]
    texts += [units.format_value(x, spec) for spec in (".2f", ".1%", "x.1", "us.0", "+.0f", ".1e")]
    wrong = [
        text for text in texts if text.startswith("-") and not any(c in "123456789" for c in text)
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("value", "spec", "text"),
    [
        (1.9937, ".2f", "1.99"),
        (57.64e-6, "us", "57.6 µs"),
        (57.64e-6, "us.2", "57.64 µs"),
        (57.64e-6, "µs.0", "58 µs"),
        (57.64e-6, "ms.3", "0.058 ms"),
        (3.0, "s", "3.00 s"),
        (812.3e12, "TFLOP/s", "812 TFLOP/s"),
        (812.3e12, "TFLOP/s.1", "812.3 TFLOP/s"),
        (4.8e12, "GB/s", "4800 GB/s"),
        (4.8e12, "TB/s.1", "4.8 TB/s"),
        (0.8123, "%", "81.2%"),
        (0.8123, "%.0", "81%"),
        (0.8123, ".1%", "81.2%"),
        (1.9937, "x", "1.99×"),
        (1.9937, "×.1", "2.0×"),
        (2**24, "MiB", "16.0 MiB"),
        (2**24, "", "16777216"),
        (4096, ",d", "4,096"),
        (4096, "", "4096"),
        (0.123456, "", "0.123"),
        ("aligned", "", "aligned"),
        (True, "", "yes"),
        (np.bool_(False), "", "no"),
        (np.float32(0.5), ".3f", "0.500"),
        (np.int64(7), "", "7"),
        ([4096, 1], "", "4096, 1"),
        (["a", "b"], "", "a, b"),
        (-0.001, ".2f", "0.00"),
        (inf, "x", "∞×"),
        (inf, "", "∞"),
    ],
)
def test_a_reference_chooses_how_its_value_reads(value, spec, text):
    assert units.format_value(value, spec) == text


@pytest.mark.parametrize(
    ("value", "spec", "match"),
    [
        (1.5, "furlongs", "neither a format such as '.2f' nor a unit; the units are ns, us"),
        (1.5, "d", "neither a format"),
        (1.5, "parsec.2", "neither a format"),
        ("aligned", ".2f", "is text, and text takes no format"),
    ],
)
def test_a_wrong_spec_is_told_what_would_be_right(value, spec, match):
    with pytest.raises(BadParameter, match=match):
        units.format_value(value, spec)
