"""Waits, copies and the Never list: what is asked, what is said of it, and what can't be."""

import json
import warnings
from types import SimpleNamespace

import pandas as pd
import pytest
import torch

from anatomy import claims
from anatomy.chapters.never import never
from anatomy.chapters.sync_points import synchronizations
from anatomy.chapters.sync_points.lines import CANDIDATES, QUEUES, tensors_on
from anatomy.numerics import agreement
from anatomy.parts import grid
from anatomy.record import recording
from tests.fakes import synthetic
from tests.fakes.fake_stopwatch import Fake, FakeStopwatch

CPU = torch.device("cpu")
OURS = {
    "hidden-synchronizations": "synchronizations.detected",
    "to-device-synchronizes": "transfers.to_device",
    "measure-first": "synchronizations.costs",
    "late-readback-costs-less": "synchronizations.costs",
    "never-ping-pong": "never.costs",
    "never-without-warm-up": "never.costs",
    "never-default-initialization": "never.costs",
    "hardware-admits-no-interpretation": "limits.ceilings",
}


def verdict(root, name):
    synthetic.MAKERS[OURS[name]](root)
    return claims.evaluate(synthetic.showing(root=root), name)


def edited(root, name, change):
    """The verdict after every row of the claim's recording went through `change`."""
    experiment = OURS[name]
    synthetic.MAKERS[experiment](root)
    (file,) = (root / synthetic.MACHINE / experiment).glob("*.json")
    data = json.loads(file.read_text())
    for row in data["rows"]:
        change(row)
    data["rows"] = synthetic.as_said(data["rows"])
    recording.save(data, root)
    return claims.evaluate(synthetic.showing(root=root), name)


@pytest.fixture
def watched(monkeypatch):
    """A GPU's debug mode that a test can set off: `watched.sync()` is a wait that it sees."""
    state = SimpleNamespace(mode=0, modes=[])

    def switch(mode):
        state.mode = mode
        state.modes.append(mode)

    def sync():
        if state.mode == "warn":
            warnings.warn("called a synchronizing CUDA operation", stacklevel=1)

    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: state.mode)
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", switch)
    state.sync = sync
    return state


@pytest.mark.parametrize(
    ("name", "word"),
    [  # what the made-up machine makes true and false
        ("hidden-synchronizations", claims.HOLDS),
        ("to-device-synchronizes", claims.HOLDS),
        ("measure-first", claims.HOLDS),
        ("late-readback-costs-less", claims.INCONCLUSIVE),
        ("never-ping-pong", claims.INCONCLUSIVE),
        ("never-without-warm-up", claims.HOLDS),
        ("never-default-initialization", claims.FAILS),
        ("hardware-admits-no-interpretation", claims.FAILS),
    ],
)
def test_verdicts_follow_from_the_recordings(name, word, tmp_path):
    result = verdict(tmp_path, name)
    assert result.word == word, result.evidence
    assert any(letter.isdigit() for letter in result.evidence)


def test_a_line_that_does_not_wait_is_told_apart(tmp_path):
    def free(row):
        if row["variant"] == "print(t)":
            row["waits"] = False

    result = edited(tmp_path, "hidden-synchronizations", free)
    assert result.word == claims.IN_PART and "print does not wait" in result.evidence


def test_trials_that_disagree_decide_nothing_and_a_cpu_says_what_it_lacks(tmp_path):
    unclear = edited(
        tmp_path,
        "hidden-synchronizations",
        lambda row: row.update(waits=None, note="waited in some of 3 trials"),
    )
    assert unclear.word == claims.INCONCLUSIVE
    lacking = edited(
        tmp_path,
        "hidden-synchronizations",
        lambda row: row.update(waits=None, debug_mode_says=None, note="needs a GPU"),
    )
    assert (lacking.word, lacking.evidence) == (claims.NOT_MEASURABLE, "needs a GPU")


@pytest.mark.parametrize(
    ("ratio", "half", "word"),
    [(1.5, 0.01, claims.FAILS), (1.0, 0.01, claims.FAILS), (1.5, 0.4, claims.INCONCLUSIVE)],
)
def test_a_rule_that_holds_everywhere_needs_no_measurement(ratio, half, word, tmp_path):
    def same_everywhere(row):
        if row["role"] == "variant":
            row |= {"ratio": ratio, "ratio_low": ratio - half, "ratio_high": ratio + half}

    assert edited(tmp_path, "measure-first", same_everywhere).word == word


