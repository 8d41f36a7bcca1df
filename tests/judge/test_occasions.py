"""What several occasions say together: coverage simulated where the truth is known."""

from statistics import median

import numpy as np
import pytest

from anatomy import judge
from anatomy.judge import again, occasions, replication
from anatomy.judge.comparisons import Circumstances
from anatomy.judge.occasions import Seen, pooled, remaining, span
from anatomy.judge.pace import EITHER, class_of, of_ratio, paced_by
from anatomy.table.intervals import Interval

ROWS, RECORDINGS = 40, 30
NO_REACH = {"GPU": {"median_s": 1.0, "ratio": 1.0}}
REACH = {
    "GPU": {"median_s": 1.02, "ratio": 1.01},
    "host": {"median_s": 1.5, "ratio": 1.1},
    "GPU and host": {"ratio": 1.3},
}
PACES = [  # of a control and its variant, and of their ratio
    *[("GPU", "GPU", "GPU"), ("host", "host", "host")],
    *[("GPU", "host", "GPU and host"), ("host", "GPU", "GPU and host")],
]
REACH = {
    "GPU": {"median_s": 1.02, "ratio": 1.01},
    "host": {"median_s": 1.5, "ratio": 1.1},
    "GPU and host": {"ratio": 1.3},
}


def drawn(generator, *, occasions, spread, shared):
    """Recordings of rows: what each occasion found, and what the next one will.

    How much a row differs from occasion to occasion differs from row to row; in each recording a
    host of its own slows all rows of an occasion alike by `shared`. Block intervals know nothing of
    either.
    """
    found = []
    for _ in range(RECORDINGS):
        own = spread * generator.lognormal(0.0, 1.0, (ROWS, 1))
        draws = own * generator.standard_normal((ROWS, occasions + 1))
        draws += shared * generator.standard_normal(occasions + 1)
        table = []
        for logs in draws:
            half = generator.lognormal(-6.5, 0.5, occasions)
            seen = [Interval(*np.exp([m, m - h, m + h])) for m, h in zip(logs, half, strict=False)]
            table.append((Seen({}, 0, "GPU", "median_s", tuple(seen)), float(np.exp(logs[-1]))))
        found.append(table)
    return found


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize(("spread", "shared"), [(0.003, 0.0), (0.003, 0.01), (0.05, 0.2)])
def test_what_is_shown_holds_what_a_later_occasion_finds(count, spread, shared):
    generator = np.random.default_rng(11)
    recordings = drawn(generator, occasions=count, spread=spread, shared=shared)
    figures = [each for table in recordings for each, _ in table]
    factor = pooled(figures)["GPU"]["median_s"]
    held = own = 0
    for each, later in (pair for table in recordings for pair in table):
        low, high = span(each.found, factor)
        held += low <= later <= high
        own += each.found[-1].low <= later <= each.found[-1].high
    total = RECORDINGS * ROWS
    assert held / total >= 0.95
    assert own / total < 0.5, "blocks alone would not have held it"


def test_leaving_recordings_out_holds_about_what_was_asked_for():
    recordings = drawn(np.random.default_rng(5), occasions=2, spread=0.003, shared=0.005)
    (found,) = again.agreements([[each for each, _ in table] for table in recordings])
    assert (found.rows, found.asked) == (RECORDINGS * ROWS, 2 * RECORDINGS * ROWS)
    assert found.held / found.asked == pytest.approx(0.95, abs=0.02)


def test_rows_that_agree_are_widened_by_what_their_class_needs_and_no_more():
    alike = [Seen({}, 0, "GPU", "ratio", (Interval(1, 0.999, 1.001),) * 2) for _ in range(95)]
    apart = Seen({}, 0, "GPU", "ratio", (Interval(1, 1, 1), Interval(2, 2, 2)))
    assert pooled([*alike, apart])["GPU"]["ratio"] == 1.0
    assert pooled([*alike[:18], apart])["GPU"]["ratio"] == 2.0  # of few rows the farthest


