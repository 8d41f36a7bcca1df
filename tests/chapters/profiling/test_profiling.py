"""Profiled steps without a GPU: what the tables hold, and the claims."""

from contextlib import nullcontext
from itertools import pairwise
from types import SimpleNamespace

import pytest
from torch.autograd import DeviceType

from anatomy.chapters.profiling import calculations, figures, profiling, requirements
from anatomy.chapters.profiling.profiling import BOTH, SMALL
from anatomy.chapters.profiling.requirements import LARGE
from anatomy.figures.diagrams.timelines import timeline
from anatomy.page import show
from anatomy.record.showing import using
from anatomy.table.errors import UnknownName
from tests.chapters.profiling import profiling_rows
from tests.fakes import synthetic
from tests.fakes.sites import recorded
from tests.fakes.verdicts import words

CLAIMS = "profilers-slow-the-host", "gpu-bound-steps-hardly-feel-it"
CLAIMS += "stacks-cost-the-most", "small-steps-leave-the-gpu-idle"


@pytest.fixture
def tiny(monkeypatch):
    """Steps that take no time, and few of them."""
    size = requirements.Size(width=64, layers=1, batch=1, tokens=4)
    monkeypatch.setattr(requirements, "SIZES", {SMALL: size})
    monkeypatch.setattr(profiling, "STEPS", 1)
    monkeypatch.setattr(profiling, "WARM_UPS", 1)


@pytest.fixture
def shown(tmp_path):
    """Where made-up profiles lie, for what pages call."""
    profiling_rows.trace(tmp_path)
    profiling_rows.averages(tmp_path)
    with using(synthetic.showing(tmp_path)) as showing:
        yield showing


def test_every_option_is_timed_and_adds_events_but_what_needs_a_gpu(tiny):
    steps = profiling.overhead("cpu", rounds=1).set_index("variant")
    assert steps.note[["GPU", BOTH]].str.contains("needs a GPU").all()
    there = steps.drop(["GPU", BOTH])
    assert there.median_s.gt(0).all() and set(there.role) == {"control", "variant", "again"}
    profiled = there[there.role == "variant"]
    assert profiled.event_count.gt(20).all() and profiled.trace_bytes.gt(1000).all()
    # Shapes and stacks are in the trace, so that it is longer.
    assert profiled.trace_bytes[["record_shapes", "with_stack"]].min() > profiled.trace_bytes["CPU"]


def test_parts_of_the_traced_step_follow_each_other_and_hold_its_operators(tiny):
    table = profiling.trace("cpu")
    parts = table[table.lane == "step"].set_index("variant")
    assert tuple(parts.index) == profiling.PARTS and set(table.run) == {SMALL}
    assert parts.start_s.is_monotonic_increasing and (parts.end_s > parts.start_s).all()
    gelu = table[table.variant == "aten::gelu"].iloc[0]
    assert 0 == table.start_s.min() <= gelu.start_s and gelu.end_s <= parts.end_s["forward"]


def test_the_table_of_operators_has_own_times_and_times_with_what_they_call(tiny):
    table = profiling.averages("cpu").set_index("variant")
    assert list(table.index[table.ran_on == "GPU"]) == ["no kernel"]
    calls = table.drop("no kernel")
    assert (calls.total_host_s >= calls.self_host_s - 1e-9).all()
    assert not table.index.str.startswith(profiling.OURS).any()
    assert table.calls_a_step["aten::addmm"] == 4, "one layer has four, forward"
    assert (calls.calls_a_step % 1 == 0).all(), "each step is whole, and the first is left out"


def test_waits_of_the_driver_are_no_kernels_and_each_side_keeps_what_takes_longest(monkeypatch):
    def event(key, host_us, device_us, device=DeviceType.CPU):
        times = zip(profiling.TIMES.values(), (host_us, host_us, device_us, device_us), strict=True)
        return SimpleNamespace(key=key, device_type=device, count=2, **dict(times))

    # On a GPU's timeline our own wait at the end is an event, too, and longer than any kernel.
    seen = [event("Context Sync", 0.0, 900.0, DeviceType.CUDA), event("short", 0.1, 0.0)]
    seen += [event("aten::mm", 9.0, 5.0), event("gemm", 0.0, 5.0, DeviceType.CUDA)]
    seen += [event("long", 1.0, 0.0)] * (profiling.LISTED - 1)
    profiled = SimpleNamespace(key_averages=lambda: seen, step=lambda: None)
    monkeypatch.setattr(profiling, "training_step", lambda op, where: lambda: None)
    monkeypatch.setattr(profiling, "profile", lambda **given: nullcontext(profiled))
    table = profiling.averages("cpu")
    assert list(table.variant[:3]) == ["aten::mm", "gemm", "long"]
    assert list(table.ran_on[:3]) == ["CPU", "GPU", "CPU"] and "short" not in set(table.variant)