@pytest.mark.parametrize(
    ("factor", "pace", "word"),
    [
        (2.0, ("host", "GPU"), claims.FAILS),
        (2.0, ("host",), claims.IN_PART),
        (None, ("host", "GPU"), claims.NOT_MEASURABLE),
    ],
)
def test_a_late_readback_is_held_against_one_at_once(factor, pace, word, tmp_path):
    def slowed(row):
        if row["variant"] == "item a step late" and row["bound_by"] in pace:
            if factor is None:
                row |= dict.fromkeys(("median_s", "low_s", "high_s", "ratio"))
                row["note"] = "it was not run"
                return
            row["blocks_s"] = [factor * each for each in row["blocks_s"]]
        elif row["variant"] == "item a step late" and row["bound_by"] == "GPU":
            row["blocks_s"] = [0.8 * each for each in row["blocks_s"]]

    found = edited(tmp_path, "late-readback-costs-less", slowed)
    assert found.word == word
    if word == claims.IN_PART:
        assert found.condition.startswith("for steps whose pace the GPU sets")


def test_never_means_each_of_them(tmp_path):
    def slow(row):
        if row.get("role") == "variant" and row.get("ratio"):
            row["verdict"] = "slower"

    def even(row):
        if row.get("role") == "variant" and row.get("ratio"):
            row["verdict"] = "same"

    assert edited(tmp_path, "never-ping-pong", slow).word == claims.HOLDS
    assert edited(tmp_path, "never-ping-pong", even).word == claims.FAILS


def test_weights_that_train_nothing_are_not_counted(tmp_path):
    def faster(names):
        def change(row):
            if row["variant"] in names:
                row |= {"ratio": 0.8, "ratio_low": 0.79, "ratio_high": 0.81}

        return change

    name = "never-default-initialization"
    assert edited(tmp_path, name, faster(("zeros", "all equal"))).word == claims.FAILS
    assert edited(tmp_path, name, faster(("xavier", "normal, 0.02"))).word == claims.HOLDS


@pytest.mark.parametrize(
    ("mean_s", "word"),
    [(1e-3, claims.FAILS), (2e-3, claims.HOLDS), (1.02e-3, claims.INCONCLUSIVE)],
)
def test_a_warm_up_is_needed_where_the_mean_is_another_one_without(mean_s, word, tmp_path):
    def change(row):
        if row.get("call"):
            row["median_s"] = mean_s

    assert edited(tmp_path, "never-without-warm-up", change).word == word


def test_limits_need_no_reading_if_what_shares_one_reaches_one(tmp_path):
    def alike(row):
        if row.get("bytes"):
            row["bytes"] = row["median_s"] * 4e12
        if row.get("flops"):
            row["flops"] = row["median_s"] * 8e14

    name = "hardware-admits-no-interpretation"
    assert edited(tmp_path, name, alike).word == claims.HOLDS
    unsure = edited(tmp_path, name, lambda row: (alike(row), row.update(noise_floor=0.5)))
    assert unsure.word == claims.INCONCLUSIVE


def test_every_line_that_needs_no_gpu_runs_and_the_seeds_four_are_there():
    inputs = tensors_on(CPU)
    by_name = ("torch.cuda.synchronize()", "event.")
    ran = [name for name in CANDIDATES if not name.startswith(by_name)]
    for name in ran * 2:
        CANDIDATES[name][1](inputs)
    assert len(ran) > 35
    assert {"t[0].item()", "print(t)", "if (t > 0).any():", "large.to(gpu)"} <= set(ran)
    assert CANDIDATES["t.repeat_interleave(counts)"][1](inputs).numel() > 0


def test_both_witnesses_are_asked_and_may_differ(watched):
    watch = FakeStopwatch()
    waiting, free = Fake(watch, 1e-3, syncs=True), Fake(watch, 1e-3)
    honest = synchronizations._asked(lambda _: (watched.sync(), free()), None, watch)
    assert honest["debug_mode_says"] == "waits" and honest["warned"] == 1
    assert honest["waits"] is False and honest["agree"] is False
    watch.synchronizes = lambda call: True
    unseen = synchronizations._asked(lambda _: waiting(), None, watch)
    assert (unseen["debug_mode_says"], unseen["waits"]) == ("nothing", True)
    assert watched.modes[-1] == 0, "the process's own mode is put back"