def test_a_few_rows_take_the_farthest_and_classes_are_apart():
    def seen(pace, factor):
        found = Interval(1.0, 1.0, 1.0), Interval(factor, factor, factor)
        return Seen({}, 0, pace, "median_s", found)

    factors = pooled([seen("GPU", 1.01), seen("GPU", 1.03), seen("host", 1.5)])
    assert factors == {"GPU": {"median_s": 1.03}, "host": {"median_s": 1.5}}


# Of a table.


def table(ratio=0.9, noise=0.001):
    """Control, variant and duplicate of one comparison, on a GPU, of 24 blocks."""
    generator = np.random.default_rng(3)
    drift = 1e-4 * (1 + 0.01 * generator.standard_normal(24))
    rows = []
    for variant, role, factor in (("a", "control", 1), ("b", "variant", ratio), ("a+", "again", 1)):
        blocks = factor * drift * (1 + noise * generator.standard_normal(24))
        row = {"op": "x", "variant": variant, "role": role, "quantity": "gpu_warm"}
        row |= {"blocks_s": blocks.tolist(), "launch_inclusive": False, "device": "cuda"}
        rows.append(row | {"control": None if role == "control" else "a"})
    return rows


def earlier(rows, factor=1.0, of_variant=1.0):
    """What an occasion found on which all took longer by one factor, the variant by another too."""
    found = {name: [] for name in occasions.FIGURES}
    for row in judge.judged(rows):
        slower = factor * (of_variant if row["role"] == "variant" else 1.0)
        for name in occasions.FIGURES:
            by = slower if name.endswith("_s") else slower / factor
            found[name].append(row[name] and row[name] * by)
    return found


def test_an_interval_covers_what_differed_and_the_figure_is_the_newest():
    rows = table()
    alone = judge.judged(rows)
    before = [earlier(rows, 1.2), earlier(rows, 0.9)]
    found = judge.judged(rows, Circumstances(earlier=before))
    for one, wide in zip(alone, found, strict=True):
        assert wide["median_s"] == one["median_s"] and wide["occasions"] == 3
        assert wide["occasion_medians_s"] == pytest.approx(
            [1.2 * one["median_s"], 0.9 * one["median_s"], one["median_s"]]
        )
        assert wide["low_s"] <= 0.9 * one["low_s"] and wide["high_s"] >= 1.2 * one["high_s"]
    assert "occasions" not in alone[1], "one occasion keeps the interval of its blocks"
    assert found[1]["verdict"] == alone[1]["verdict"] == "faster"


@pytest.mark.parametrize("running", [0.7, 1.3])  # a profile may have seen a lower clock
def test_no_host_makes_a_step_shorter_than_its_kernels_run(running):
    rows = [row | {"quantity": "step_wall", "enqueue_s": 1.0} for row in table(noise=0)]
    rows = [row | {"busy_s": running * row["blocks_s"][0]} for row in rows]
    reach = {"GPU": {"median_s": 1.1}, "host": {"median_s": 2.0}}
    known = Circumstances(earlier=[earlier(rows, 1.2)], reach=lambda: reach)
    for row, alone in zip(judge.judged(rows, known), judge.judged(rows), strict=True):
        assert row["low_s"] == pytest.approx(min(row["busy_s"], alone["low_s"]) / 1.1)
        assert row["low_s"] <= row["median_s"] <= row["high_s"]


def test_a_verdict_that_occasions_do_not_share_is_undecided_and_none_gets_stronger():
    rows = table()
    turned = judge.judged(rows, Circumstances(earlier=[earlier(rows, of_variant=1.2)]))[1]
    assert turned["ratio_high"] > 1.0 and turned["verdict"] == "undecided"
    open_ = judge.judged(table(ratio=1.001), Circumstances(earlier=[earlier(rows)]))
    assert open_[1]["verdict"] == "undecided"
    assert open_[0]["verdict"] == "control" and open_[2]["verdict"] == "again"


