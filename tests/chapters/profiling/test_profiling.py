"""Profiled steps without a GPU: what the tables hold, and the claims."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from torch.autograd import DeviceType

from anatomy.chapters.profiling import calculations, figures, profiling, requirements
from anatomy.chapters.profiling.profiling import AGAIN, BOTH, OFF, SMALL
from anatomy.chapters.profiling.requirements import LARGE
from anatomy.figures.diagrams.timelines import timeline
from anatomy.page import show
from anatomy.record.showing import using
from anatomy.table.errors import UnknownName
from tests.chapters.profiling import profiling_rows
from tests.fakes import synthetic
from tests.fakes.verdicts import words


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    """Steps that take no time, and few of them."""
    tiny = requirements.Size(width=64, layers=1, batch=1, tokens=4)
    monkeypatch.setattr(requirements, "SIZES", dict.fromkeys(requirements.SIZES, tiny))
    monkeypatch.setattr(profiling, "STEPS", 1)
    monkeypatch.setattr(profiling, "WARM_UPS", 1)


def test_every_option_is_timed_and_adds_events_but_what_needs_a_gpu():
    table = profiling.overhead("cpu", rounds=1)
    steps = table[table.op == SMALL].set_index("variant")
    gone = steps[steps.note.notna()]
    assert set(gone.index) == {"GPU", BOTH} and gone.note.str.contains("needs a GPU").all()
    there = steps.drop(index=gone.index)
    assert there.median_s.gt(0).all() and set(there.role) == {"control", "variant", "again"}
    assert there.event_count.drop([OFF, AGAIN]).gt(20).all()
    assert there.trace_bytes.drop([OFF, AGAIN]).gt(1000).all()
    # Shapes and stacks are in the trace, so that it is longer.
    assert there.trace_bytes["record_shapes"] > there.trace_bytes["CPU"]
    assert there.trace_bytes["with_stack"] > there.trace_bytes["CPU"]


def test_parts_of_the_traced_step_follow_each_other_and_hold_its_operators():
    table = profiling.trace("cpu")
    parts = table[table.lane == "step"].set_index("variant")
    assert list(parts.index) == ["forward", "backward", "optimizer"]
    assert parts.start_s.is_monotonic_increasing and (parts.end_s > parts.start_s).all()
    gelu = table[table.variant == "aten::gelu"].iloc[0]
    assert parts.start_s["forward"] <= gelu.start_s and gelu.end_s <= parts.end_s["forward"]
    assert set(table.run) == {SMALL} and table.start_s.min() == 0


def test_operators_that_launch_nothing_stay_only_where_they_are_outermost():
    def event(lane, kind, start, end):
        return {"lane": lane, "kind": kind, "start_s": start, "end_s": end}

    rows = [
        event("PyTorch", "operator", 0, 9),
        event("PyTorch", "operator", 1, 2),  # a view inside of a linear layer
        event("PyTorch", "operator", 3, 8),
        event("CPU", "launch", 4, 5),
        event("PyTorch", "operator", 10, 11),
    ]
    assert profiling._telling(rows) == [rows[0], *rows[2:]]


def test_the_table_of_operators_has_own_times_and_times_with_what_they_call():
    table = profiling.averages("cpu").set_index("variant")
    calls = table[table.ran_on == "CPU"]
    assert (calls.total_host_s >= calls.self_host_s - 1e-9).all()
    assert list(table.index[table.ran_on == "GPU"]) == ["no kernel"]
    assert not table.index.str.startswith(profiling.OURS).any()
    assert table.calls_a_step["aten::addmm"] == 4, "one layer has four, forward"
    assert (calls.calls_a_step % 1 == 0).all(), "each step is whole, and the first is left out"


def test_waits_of_the_driver_are_no_kernels_in_the_table(monkeypatch):
    """On a GPU's timeline our own wait at the end is an event, too, and longer than any kernel."""

    def event(key, device, host_us, device_us):
        times = dict.fromkeys(profiling.TIMES.values(), 0.0)
        times |= {"self_cpu_time_total": host_us, "self_device_time_total": device_us}
        return SimpleNamespace(key=key, device_type=device, count=2, **times)

    seen = [event("aten::mm", DeviceType.CPU, 9.0, 5.0), event("gemm", DeviceType.CUDA, 0.0, 5.0)]
    seen += [event("Context Sync", DeviceType.CUDA, 0.0, 900.0)]
    profiled = SimpleNamespace(key_averages=lambda: seen, step=lambda: None)
    monkeypatch.setattr(profiling, "training_step", lambda op, where: lambda: None)
    monkeypatch.setattr(profiling, "profile", lambda **given: nullcontext(profiled))
    table = profiling.averages("cpu")
    assert list(table.variant) == ["aten::mm", "gemm"] and list(table.ran_on) == ["CPU", "GPU"]


