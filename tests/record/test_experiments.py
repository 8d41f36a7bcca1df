"""Every experiment at toy size on the CPU: the same code path, and the table it promises."""

import math
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from statistics import median
from unittest import mock

import pandas as pd
import pytest
import torch

from anatomy.chapters.compilation import chains
from anatomy.chapters.launches import launches
from anatomy.chapters.limits import ceilings, memory
from anatomy.chapters.limits import requirements as limits_requirements
from anatomy.chapters.limits.memory import WAYS
from anatomy.chapters.memory_layout import alignment, contiguity, remedies, tensor_layout
from anatomy.chapters.precision import fp8
from anatomy.numerics import agreement
from anatomy.parts import products
from anatomy.record import signatures
from anatomy.record.declare import load
from anatomy.table import intervals
from anatomy.table.errors import BadParameter, DeviceError, DisagreementError
from tests.fakes.fake_stopwatch import made_up_time
from tests.fakes.toys import OTHER_FORMS, SEVERAL_CONTROLS, SIZES, SMALL, TOY

VARIANTS = [
    "contiguous",
    "transposed_view",
    "sliced_offset_view",
    "as_strided_view",
    "transposed_contig_copy",
    "contiguous_half",
]


def runs_on_a_cpu(name: str) -> bool:
    """Whether it is the CPU that an experiment measures, unless told otherwise."""
    return signatures.signature(name).defaults.get("device", "cpu") == "cpu"


@pytest.fixture(scope="module")
def table():
    """Tables of the toy experiments, each measured once, in made-up time."""
    made = {}

    def measure(name: str, **more) -> pd.DataFrame:
        key = (name, *sorted(more.items()))
        if key not in made:
            made[key] = load(name)(**TOY[name] | more)
        return made[key]

    # What is large for a GPU's sake, or compiled, takes a CPU seconds.
    small = (
        mock.patch.object(launches, "COUNT", 2**16),
        mock.patch.object(chains, "BREAKS", (0, 1, 4)),
        mock.patch.object(fp8, "compiled", partial(torch.compile, backend="eager")),
    )
    with made_up_time(), ExitStack() as patched:
        for each in small:
            patched.enter_context(each)
        yield measure


def test_every_experiment_has_a_toy_size():
    assert set(TOY) == set(signatures.experiments())


@pytest.mark.parametrize("name", TOY)
def test_a_table_is_tidy_and_holds_its_own_evidence(name, table):
    found = table(name)
    assert len(found) and not found.columns.duplicated().any()
    if name.startswith(OTHER_FORMS) or (name not in SIZES and "ratio" not in found):
        return
    if "note" in found:  # what can't be measured here says why, and has no time
        refused = found[found.note.notna()]
        assert "median_s" not in found or refused.median_s.isna().all()
        found = found.drop(refused.index)
    for row in found.itertuples():
        assert math.isclose(row.median_s, median(row.blocks_s), rel_tol=1e-4)
        assert row.samples >= len(row.blocks_s) >= 1
    for _, group in found[~found.op.str.startswith("first call")].groupby(["op", "quantity"]):
        roles = group.role.value_counts() if name not in SEVERAL_CONTROLS else None
        assert roles is None or (roles["control"], roles["again"]) == (1, 1)
        again = group[group.role == "again"]
        for row in again.itertuples():
            control = group[group.variant == row.control].iloc[0]
            ratio = intervals.ratio_interval(row.blocks_s, control.blocks_s)
            assert row.ratio == pytest.approx(ratio.median, rel=1e-3)


def test_the_layouts_are_the_seeds_five_and_a_control_for_the_half():
    report = tensor_layout.report(device="cpu", m=32, k=64).set_index("variant")
    assert list(report.index) == VARIANTS
    assert report.loc["sliced_offset_view"].offset_bytes == 2
    assert report.loc["sliced_offset_view"]["shape"] == [32, 63]
    assert report.loc["as_strided_view"].strides == [64, 2]
    assert report.loc["transposed_view"].strides == [1, 32]
    assert list(report.is_contiguous) == [True, False, False, False, True, True]
    assert list(report.blas) == ["N", "T", "N", "copy", "N", "N"]
    assert list(report.is_view) == [False, True, True, True, False, False]


