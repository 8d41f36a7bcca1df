"""Who paces a step, in words; and a slope that several occasions measured."""

import numpy as np
import pytest

from anatomy.judge import pace, payback, rows
from anatomy.judge.comparisons import Circumstances


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"enqueue_s": 3.0, "busy_s": 2.0, "median_s": 3.1}, "host-bound"),
        ({"enqueue_s": 2.7, "busy_s": 2.8, "median_s": 3.8}, "gap-bound"),
        ({"enqueue_s": 1.0, "busy_s": 2.8, "median_s": 2.9}, "GPU-bound"),
        ({"enqueue_s": 1.0, "busy_s": 3.0, "median_s": 2.9}, "GPU-bound"),
        ({"enqueue_s": 1.0, "median_s": 2.9}, "GPU-bound"),  # not profiled: gaps are not known
        ({"median_s": 2.9}, None),
        ({"busy_s": 2.8, "median_s": 2.9}, "GPU-bound"),  # however long the host is in the call
        ({"busy_s": 1.0, "median_s": 2.9}, None),
    ],
)
def test_a_step_is_bound_by_the_host_the_gpu_or_the_gaps_between_kernels(row, said):
    row |= {"paced_by": pace.of_step(row)}
    assert pace.bound_in_words(row) == said
    assert rows.derived(row, None)["bound"] == said  # what a page refers to


@pytest.mark.parametrize(("running", "who"), [(None, "host"), (1.0, "host"), (2.8, "GPU")])
def test_a_time_with_its_launch_is_the_gpus_where_kernels_run_for_most_of_it(running, who):
    row = {"quantity": "gpu_warm", "launch_inclusive": True, "median_s": 2.9, "busy_s": running}
    assert pace.paced_by(row) == who
    assert pace.paced_by(row | {"launch_inclusive": False}) == "GPU"


def chains(slopes: list[float]) -> list[dict]:
    """Rows of chains of 0, 10 and 20 views; a slope for each occasion, the newest last."""
    found = []
    for views in (0, 10, 20):
        medians = [1.0 + views * each for each in slopes]
        known = {"occasion_medians_s": medians} if len(slopes) > 1 else {}
        blocks = medians[-1] * np.linspace(0.999, 1.001, 12)
        row = {"op": "views", "quantity": "step_wall", "variant": f"{views} views", "views": views}
        row |= {"role": "variant" if views else "control", "launch_inclusive": False}
        row |= {"median_s": medians[-1], "blocks_s": list(blocks), "paced_by": "host"}
        found.append(row | known)
    return found


def slope_of(rows: list[dict], known: Circumstances | None = None) -> tuple[float, float]:
    names = ("view_s", "view_low_s", "view_high_s")
    found = [columns for _, columns in payback.slopes(rows, "views", names, known)]
    assert [each["view_s"] is None for each in found] == [True, True, False]
    assert found[-1]["view_s"] == pytest.approx(0.01, rel=1e-2)
    return found[-1]["view_low_s"], found[-1]["view_high_s"]


def test_the_interval_of_a_slope_spans_what_all_occasions_found():
    low, high = slope_of(chains([0.01]))
    assert slope_of(chains([0.02, 0.01])) == pytest.approx((low, 0.02))
    known = Circumstances(reach=lambda: {"host": {"median_s": 1.25}})
    assert slope_of(chains([0.005, 0.01]), known) == pytest.approx((0.004, high * 1.25))
    assert slope_of(chains([-0.004, 0.01]), known)[0] == pytest.approx(-0.005)


def test_what_a_row_takes_more_spans_the_occasions_that_measured_it():
    control, row = ({"blocks_s": [each] * 12, "median_s": each} for each in (1.0, 1.2))
    assert payback.extra(row, control).high == pytest.approx(0.2)
    control["occasion_medians_s"], row["occasion_medians_s"] = [1.0, None, 1.0], [1.5, 9.0, 1.2]
    row["paced_by"] = "host"
    known = Circumstances(reach=lambda: {"host": {"median_s": 2.0}})
    found = payback.extra(row, control, known, uses=2)
    assert (found.low, found.median, found.high) == pytest.approx((0.05, 0.1, 0.5))