@pytest.mark.parametrize(
    ("op", "slower", "busy", "idle", "expected"),
    [
        (SMALL, {}, 1e-3, 0.75, ["holds", "holds", "holds", "holds"]),
        (SMALL, {"with_stack": 0.9}, 1e-3, 0.75, ["fails", "holds", "fails", "holds"]),
        (SMALL, {"with_stack": 2.0}, 3e-3, 0.25, ["holds", "holds", "fails", "fails"]),
        (LARGE, {BOTH: 1.3}, 1e-3, 0.75, ["holds", "fails", "holds", "holds"]),
        (SMALL, {}, None, None, ["holds", "holds", "holds", "not measurable here"]),
    ],
)
def test_what_a_profiler_costs(op, slower, busy, idle, expected, tmp_path, monkeypatch):
    monkeypatch.setitem(profiling_rows.SLOWER, op, profiling_rows.SLOWER[op] | slower)
    monkeypatch.setitem(profiling_rows.BUSY_S, SMALL, busy)
    profiling_rows.overhead(tmp_path)
    assert words(tmp_path, *CLAIMS) == expected
    small, *_ = synthetic.showing(tmp_path).find("profiling.overhead").recording.rows
    assert small["gpu_idle_share"] == (idle and pytest.approx(idle, abs=0.01))


def test_rows_are_placed_by_their_own_time_on_their_side_with_names_that_fit_a_line(shown):
    rows = shown.find("profiling.averages").recording.rows
    places = {row["short_name"]: (row.get("host_place"), row.get("kernel_place")) for row in rows}
    assert places["multi_tensor_apply_kernel LerpFunctor"] == (None, 1)
    assert places["cudaLaunchKernel"] == (1, None) and places["aten::mm"] == (2, None)
    drawn = show("profiling.averages", columns=["short_name"], first=("host_place", 2))
    assert drawn.index("cudaLaunchKernel") < drawn.index("aten::mm") and "Lerp" not in drawn
    with pytest.raises(UnknownName):
        show("profiling.averages", first=("place", 2))


def test_a_trace_has_its_parts_over_the_lanes_and_its_first_kernels_with_their_launches(shown):
    drawn = timeline("profiling.trace")
    assert all(f">{part}</text>" in drawn for part in profiling.PARTS)
    assert "Chrome trace</a>, 12 events" in drawn
    wide = figures.first_kernels(2).partition("</svg>")[0]
    assert wide.count("<polygon") == 2 and "GPU idle: 70.0 µs" in wide, "from 60 to 130 µs"
    assert wide.count(">mm</text>") == 2, "operators by their names"


def test_what_day_11_names_stands_over_the_longest_pause_that_was_recorded():
    calls = ["detach", "detach", "optimizer", "empty", "to", "lift_fresh", "detach_"]
    calls += ["_foreach_add_", *["add_"] * 24, "_foreach_mul_", "cudaLaunchKernel"]
    for each in recorded("profiling.trace"):
        rows = sorted(each.rows, key=lambda row: row["start_s"])
        ran = [row for row in rows if row["lane"] == "GPU"]
        pauses = ((one["end_s"], two["start_s"]) for one, two in pairwise(ran))
        begun, ended = max(pauses, key=lambda ends: ends[1] - ends[0])
        over = [row for row in rows if begun < row["start_s"] < ended]
        assert [row["variant"].removeprefix("aten::") for row in over] == calls
        assert over[3]["start_s"] - over[1]["end_s"] > (ended - begun) / 2, "for most of it none"


def test_exercises_are_calculated():
    assert calculations.trace_of_ten_thousand_steps(3e5) == pytest.approx(3e9)
    assert calculations.what_stacks_add(1.6, 1.4) == pytest.approx(0.2)