def test_the_script_that_pages_show_is_what_is_asked():
    answers = tensor_layout.check(device="cpu", m=64, k=64).set_index("variant").alignment
    assert answers["transposed_view"] == "ok" and answers["contiguous"] == "ok"
    assert answers["sliced_offset_view"] == "base, K"
    assert answers["as_strided_view"] == "copied first"


def test_a_matrix_need_not_be_square():
    layouts = tensor_layout.layouts(6, 10, "fp32", torch.device("cpu"))
    shapes = {name: tuple(view.shape) for name, view in layouts.items()}
    assert shapes["transposed_view"] == shapes["contiguous"] == (6, 10)
    assert shapes["sliced_offset_view"] == (6, 9) and shapes["as_strided_view"] == (6, 5)


def test_three_operations_and_the_half_has_its_own_control(table):
    found = table("contiguity.bench")
    assert set(found.op) == {"matmul", "layer_norm", "layer_norm_chain"}
    assert set(found.quantity) == {"gpu_warm"}
    strided = found[found.variant == "as_strided_view"]
    assert set(strided.control) == {"contiguous_half"}
    assert len(found) == 3 * (len(VARIANTS) + 1)


@pytest.mark.parametrize(
    ("op", "dtype", "asked"),
    [
        ("matmul", "fp16", ("gpu_warm",)),
        ("layer_norm", "fp16", ("gpu_warm", "gpu_cold")),
        ("layer_norm_chain", "fp16", ("gpu_warm", "gpu_cold")),
        ("layer_norm", "bf16", ("gpu_warm",)),
    ],
)
def test_one_format_tells_what_a_cold_cache_costs_a_norm(op, dtype, asked):
    assert contiguity.quantities(op, dtype) == asked


def test_the_chain_computes_what_layer_norm_computes():
    a = torch.randn(5, 33, dtype=torch.float64)
    weights = [torch.randn(33, dtype=torch.float64) for _ in range(3)]
    torch.testing.assert_close(contiguity._chain(a, *weights), contiguity._norm(a, *weights))


@pytest.mark.parametrize("op", ["matmul", "layer_norm", "pointwise"])
def test_the_factorial_sets_each_factor_alone_and_together(op, table):
    found = table("alignment.factorial", op=op).set_index("variant")
    cells = found[found.role != "again"].drop(index="padded")
    flags = set(zip(cells.base_aligned, cells.ld_aligned, cells.k_aligned, strict=True))
    assert len(cells) == len(flags) == 8
    assert found.loc["base+K"].base_bytes == 4 and found.loc["base+K"].k == 63
    assert found.loc["ld"].ld_bytes == 65 * 4 and found.loc["padded"].ld_bytes == (64 + 32) * 4


def test_the_sweep_moves_one_factor_at_a_time_by_exactly_so_many_bytes(table):
    found = table("alignment.thresholds")
    swept = found[found.factor != "aligned"]
    assert set(swept.factor) == {"base", "ld", "k"}
    assert set(swept.alignment_bytes) == {4, 8, 16, 32, 64, 128}
    for row in swept.itertuples():
        values = {"base": row.base_bytes, "ld": row.ld_bytes, "k": row.k * 4}
        moved = values.pop(row.factor)
        assert moved % row.alignment_bytes == 0 and moved % (2 * row.alignment_bytes)
        assert all(value % 256 == 0 for value in values.values())


def test_a_remedy_gives_the_same_product_and_says_when_it_pays(table):
    found = table("remedies.payback")
    sliced = found[(found.case == "sliced_offset_view") & (found.role != "again")]
    assert set(sliced.remedy) == {"none", "contiguous copy", "padded copy", "zero-padded copy"}
    used = found[(found.step == "use") & (found.remedy != "none")]
    assert len(used) == 5
    for row in used.itertuples():
        assert (row.pays is True) == (row.verdict == "faster")
        assert pd.notna(row.uses) == (row.pays is True), "uses is null unless it pays"


def test_a_padded_copy_keeps_k_and_aligns_its_rows():
    a = torch.randn(3, 33)
    copied = remedies.padded_copy(a)
    assert copied.shape == a.shape and copied.stride() == (64, 1)
    assert torch.equal(copied, a)