def test_a_line_that_fails_is_a_row_and_the_mode_is_put_back(watched):
    def fails(_):
        if watched.mode == "warn":
            raise RuntimeError("in the middle of it")

    row = synchronizations._asked(fails, None, FakeStopwatch())
    assert row == {"note": "could not be called here: RuntimeError"} and watched.modes[-1] == 0


def test_one_interruption_is_no_wait():
    answers = iter([True, False, True])
    watch = FakeStopwatch()
    watch.synchronizes = lambda call: next(answers)
    assert synchronizations.waits_for_gpu(watch, lambda: None) is None
    watch.synchronizes = lambda call: True
    assert synchronizations.waits_for_gpu(watch, lambda: None) is True


def test_a_step_leaves_the_same_whether_it_is_read_or_not():
    x = torch.randn(64)
    ways = synchronizations.step_ways(x, 3)
    assert set(ways) == {"no readback", "item each step", "item a step late"}
    for call in (*ways.values(), *ways.values()):
        assert torch.equal(call(), x + 1)


def test_readbacks_are_what_their_references_say():
    calls, exact = synchronizations.readbacks(torch.tensor([0.5]))
    agreement.check(calls, exact)


def rows(**each_s):
    roles = ["control", *["variant"] * (len(each_s) - 1)]
    return pd.DataFrame(
        [
            {"variant": name, "role": role, "blocks_s": [each] * 6}
            for (name, each), role in zip(each_s.items(), roles, strict=True)
        ]
    )


def test_a_wait_and_a_use_are_what_a_step_takes_more_than_the_control():
    table = synchronizations.with_wait(rows(plain=1.0, read=1.5))
    assert pd.isna(table.wait_s[0]) and table.wait_s[1] == pytest.approx(0.5)
    table = never.per_use(rows(plain=1.0, loop=3.0, other=2.0), {"loop": 4})
    assert table.use_s[1] == pytest.approx(0.5) and table.uses[1] == 4
    assert pd.isna(table.use_s[0]) and pd.isna(table.use_s[2])


def test_counts_stay_whole_numbers_beside_rows_that_have_none():
    table = pd.concat([pd.DataFrame({"n": [2**26]}), pd.DataFrame({"m": [1]})], ignore_index=True)
    assert table.n.dtype == float
    assert list(grid.with_counts(table, "n").n) == [2**26, None]
    assert type(grid.with_counts(table, "n").n[0]) is int


def test_first_calls_are_one_each_and_warm_is_their_median_later(monkeypatch):
    monkeypatch.setattr(never, "WARM_S", 1e-3)
    watch = FakeStopwatch()
    call = Fake(watch, 1e-4, on_call=lambda n: setattr(call, "warm_s", 1e-2 if n == 1 else 1e-4))
    found = never._curve("first calls, fake", call, watch)
    *first, warm = found
    assert [row["call"] for row in first] == list(range(1, 21))
    assert first[0]["over_warm"] == pytest.approx(100) and first[1]["over_warm"] == 1.0
    assert warm["mean_over_warm"] == pytest.approx((100 + 19) / 20)


def test_queueing_kinds_are_controls_that_wait_for_nothing(tmp_path):
    synthetic.MAKERS["synchronizations.detected"](tmp_path)
    found = synthetic.showing(root=tmp_path).find("synchronizations.detected")
    kinds = {row["kind"]: row["waits"] for row in found.recording.data["rows"]}
    assert kinds[QUEUES] is False


def test_the_script_that_pages_show_names_the_lines_and_puts_the_mode_back(watched):
    from snippets import find_synchronizations as script

    (seen,) = script.waiting_lines(lambda: (watched.sync(), warnings.warn("of another kind")))  # noqa: B028
    assert seen.startswith("test_syncs.py:") and watched.modes == ["warn", 0]


@pytest.mark.parametrize("waiting", [True, False])
def test_the_script_asks_whether_the_queue_was_empty_when_the_line_returned(waiting, monkeypatch):
    from snippets import find_synchronizations as script

    gpu = SimpleNamespace(busy=False)

    def idle(device=None):
        gpu.busy = False

    event = SimpleNamespace(record=lambda: None, query=lambda: not gpu.busy)
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: setattr(gpu, "busy", True))
    monkeypatch.setattr(torch.cuda, "synchronize", idle)
    monkeypatch.setattr(torch.cuda, "Event", lambda: event)
    assert script.waits(idle if waiting else lambda: None) is waiting
