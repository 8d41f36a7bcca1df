"""What curves say, on curves whose answer is known."""

import math

import numpy as np
import pytest

from anatomy.cli import ceilings as text
from anatomy.cli.output import show
from anatomy.figures.limits import curves
from anatomy.record import recording
from anatomy.record.provenance import schema
from tests.chapters.limits import ceilings_rows as ceilings
from tests.fakes import synthetic

CACHE = 2**20


def row(op, size, rate, way="a way", **more):
    seconds = size / rate
    return {
        "op": op, "variant": f"{size}, {way}", "way": way, "bytes": size, "median_s": seconds,
        "working_set_bytes": size, "cache_bytes": CACHE, "role": "variant",
    } | more  # fmt: skip


def curve(cache_rate=8e12, memory_rate=4e12, op="copy"):
    """A step between one and two caches."""
    sizes = [CACHE // 4, CACHE // 2, CACHE, 2 * CACHE, 4 * CACHE, 8 * CACHE]
    return [row(op, size, cache_rate if size <= CACHE else memory_rate) for size in sizes]


def test_the_plateaus_and_the_knee_of_a_step():
    (step,) = curves.steps(curve())
    assert curves.rate(step.cache) == pytest.approx(8e12)
    assert curves.rate(step.memory) == pytest.approx(4e12)
    # Half way between 8 and 4 on the logarithm of the size, between one cache and two.
    assert step.knee_bytes == pytest.approx(CACHE * math.sqrt(2))


def test_a_cache_no_faster_than_the_memory_has_no_knee():
    (step,) = curves.steps(curve(cache_rate=4.2e12))
    assert step.knee_bytes is None and step.cache and step.memory


def test_without_sets_beyond_the_cache_there_is_no_plateau_of_the_memory():
    (step,) = curves.steps(curve()[:3])
    assert step.memory is None and step.knee_bytes is None


def test_the_fastest_way_counts_and_what_is_impossible_or_missing_does_not():
    slow, quick = row("copy", CACHE, 1e12), row("copy", CACHE, 2e12, "another")
    wrong = row("copy", CACHE, 9e12, "wrong", verdict="impossible")
    missing = row("copy", CACHE, 9e12, "missing") | {"median_s": None}
    again = row("copy", CACHE, 9e12, "again", role="again")
    assert curves.fastest([slow, wrong, quick, missing, again]) == [quick]


def test_operations_stand_apart_and_sizes_rise():
    table = [*reversed(curve(op="read")), *curve(op="copy")]
    found = curves.fastest(table)
    assert [each["op"] for each in found] == ["read"] * 6 + ["copy"] * 6
    sizes = [each["working_set_bytes"] for each in found[:6]]
    assert sizes == sorted(sizes)


def inside(rate, fixed, way="a way", bend=1.0):
    """Rows of one way over sizes within the cache; `bend` times as long at the largest."""
    sizes = [CACHE // 8, CACHE // 4, 3 * CACHE // 8, CACHE // 2]
    times = [fixed + size / rate for size in sizes]
    times[-1] *= bend
    return [
        row("read", size, size / seconds, way, blocks_s=[seconds] * 12)
        for size, seconds in zip(sizes, times, strict=True)
    ]


def test_a_byte_more_costs_what_the_cache_needs_and_a_call_its_start_besides():
    small = row("read", 64, 1e9, blocks_s=[1.0] * 12)  # over before it is under way
    found = curves.marginals([small, *inside(6e12, 2e-6), *inside(3e12, 1e-6, "slower")])
    assert found["read"].rate.median == pytest.approx(6e12) and found["read"].way == "a way"
    assert found["read"].fixed.median == pytest.approx(2e-6)


def test_the_rate_of_a_byte_more_spans_what_any_one_size_makes_of_it():
    (found,) = curves.marginals(inside(6e12, 2e-6, bend=1.02)).values()
    assert found.rate.low < found.rate.median < 6e12 and found.rate.high == pytest.approx(6e12)


def test_times_on_no_line_and_too_few_sizes_have_no_rate():
    assert not curves.marginals(inside(6e12, 2e-6, bend=1.5))
    assert not curves.marginals(inside(6e12, 2e-6)[1:])


def test_a_line_gives_back_its_fixed_part_and_its_slope():
    fixed, each, lengths = 6e-6, 9e-7, (1, 10, 100, 1000)
    noise = 1 + 0.002 * np.random.default_rng(0).standard_normal((4, 24))
    blocks = [(fixed + each * n) * noise[i] for i, n in enumerate(lengths)]
    found = curves.line(lengths, blocks)
    assert found.fixed.low <= fixed <= found.fixed.high
    assert found.each.low <= each <= found.each.high
    assert found.fixed.median == pytest.approx(fixed, rel=0.01)
    assert found.strays < 0.005


def test_costs_that_are_no_line_stray_from_it():
    lengths = (1, 10, 100, 1000)
    straight = [[1e-6 * n] * 3 for n in lengths]
    assert curves.line(lengths, straight).strays < 1e-9
    bent = [*straight[:3], [2e-3] * 3]
    assert curves.line(lengths, bent).strays > 0.1


def graphs(*medians):
    return [
        {"op": "graph", "quantity": "step_wall", "role": "variant", "kernel_count": 10**power}
        | {"median_s": median, "low_s": median / 1.1, "high_s": 1.2 * median}
        for power, median in enumerate(medians)
    ]


def test_a_kernel_more_costs_what_the_longest_graphs_differ_by():
    bent = graphs(8e-6, 10e-6, 100e-6, 1000e-6)  # the host is the slower side of the first two
    found = curves.each_kernel(bent, "step_wall")
    assert found.median == pytest.approx(1e-6)
    assert (found.low, found.high) == pytest.approx((1e-6 / 1.1, 1.2e-6))
    assert curves.each_kernel(bent[:1], "step_wall") is None
    assert curves.each_kernel(bent, "gpu_warm") is None


@pytest.mark.parametrize(("lengths", "blocks"), [((), []), ((10,), [[1e-6]]), ((1, 10), [[], []])])
def test_a_line_through_too_little_is_none(lengths, blocks):
    assert curves.line(lengths, blocks) is None


@pytest.mark.parametrize("maker", [ceilings.ceilings, ceilings.bandwidth, ceilings.floors])
def test_made_up_recordings_of_limits_pass_the_schema(maker, tmp_path):
    schema.check(recording.load(maker(tmp_path)).data)


def recorded(root, *makers, monkeypatch):
    monkeypatch.setenv("ANATOMY_RECORDINGS", str(root))
    return [recording.load(maker(root)) for maker in makers]


def test_the_command_tells_ceilings_corners_cache_and_floors(tmp_path, monkeypatch, capsys):
    makers = (ceilings.ceilings, ceilings.bandwidth, ceilings.floors)
    first, *_ = recorded(tmp_path, *makers, monkeypatch=monkeypatch)
    show(*text.report(first))
    told = capsys.readouterr().out
    for part in ("copy", "write", "matmul fp8", "FLOP/B", "Cache of 64.0 MiB", "wait: item"):
        assert part in told, part
    assert "each kernel more of a long graph" in told and "Not recorded yet" not in told
    corner = synthetic.FLOPS_PER_S["tf32"] / ceilings.RATES["copy"][1]
    assert f"tf32 {corner:.0f}" in told


def test_the_command_tells_what_is_missing_and_how_to_measure_it(tmp_path, monkeypatch, capsys):
    (only,) = recorded(tmp_path, ceilings.bandwidth, monkeypatch=monkeypatch)
    show(*text.report(only))
    told = capsys.readouterr().out
    assert "pytorch-gpu-anatomy record limits.ceilings" in told
    assert "pytorch-gpu-anatomy record limits.floors" in told
    assert "record limits.bandwidth" not in told


def test_a_makers_figure_stands_beside_what_was_just_measured(tmp_path, monkeypatch):
    (made,) = recorded(tmp_path, ceilings.ceilings, monkeypatch=monkeypatch)
    told = {each["limit"]: each for each in text.compared("elsewhere", "NVIDIA H200", made)}
    assert told["write"]["datasheet"] == 4.8e12
    assert told["write"]["measured"] == pytest.approx(ceilings.RATES["write"][1], rel=0.02)
    assert told["matmul fp8"]["datasheet"] == 1979e12 and told["matmul fp8"]["measured"]