def test_the_noise_floor_is_not_widened():
    rows = table()
    alone, found = judge.judged(rows), judge.judged(rows, Circumstances(earlier=[earlier(rows, 2)]))
    for name in ("noise_floor", "ratio_low", "ratio_high"):
        assert found[2][name] == alone[2][name]


def test_the_reach_of_the_machine_counts_before_that_of_the_table():
    rows = table()
    reach = {"GPU": {"median_s": 1.5, "ratio": 1.25}}
    known = Circumstances(earlier=[earlier(rows)], reach=lambda: reach)
    alone, found = judge.judged(rows)[1], judge.judged(rows, known)[1]
    assert found["high_s"] == pytest.approx(1.5 * alone["high_s"])
    assert found["ratio_low"] == pytest.approx(alone["ratio_low"] / 1.25)
    assert found["verdict"] == "undecided"
    assert found["reach"] == 1.25


def paced(control, variant):
    """The table with these who pace its rows."""
    host = [who == "host" for who in (control, variant, control)]
    return [row | {"launch_inclusive": it} for row, it in zip(table(), host, strict=True)]


@pytest.mark.parametrize(("control", "variant", "pace"), PACES)
def test_a_ratio_reaches_as_far_as_those_of_rows_with_its_paces(control, variant, pace):
    rows = paced(control, variant)
    known = Circumstances(earlier=[earlier(rows)], reach=lambda: REACH)
    alone, found = judge.judged(rows)[1], judge.judged(rows, known)
    assert found[1]["ratio_high"] == pytest.approx(REACH[pace]["ratio"] * alone["ratio_high"])
    assert found[1]["high_s"] == pytest.approx(REACH[variant]["median_s"] * alone["high_s"])
    assert (found[1]["reach"], found[1]["reach_mixed"]) == (REACH[variant]["ratio"], 1.3)
    for over, under in ((0, 1), (1, 0)):
        own = replication.ratio(found[over], found[under]).interval
        wide = occasions.ratio(found[over], found[under]).interval
        assert wide.high == pytest.approx(REACH[pace]["ratio"] * own.high)
        assert wide.low == pytest.approx(own.low / REACH[pace]["ratio"])


def test_where_no_mixed_ratio_was_seen_one_reaches_as_far_as_the_hosts():
    rows = paced("GPU", "host")
    alone = judge.judged(rows)[1]
    for reach, factor in (({n: REACH[n] for n in ("GPU", "host")}, 1.1), (NO_REACH, 1.0)):
        known = Circumstances(earlier=[earlier(rows)], reach=lambda reach=reach: reach)
        control, variant, _ = judge.judged(rows, known)
        assert variant["ratio_high"] == pytest.approx(factor * alone["ratio_high"])
        assert variant["reach_mixed"] == control["reach_mixed"] == factor


def test_a_ratio_of_rows_whose_pace_is_not_known_counts_as_mixed():
    for who in (None, "GPU", "host"):
        assert of_ratio(None, who) == of_ratio(who, None) == "GPU and host"


@pytest.mark.parametrize(
    ("asking", "running", "quantity", "found"),
    [
        (0.6, None, "step_wall", EITHER),  # and its kernels were not timed
        (0.6, 0.9, "step_wall", "GPU"),
        (0.9, None, "step_wall", "host"),
        (None, None, "step_wall", None),
        (0.6, None, "host_enqueue", "host"),
    ],
)
def test_a_step_of_which_the_hosts_part_alone_is_known_is_of_a_class_of_its_own(
    asking, running, quantity, found
):
    row = {"quantity": quantity, "median_s": 1.0, "enqueue_s": asking, "busy_s": running}
    assert class_of(row | {"paced_by": paced_by(row)}) == found


