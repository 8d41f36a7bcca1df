"""Growth curves: exponents of times and of counts, and the table that says how sure they are."""

import pytest

from anatomy import page
from anatomy.figures.charts import loglog
from anatomy.figures.tradeoffs import growth
from anatomy.figures.tradeoffs.breakeven import Wanted
from anatomy.record.showing import using
from anatomy.table.errors import UnknownName
from tests.chapters.memory_ladder import memory_ladder_rows as ladder
from tests.fakes import payoff_rows as made
from tests.fakes import synthetic
from tests.figures.test_payoffs import CURVE, call, of
from tests.figures.test_payoffs import root as root
from tests.site.test_page import text


def test_an_exponent_is_fitted_to_the_times_and_counts_of_one_series():
    by_series = growth.lines(
        made.table(), Wanted("tokens", "peak_bytes", "variant",
                             where={"width": 1024, "op": "train *"})
    )  # fmt: skip
    assert list(by_series) == ["eager", "compiled", "graphed"]
    fit = growth.fitted(by_series["eager"], "tokens", "peak_bytes")
    assert fit.median == pytest.approx(1.0) and fit.points == 4
    assert growth.fitted(by_series["eager"][:1], "tokens", "peak_bytes") is None
    times = growth.fitted(by_series["eager"], "tokens", "median_s")
    assert times.low < times.median < times.high and times.median < 1


def test_the_table_of_exponents_says_what_is_exact_and_what_has_no_interval(root):
    counted = text(call("curve", of(root), **CURVE | {"y": "peak_bytes"}))
    assert "exact: a straight line" in counted and "how far the points stray" in counted
    two = CURVE | {"where": CURVE["where"] | {"tokens": [256, 1024]}}
    assert "no interval: it takes 3 sizes" in text(call("curve", of(root), **two))
    assert "fewer than two sizes" in text(call("curve", of(root), **CURVE | {"beyond": 16384}))
    failed = text(call("curve", of(root), **CURVE | {"where": {"width": 4096, "op": "train *"}}))
    assert made.WHY in failed


def test_the_table_marks_a_time_that_has_its_launch_in_it():
    late = {"variant": "a", "tokens": 2, "median_s": 3e-4, "launch_inclusive": True}
    lines = {"a": [late | {"tokens": 1, "launch_inclusive": False}, late]}
    table = growth._table(lines, Wanted("tokens", "median_s", "variant"))
    assert table.count("launch-inclusive") == 1
    assert "launch-inclusive" not in growth._table(
        {"a": lines["a"][:1]}, Wanted("tokens", "median_s", "variant")
    )


def test_an_axis_calls_nothing_a_95_interval_that_is_none():
    said = {name: growth._spread(name, []) for name in ("median_s", "dram_bytes", "peak_bytes")}
    assert said["median_s"] == " (95% interval)" and said["peak_bytes"] == ""
    assert "of its repeats" in said["dram_bytes"] and "95%" not in said["dram_bytes"]


def test_bytes_over_a_wide_range_are_named_by_powers_of_four():
    kib = 2.0**10
    ticks = growth._ticks("working_set_bytes", [65 * kib, 192 * kib, 65470 * kib, 200000 * kib])
    names = ["64 KiB", "256 KiB", "1 MiB", "4 MiB", "16 MiB", "64 MiB", ""]
    assert [name for _, name in ticks] == names
    assert ticks[1][0] == 256 * kib and ticks[-1][0] == 200000 * kib, "the end keeps its place"
    few = [(96 * kib, "96.0 KiB"), (192 * kib, "192 KiB")]
    assert growth._ticks("working_set_bytes", [size for size, _ in few]) == few
    assert growth._ticks("tokens", [1, 4096]) == [(1, "1"), (4096, "4096")]


@pytest.mark.parametrize(("most", "ticks"), [(4, [1, 1.5, 2, 3, 5]), (40, [1, 2, 5, 10, 20, 50])])
def test_an_axis_over_less_than_ten_times_has_more_steps_between_its_powers(most, ticks):
    points = [
        {"series": "a", "x": x, "value": y, "low": y, "high": y, "hover": ""}
        for x, y in ((1, 1.0), (2, most))
    ]
    drawn = loglog.growth(points, [], [(1, "1"), (2, "2")], ("x", "y"), width=680)["layer"][0]
    assert drawn["encoding"]["y"]["axis"]["values"] == ticks


@pytest.mark.parametrize(
    ("column", "values", "named"),
    [
        ("peak_bytes", [2**17, 2**33], True),
        ("peak_bytes", [2**30, 2**33], False),
        ("peak_bytes", [512, 2**33], False),
        ("median_s", [2**17, 2**33], False),
    ],
)
def test_bytes_too_far_apart_for_one_unit_are_named_on_the_axis(column, values, named):
    assert growth._needs_names(values, column) == named
    points = [
        {"series": "a", "x": x, "value": y, "low": y, "high": y, "hover": ""}
        for x, y in enumerate(values, 1)
    ]
    ticks = [(x, str(x)) for x in (1, 2)]
    axis = loglog.growth(points, [], ticks, ("x", "y"), named, width=680)["layer"][0]
    assert ("MiB" in axis["encoding"]["y"]["axis"].get("labelExpr", "")) == named


def test_a_curve_names_its_levels_the_edges_of_caches_and_the_machines_limit(tmp_path):
    for make in (
        ladder.bandwidth,
        ladder.latency,
        ladder.levels,
        synthetic.MAKERS["limits.ceilings"],
    ):
        make(tmp_path)
    edge = {"L1 of one SM": 'memory_ladder.levels."L1 and shared memory".sm_bytes'}
    with using(synthetic.showing(root=tmp_path)):
        chased = page.curve("memory_ladder.latency", x="working_set_bytes", y="latency_s",
                            series="way", fit="levels", edges=edge)  # fmt: skip
        read = page.curve("memory_ladder.bandwidth", x="working_set_bytes", y="rate", series="op",
                          ceiling="copy")  # fmt: skip
        with pytest.raises(UnknownName):
            page.curve("memory_ladder.bandwidth", x="working_set_bytes", y="rate", series="op",
                       ceiling="copies")  # fmt: skip
    assert ">L1 of one SM, " in chased and chased.count(" ns</text>") >= 3
    assert ">copy, " in read and ">copy, " not in chased


def test_calls_in_order_lie_evenly_and_sizes_do_not():
    calls, sizes = (
        loglog._over_x([(x, str(x)) for x in many], "", 600).to_dict()["scale"]
        for many in (range(2, 21), [2**power for power in range(1, 13)])
    )
    assert calls.get("type") != "log" and calls["domain"] == [1.5, 20.5]
    assert sizes["type"] == "log"
