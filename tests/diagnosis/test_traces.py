"""A trace without a GPU: which events of a profile become rows, on which lane, and when."""

from types import SimpleNamespace

import pytest
from torch.autograd import DeviceType

from anatomy.diagnosis import profiles, traces


def _event(kind, name, start, end):
    return SimpleNamespace(
        device_type=kind, name=name, time_range=SimpleNamespace(start=start, end=end)
    )


def test_events_of_the_marked_steps_become_rows_from_zero():
    host, gpu = DeviceType.CPU, DeviceType.CUDA
    seen = [
        _event(host, "cudaLaunchKernel", 1.0, 2.0),  # of the step before the mark
        _event(gpu, "early_kernel", 2.0, 3.0),
        _event(host, profiles.STEP, 10.0, 50.0),
        _event(gpu, profiles.STEP, 12.0, 60.0),
        _event(host, "aten::mm", 11.0, 14.0),
        _event(host, "cudaLaunchKernelExC", 12.0, 13.0),
        _event(gpu, "void kernel<int>(int)", 20.0, 45.0),
        _event(host, "cudaMemcpyAsync", 21.0, 22.0),
        _event(gpu, "Memcpy DtoH (Device -> Pageable)", 46.0, 47.0),
        _event(host, "cudaStreamSynchronize", 23.0, 49.0),
        _event(host, "cudaDeviceSynchronize", 51.0, 70.0),  # ours, after the steps
        _event(host, "cudaGetDevice", 24.0, 25.0),
    ]
    rows = traces.events_of(seen, "a run")
    assert [(row["lane"], row["kind"]) for row in rows] == [
        *(("PyTorch", "operator"), ("CPU", "launch"), ("GPU", "kernel")),
        *(("CPU", "launch"), ("CPU", "wait"), ("GPU", "copy")),
    ]
    assert rows[0]["start_s"] == 0 and rows[2]["start_s"] == pytest.approx(9e-6)
    assert rows[2]["end_s"] == pytest.approx(34e-6)


def test_a_trace_without_its_mark_says_so():
    (row,) = traces.events_of([], "a run")
    assert "lost" in row["note"] and "start_s" not in row