def test_compiling_is_a_row_of_its_own_and_every_layout_runs_three_ways(table):
    found = table("remedies.compiled")
    steady = found[(found.op == "matmul") & (found.role != "again")]
    assert len(steady) == 5 * 3 and set(steady.way) == {
        "eager",
        "compiled",
        "compiled, no padding",
    }
    first = found[found.op == "first call"]
    assert len(first) == 11 and set(first.quantity) == {"step_wall"}


def test_the_ceilings_cover_bandwidth_and_every_number_format(table):
    found = table("limits.ceilings")
    memory = ["copy", "read", "write"]
    formats = ("fp16", "bf16", "tf32", "fp32", "fp8")
    assert set(found.limit) == {*memory, *(f"matmul {dtype}" for dtype in formats)}
    refused = found[found.note.notna()]
    assert list(refused.limit) == ["matmul fp8"]
    assert refused.note.iloc[0].startswith("not supported on cpu: fp8 products need an NVIDIA GPU")
    found = found.drop(refused.index)
    rates = found.bytes.where(found.limit.isin(memory), found.flops) / found.median_s
    assert (rates > 0).all()


def test_the_curve_rises_over_working_sets_and_every_way_moves_all_of_its_set(table):
    found = table("limits.bandwidth")
    assert set(found.op) == {"copy", "read", "write"} and set(found.quantity) == {"gpu_warm"}
    assert (found.bytes == found.working_set_bytes).all()
    assert found.cache_bytes.nunique() == 1
    for op, group in found.groupby("op"):
        once = group[group.role != "again"]
        ways = WAYS[op](2 * limits_requirements.COLUMNS, torch.device("cpu"))
        assert once.groupby("working_set_bytes").way.nunique().eq(len(ways)).all()
        sizes = list(dict.fromkeys(once.working_set_bytes))
        assert sizes == sorted(sizes) and len(sizes) >= 6


def test_the_working_sets_are_close_where_the_cache_is_full():
    cache = 60 * 2**20
    sizes = ceilings.working_sets(cache)
    assert sizes == sorted(set(sizes)) and sizes[0] == 2**16 and sizes[-1] == 8 * cache
    assert cache in sizes and all(size % limits_requirements.STEP_BYTES == 0 for size in sizes)
    steps = [after / before for before, after in pairwise(sizes)]
    assert max(steps) <= 2.01
    near = [step for size, step in zip(sizes, steps, strict=False) if cache / 2 <= size < cache]
    assert len(near) >= 4 and max(near) < 1.3


def test_a_cpu_has_no_floors_and_says_so(table):
    found = table("limits.floors")
    assert set(found.op) == {"launch", "wait", "graph"} and found.note.notna().all()


def test_products_in_a_row_go_on_for_as_long_as_they_are_asked_to(table):
    found = table("limits.sustained")
    alone, *in_a_row = found.itertuples()
    assert (alone.variant, alone.after_s, alone.samples) == ("after a rest", 0.0, 12)
    assert {row.variant for row in in_a_row} == {"in a row"}
    ends = [row.after_s for row in in_a_row]
    assert ends == sorted(ends) and ends[-2] < 0.2 <= ends[-1]
    assert (found.median_s > 0).all() and set(found.flops) == {2 * 32**3}


@pytest.mark.parametrize("op", WAYS)
def test_every_way_of_moving_bytes_does_what_its_reference_says(op):
    for way, (call, exact) in WAYS[op](
        2 * limits_requirements.COLUMNS, torch.device("cpu")
    ).items():
        torch.testing.assert_close(call().double(), exact().double(), rtol=1e-5, atol=0, msg=way)


def test_a_write_that_writes_nothing_is_found_out():
    ways = memory.writes(4096, torch.device("cpu"))
    (fill, _), (arange, exact) = ways["fill_"], ways["arange"]
    y = fill()
    assert arange() is y, "they share their memory"

    def lazy():  # leaves what the other way wrote in the second half
        fill()
        torch.arange(2048, out=y[:2048])
        return y

    with pytest.raises(DisagreementError, match="arange strays"):
        agreement.check({"arange": lazy}, {"arange": exact})