@pytest.mark.parametrize(
    ("slower", "busy", "expected"),
    [
        ({}, {}, ["holds", "holds", "holds", "holds"]),
        ({SMALL: {"with_stack": 0.9}}, {}, ["fails", "holds", "fails", "holds"]),
        ({SMALL: {"with_stack": 2.0}}, {SMALL: 3e-3}, ["holds", "holds", "fails", "fails"]),
        ({LARGE: {BOTH: 1.3, "with_stack": 2.0}}, {}, ["holds", "fails", "holds", "holds"]),
    ],
)
def test_what_a_profiler_costs(slower, busy, expected, tmp_path, monkeypatch):
    for op, ways in slower.items():
        monkeypatch.setitem(profiling_rows.SLOWER, op, profiling_rows.SLOWER[op] | ways)
    monkeypatch.setattr(profiling_rows, "BUSY_S", profiling_rows.BUSY_S | busy)
    profiling_rows.overhead(tmp_path)
    names = "profilers-slow-the-host", "gpu-bound-steps-hardly-feel-it"
    names += "stacks-cost-the-most", "small-steps-leave-the-gpu-idle"
    assert words(tmp_path, *names) == expected


def test_idling_is_what_kernels_leave_of_the_step(tmp_path):
    profiling_rows.overhead(tmp_path)
    rows = synthetic.showing(tmp_path).find("profiling.overhead").recording.rows
    idle = {row["variant"]: row.get("gpu_idle_share") for row in rows if row["op"] == SMALL}
    assert idle[OFF] == pytest.approx(0.75, abs=0.01)
    assert idle[BOTH] == pytest.approx(1 - 1 / 7.2, abs=0.01), "a profile stretches the gaps"
    assert idle["CPU"] is None


def test_without_a_kernel_a_row_still_has_an_idle_share_to_refer_to(tmp_path, monkeypatch):
    monkeypatch.setattr(profiling_rows, "BUSY_S", dict.fromkeys(profiling_rows.BUSY_S))
    profiling_rows.overhead(tmp_path)
    rows = synthetic.showing(tmp_path).find("profiling.overhead").recording.rows
    assert all(row["gpu_idle_share"] is None for row in rows)
    assert words(tmp_path, "small-steps-leave-the-gpu-idle") == ["not measurable here"]


def test_rows_are_placed_by_their_own_time_on_their_side(tmp_path):
    profiling_rows.averages(tmp_path)
    rows = synthetic.showing(tmp_path).find("profiling.averages").recording.rows
    places = {row["variant"]: (row.get("host_place"), row.get("kernel_place")) for row in rows}
    assert places["cudaLaunchKernel"] == (1, None) and places["void gemm()"] == (None, 1)
    with using(synthetic.showing(tmp_path)):
        drawn = show("profiling.averages", columns=["short_name"], first=("host_place", 2))
        with pytest.raises(UnknownName):
            show("profiling.averages", first=("place", 2))
    assert drawn.index("cudaLaunchKernel") < drawn.index("aten::mm") and "gemm" not in drawn


def test_kernels_have_names_that_fit_a_line_and_say_what_they_apply(tmp_path, monkeypatch):
    space = "at::native::(anonymous namespace)::"
    name = f"void {space}multi_tensor_apply_kernel<{space}TensorListMetadata<2>, {space}LerpFunctor"
    monkeypatch.setattr(profiling_rows, "KERNEL", f"{name}<float>>(int)")
    profiling_rows.averages(tmp_path)
    with using(synthetic.showing(tmp_path)):
        drawn = show("profiling.averages", columns=["short_name", "kernel_place"])
    assert "multi_tensor_apply_kernel LerpFunctor" in drawn and "aten::mm" in drawn


def test_the_timeline_names_the_parts_over_the_lanes(tmp_path):
    profiling_rows.trace(tmp_path)
    with using(synthetic.showing(tmp_path)):
        drawn = timeline("profiling.trace")
    assert all(f">{part}</text>" in drawn for part in ("forward", "backward", "optimizer"))
    assert "Chrome trace</a>, 12 events" in drawn


def test_the_first_kernels_each_have_an_arrow_from_their_launch_and_the_pause_between_them(
    tmp_path,
):
    profiling_rows.trace(tmp_path)
    with using(synthetic.showing(tmp_path)):
        drawn = figures.first_kernels(2)
    wide = drawn.partition("</svg>")[0]
    assert wide.count("<polygon") == 2 and "GPU idle: 70.0 µs" in wide, "from 60 to 130 µs"


def test_exercises_are_calculated():
    assert calculations.trace_of_ten_thousand_steps(3e5) == pytest.approx(3e9)
    assert calculations.what_stacks_add(1.6, 1.4) == pytest.approx(0.2)