def test_what_either_paces_reaches_as_far_as_its_own_class():
    rows = [
        row | {"quantity": "step_wall", "enqueue_s": asking * median(row["blocks_s"])}
        for row, asking in zip(table(), (0.2, 0.6, 0.2), strict=True)
    ]
    reach = REACH | {EITHER: {"median_s": 1.2, "ratio": 1.15}}
    alone = judge.judged(rows)
    found = judge.judged(rows, Circumstances(earlier=[earlier(rows)], reach=lambda: reach))
    assert [class_of(row) for row in found] == ["GPU", EITHER, "GPU"]
    assert found[1]["high_s"] == pytest.approx(1.2 * alone[1]["high_s"])
    assert found[1]["ratio_high"] == pytest.approx(1.15 * alone[1]["ratio_high"])
    wide, own = (f(found[1], found[0]).interval for f in (occasions.ratio, replication.ratio))
    assert wide.high == pytest.approx(1.15 * own.high)
    assert of_ratio(EITHER, "host") == of_ratio("host", EITHER) == "GPU and host"


def test_a_table_without_a_reach_pools_mixed_ratios_by_themselves():
    rows = [*table(), *(row | {"op": "y"} for row in paced("GPU", "host"))]
    before = earlier(rows)
    before["ratio"][4] *= 3
    _, pure, _, _, mixed, _ = judge.judged(rows, Circumstances(earlier=[before]))
    assert pure["reach"] == 1.0 and pure["reach_mixed"] == mixed["reach_mixed"] > 2.9


def test_a_ratio_to_another_row_covers_the_occasions_of_both():
    rows = table()
    known = Circumstances(earlier=[earlier(rows, of_variant=1.3)], reach=lambda: NO_REACH)
    control, variant, _ = judge.judged(rows, known)
    found = occasions.ratio(variant, control)
    assert found.interval.median == pytest.approx(variant["ratio"])
    assert found.interval.high == pytest.approx(1.3 * variant["ratio"], rel=0.01)
    assert found.interval.low == pytest.approx(variant["ratio"], rel=0.01)


def test_what_an_occasion_lacks_is_left_out_and_its_place_is_kept():
    rows = table()
    lacking = earlier(rows)
    lacking["median_s"][1] = None
    del lacking["ratio"]
    found = judge.judged(rows, Circumstances(earlier=[lacking, earlier(rows, 1.1)]))[1]
    assert found["occasions"] == 2
    assert found["occasion_medians_s"][0] is None and found["occasion_ratios"][0] is None
    assert len(found["occasion_ratios"]) == 3


def test_what_a_row_says_itself_of_its_occasions_is_unread():
    rows = [row | dict.fromkeys(judge.STANDING, "far") for row in table()]
    for row in judge.judged(rows):
        assert {row[name] for name in occasions.COLUMNS} == {None} and row["paced_by"] == "GPU"


def test_ends_that_a_row_without_blocks_has_of_its_own_are_kept():
    """A row that was measured by others: its interval is widened on reading, and never lost."""
    row = {"op": "x", "variant": "a", "median_s": 1.0, "low_s": 0.9, "high_s": 1.1}
    known = Circumstances(earlier=[{"median_s": [1.2]}], reach=lambda: REACH)
    assert judge.judged([row], known)[0]["low_s"] == pytest.approx(0.9 / 1.5)
    assert judge.kept([row], known) == [row]


@pytest.mark.parametrize(
    ("word", "low", "high", "left"),
    [
        ("faster", 0.5, 0.99, "faster"),
        ("faster", 0.5, 1.0, "undecided"),
        ("slower", 1.01, 2.0, "slower"),
        ("slower", 0.99, 2.0, "undecided"),
        ("same", 0.995, 1.005, "same"),
        ("same", 0.9, 1.005, "undecided"),
        ("undecided", 0.5, 0.6, "undecided"),
        ("impossible", 0.5, 2.0, "impossible"),
        (None, 0.5, 2.0, None),
    ],
)
def test_a_verdict_remains_where_the_wider_interval_shows_it(word, low, high, left):
    assert remaining(word, low, high) == left