def test_fp8_factors_are_as_the_hardware_asks_and_a_wrong_product_is_refused():
    a, b = products.fp8_factors(32, 48, 64, torch.device("cpu"))
    assert a.shape == (32, 64) and b.shape == (64, 48)
    assert a.stride() == (64, 1) and b.stride() == (1, 64), "B lies column by column"
    exact = a.double() @ b.double()
    allowed = products.ALLOWED_FP8

    def check(found, fast):
        agreement.check({"x": lambda: found.bfloat16()}, {"x": lambda: exact}, allowed[fast])

    check(exact, fast=False)
    check(exact * (1 + 2**-6), fast=True)
    for fast in (False, True):
        with pytest.raises(DisagreementError):
            check(exact * 1.05, fast=fast)


@pytest.mark.parametrize(
    ("capability", "why"), [((8, 0), "not supported on sm_80: fp8 products need sm_89")]
)
def test_a_gpu_without_fp8_says_which_it_is(capability, why, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    found = products.fp8_products([(16, 16, 16)], torch.device("cuda", 0), 6)
    assert list(found.note) == [why] and "median_s" not in found


def test_one_process_of_the_harnesses_has_every_part_and_says_what_is_missing(table):
    found = table("harnesses.estimates")
    assert set(found.part) == {"estimate", "long", "pair", "effect", "overhead"}
    figures = found[(found.part == "estimate") & found.median_s.notna()]
    assert set(figures.variant) == {"compare", "blocked_autorange", "adaptive_autorange"}
    assert len(set(figures.op)) == 10
    assert set(found[found.op == "all"].note) == {"needs CUDA; this is cpu"}
    plain = found[(found.op == "W8 matmul 8192") & (found.part == "estimate")]
    assert plain.rest_s.notna().sum() == 1, "one replicate: the pair alone is beside an estimate"


def test_the_worked_example_keeps_the_samples_behind_its_blocks(table):
    found = table("worked_example.kernel")
    assert list(found.quantity) == ["gpu_cold"] * 3 + ["gpu_warm"] * 3
    for row in found.itertuples():
        each = len(row.samples_s) // len(row.blocks_s)
        assert math.isclose(median(row.samples_s[:each]), row.blocks_s[0], rel_tol=1e-4)
        assert len(row.samples_s) == row.samples
    assert found.bytes[1] / found.bytes[0] == pytest.approx(1.02, abs=0.01)


def test_the_reference_on_a_cpu_has_wall_times_of_every_workload(table):
    found = table("harnesses.reference")
    assert set(found.quantity) == {"step_wall"} and len(found) == 10
    assert (found.low_s <= found.median_s).all() and (found.median_s <= found.high_s).all()


@pytest.mark.parametrize(("k", "good"), [(100, 96), (1, 32)])
def test_a_k_that_is_not_aligned_comes_back_with_one_that_is(k, good):
    with pytest.raises(BadParameter, match=rf"k={k} is not a multiple of 32; try k={good}\."):
        alignment.factorial(**SMALL | {"k": k})


@pytest.mark.skipif(torch.cuda.is_available(), reason="asks what happens without a GPU")
@pytest.mark.parametrize("name", [name for name in TOY if not runs_on_a_cpu(name)])
def test_without_a_gpu_the_default_device_is_refused_with_advice(name):
    with pytest.raises(DeviceError, match=r"CUDA requested but torch\.cuda\.is_available\(\) is"):
        load(name)()


def test_the_switch_for_tf32_is_put_back():
    before = torch.backends.cuda.matmul.allow_tf32
    from anatomy.numerics import formats as tensors

    with pytest.raises(RuntimeError), tensors.products_in("tf32"):
        assert torch.backends.cuda.matmul.allow_tf32
        raise RuntimeError
    assert torch.backends.cuda.matmul.allow_tf32 == before


def test_limits_are_measured_on_random_numbers():
    call, exact = memory.reads(4096, torch.device("cpu"))["row sums"]
    torch.testing.assert_close(call().double(), exact(), rtol=1e-5, atol=0)
    assert call().std() > 0
