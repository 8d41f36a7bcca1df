"""The ladder's tables where all ways are of one rung, and what is computed over the rung before."""

from anatomy.chapters.ladder.shown import tables
from anatomy.chapters.ladder.shown.tables import View
from anatomy.judge import rows

STEP = {"op": "step", "quantity": "step_wall", "rung": "3_compile"}
CONTROL = STEP | {"variant": "3 default", "role": "control", "median_s": 4e-3}
FASTER = STEP | {"variant": "3 reduce-overhead", "role": "variant", "control": "3 default"}
FASTER |= {"median_s": 2e-3, "verdict": "faster", "ratio": 0.5, "ratio_low": 0.4, "ratio_high": 0.6}


def test_ways_of_one_rung_have_their_verdict_over_the_control():
    steps = [CONTROL, FASTER]
    html = tables.speeds(View(steps, steps, steps, None))
    assert "over the last rung" not in html and "over 3 default" in html
    assert html.count("faster") == 1


def test_the_speedup_over_the_rung_before_has_its_interval_the_other_way_round():
    row = {"ratio_before": 0.5, "ratio_before_low": 0.4, "ratio_before_high": 0.8}
    found = rows.derived(row, None)
    ends = [found[name] for name in ("speedup_before", *rows.INTERVALS["speedup_before"])]
    assert ends == [2.0, 1.25, 2.5]
    assert "speedup_before" not in rows.derived({"ratio": 0.5}, None)