def test_rows_are_matched_by_what_they_are_called_and_never_by_chance():
    here = [{"op": "x", "variant": name} for name in ("a", "b", "c", "c")]
    there = [{"op": "x", "variant": name} for name in ("b", "a", "c", "d")]
    assert occasions.matching(here, there, "contiguity.bench") == [1, 0, None, None]


@pytest.mark.parametrize(
    ("row", "who"),
    [
        ({"quantity": "host_enqueue"}, "host"),
        ({"quantity": "gpu_warm", "enqueue_s": 9.0, "median_s": 1.0}, "GPU"),
        ({"quantity": "gpu_cold", "launch_inclusive": True}, "host"),
        ({"quantity": "step_wall", "enqueue_s": 0.8, "median_s": 1.0}, "host"),
        ({"quantity": "step_wall", "enqueue_s": 0.7, "median_s": 1.0}, None),
        ({"quantity": "step_wall", "enqueue_s": 0.5, "median_s": 1.0}, "GPU"),
        ({"quantity": "step_wall", "enqueue_s": 1.0, "busy_s": 0.8, "median_s": 1.0}, "GPU"),
        ({"quantity": "host_enqueue", "busy_s": 0.8, "median_s": 1.0}, "GPU"),
        ({"quantity": "host_enqueue", "busy_s": 0.7, "median_s": 1.0}, "host"),
        ({"quantity": "step_wall", "enqueue_s": 0.7, "busy_s": 0.6, "median_s": 1.0}, "host"),
        ({"quantity": "step_wall", "median_s": 1.0}, None),
        ({"quantity": "host_enqueue", "device": "cpu"}, None),
    ],
)
def test_each_time_is_paced_by_the_gpu_or_by_the_host(row, who):
    assert paced_by(row) == who


# Counts.


@pytest.mark.parametrize("pace", ["GPU", "host", "GPU and host"])
def test_agreement_counts_overlaps_verdicts_and_what_turned_round(pace):
    row = {"noise_floor": 0.001, "runs": 1}

    def seen(*middles):
        found = tuple(Interval(m, 0.99 * m, 1.01 * m) for m in middles)
        return Seen(row, 0, pace, "ratio", found)

    tables = [[seen(0.5, 0.505), seen(0.5, 2.0)], [], [seen(1.5, 1.0)]]
    (found,) = again.agreements(tables)
    assert (found.pace, found.figure, found.rows) == (pace, "ratio", 3)
    assert (found.overlap, found.kept, found.turned) == (1, 1, 1)
    assert found.half == pytest.approx(0.5)
    assert again.agreements([[], []]) == []


def test_what_a_topic_reckons_knows_of_earlier_occasions():
    rows = [row | {"quantity": "step_wall", "kernels_each": 1} for row in table(ratio=1.2)]
    known = Circumstances(experiment="synchronizations.costs", earlier=[earlier(rows, 1, 1.5)])
    control, row = judge.judged(rows, known)[:2]
    before_s = row["occasion_medians_s"][0] - control["occasion_medians_s"][0]
    assert row["wait_s"] < before_s <= row["wait_high_s"]


def test_a_row_without_a_time_is_paced_by_nobody():
    untimed = {"op": "matmul", "quantity": "gpu_warm", "variant": "too large"}
    assert "paced_by" not in judge.judged([*table(), untimed])[-1]


@pytest.mark.parametrize(
    ("factor", "word"), [(1.0, "faster"), (0.98, "faster"), (2.0, None), (100.0, None)]
)
def test_what_every_occasion_found_alike_is_kept_beside_an_open_verdict(factor, word):
    rows = table()
    before = earlier(rows)
    before["ratio"][1] *= factor
    before["ratio_low"][1] *= factor
    before["ratio_high"][1] *= factor
    reach = {"GPU": {"median_s": 9.0, "ratio": 9.0}}
    known = Circumstances(earlier=[before], reach=lambda: reach)
    found = judge.judged(rows, known)[1]
    assert (found["verdict"], found["on_each_occasion"]) == ("undecided", word)
