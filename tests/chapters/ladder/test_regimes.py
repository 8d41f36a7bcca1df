"""Where FP8 pays, and what rung 3's compiler makes of a step: cells, gates, code, breaks."""

from dataclasses import replace

import pandas as pd
import pytest
import torch

from anatomy.chapters.ladder import copies, experiments, graphs, regimes, requirements, rungs
from anatomy.chapters.ladder import kernels as ladder_kernels
from anatomy.chapters.ladder.requirements import Size
from anatomy.measure import census
from anatomy.table.errors import AnatomyError, BadParameter
from tests.fakes.fake_stopwatch import made_up_time
from tests.fakes.toys import TOY

CPU = torch.device("cpu")
SMALL = Size(32, 1, 1, 16)
# Code in the form in which torch.compile writes it for a GPU.
CODE = """
# AOT ID: ['0_backward']
triton_poi_fused_gelu_0 = async_compile.triton('triton_poi_fused_gelu_0', '''
def triton_poi_fused_gelu_0(in_ptr0, xnumel):
    pass
''')
def call(args):
        extern_kernels.mm(reinterpret_tensor(a, (8, 8), (0, 1), 0), b, out=buf0)
        # Topologically Sorted Source Nodes: [gelu], Original ATen: [aten.gelu]
        triton_poi_fused_gelu_0.run(buf0, 64, stream=stream0)
        triton_poi_fused_gelu_0.run(buf1, 64, stream=stream0)
        triton_tem_fused_mm_1.run(buf1, buf2, grid_0, stream=stream0)
        extern_kernels.mm(buf1, b, out=buf3)
        buf4 = torch.ops.aten._scaled_dot_product_flash_attention_backward.default(buf3)
        assert_alignment(buf5, 16, 'torch.ops.aten._scaled_dot_product_flash_attention.default')
"""


@pytest.fixture(scope="module", autouse=True)
def toy_time():
    with made_up_time():
        yield


@pytest.fixture(scope="module")
def tables():
    """The experiments at toy size, each measured once."""
    made = {}

    def measure(name: str) -> pd.DataFrame:
        if name not in made:
            made[name] = getattr(experiments, name)(**TOY[f"ladder.{name}"])
        return made[name]

    return measure


def test_the_cells_of_the_page_are_a_crossover_over_width_and_one_over_tokens():
    cells = requirements.regime_cells(1.0, full=False)
    whole = [cell.width for cell in cells if cell.batch == 8]
    assert whole == sorted(whole) and len(whole) >= 3
    assert len({cell.batch for cell in cells if cell.width == whole[0]}) > 1
    finer = requirements.regime_cells(1.0, full=True)
    assert len(finer) > len(cells) and len(set(finer)) == len(finer)
    assert all(cell.width % 128 == 0 for cell in finer)


def test_shrunk_cells_are_still_what_fp8_takes():
    for cell in requirements.regime_cells(1 / 64, full=True):
        assert cell.width % 16 == 0 and (cell.batch * cell.sequence) % 16 == 0


def test_each_cell_is_one_comparison_with_its_coordinates(tables):
    found = tables("regimes")
    cells = requirements.regime_cells(TOY["ladder.regimes"]["scale"], full=False)
    assert list(dict.fromkeys(found.op)) == [cell.op for cell in cells]
    assert (found.tokens == found.batch * found.sequence).all()
    for _, cell in found[found.role != "again"].groupby("op"):
        assert set(cell.variant) == set(regimes.LABELS)
        assert list(cell[cell.role == "control"].variant) == ["3 default"]
        refused = cell[cell.median_s.isna()]
        needs_gpu = {"4 current", "4 current in a graph", "5 bf16", "5 fp8", "5 fp8 delayed"}
        assert set(refused.variant) == needs_gpu
        assert refused.note.notna().all()


def test_gradients_that_stray_make_a_way_void(monkeypatch):
    way = regimes.WAYS[0]
    script, model = regimes.new(way, SMALL, CPU)
    x, target = rungs.problem(32, 1, 16, CPU)
    wanted = rungs.reference(1, 32, x, target)
    wanted.gradients[0].add_(1.0)
    with (
        torch.compiler.set_stance("force_eager"),
        pytest.raises(AnatomyError, match="void: its gradients stray"),
    ):
        regimes.ready(way, script, model, x, target, wanted)


def test_a_cell_that_does_not_fit_says_so_and_the_others_are_measured(monkeypatch):
    cells = [SMALL, Size(48, 1, 1, 16)]
    plain = requirements.few_ways
    most = replace(plain(SMALL.op, SMALL), bytes=2**60)
    given = {SMALL: most}
    monkeypatch.setattr(
        requirements, "few_ways", lambda op, cell: given.get(cell) or plain(op, cell)
    )
    found = regimes.measure(cells, CPU, "eager", 0.02)
    refused = found[found.width == 32]
    assert len(refused) == len(regimes.WAYS) and refused.note.notna().all()
    assert "median_s" in found and found[found.width == 48].median_s.notna().any()


def test_a_graph_has_the_kernels_of_its_twin(monkeypatch):
    """With the graph's steps made of plain ones: what stands in for a GPU."""
    monkeypatch.setattr(copies, "require_possible", _on_a_gpu)
    listed = []

    def take(calls, watch, times):
        listed.append(list(calls))
        seen = census.Census(("one", "two"), 1e-6, 1e-6)
        return dict.fromkeys(calls, seen)

    monkeypatch.setattr(census, "take", take)
    found = regimes.measure([SMALL], CPU, "eager", 0.02).set_index("variant")
    assert listed == [["3 default", "5 bf16 without a graph", "5 fp8 without a graph"]]
    for label in ("5 bf16", "5 fp8"):
        assert found.loc[label].kernels_per_call == 2 and pd.isna(found.loc[label].peak_bytes)
    assert found.loc["5 fp8"].gap_s > 0
    setup_s = found.setup_s
    assert setup_s["5 fp8"] > setup_s["5 fp8 without a graph"], "its twin has compiled for it"


def _on_a_gpu(way, where):
    if way.rung.number == 4:
        raise AnatomyError("no Transformer Engine")


def test_sizes_of_nothing_are_refused():
    with pytest.raises(BadParameter, match="scale"):
        experiments.regimes(device="cpu", scale=0.0)
    with pytest.raises(BadParameter, match="width"):
        experiments.graphs(**TOY["ladder.graphs"] | {"width": 200})


def test_kernels_are_counted_where_the_code_calls_them():
    found = graphs.kernels_called(CODE)
    assert {row["direction"] for row in found} == {"backward"}
    counted = {(row["kernel"], row["made_by"]): row["count"] for row in found}
    assert counted == {
        ("triton_poi_fused_gelu_0", "Triton"): 2,
        ("triton_tem_fused_mm_1", "Triton"): 1,
        ("mm", "library"): 2,
        ("aten._scaled_dot_product_flash_attention_backward", "library"): 1,
    }
    counts = graphs._calls_by_maker(found)
    assert counts == {"code_kernels": 6, "triton_kernels": 3, "triton_products": 1}


def test_code_for_a_cpu_is_told_apart():
    code = "def call(args):\n        cpp_fused_add_gelu_mul_0(arg0_1, buf0)\n"
    assert graphs.kernels_called(code) == [
        {"direction": "unknown", "kernel": "cpp_fused_add_gelu_mul_0"}
        | {"made_by": "C++", "count": 1}
    ]


def test_no_code_is_not_no_kernels():
    assert set(graphs._calls_by_maker([]).values()) == {None}


def test_code_is_kept_inside_and_no_longer():
    from torch._inductor.graph import GraphLowering

    before = GraphLowering.save_output_code
    with graphs.code_kept() as kept:
        GraphLowering.save_output_code("text")
    assert kept == ["text"] and GraphLowering.save_output_code is before


def test_code_for_a_cpu_is_generated_and_no_compiler_called(monkeypatch):
    from torch._inductor.async_compile import AsyncCompile
    from torch._inductor.cpp_builder import CppBuilder

    called = []

    def built(self):  # who asks whether something can be built catches every error
        called.append(self)
        raise AssertionError("a C++ compiler was called")

    torch._inductor.cpu_vec_isa.valid_vec_isa_list.cache_clear()
    before = AsyncCompile.cpp_pybinding
    monkeypatch.setattr(CppBuilder, "build", built)
    with copies.apart(CPU):
        (row,) = graphs._on_the_cpu()
    assert row["made_by"] == "C++" and row["count"] == 1 and row["device"] == "cpu"
    assert not called
    assert AsyncCompile.cpp_pybinding is before


@pytest.mark.parametrize(
    ("kernel", "maker"),
    [
        ("triton_per_fused_native_layer_norm_0", "Triton"),
        ("void at::native::vectorized_elementwise_kernel<4, float>(int)", "PyTorch"),
        ("nvjet_tst_128x256_64x4_1x2_h_bz_TNT", "library"),
        ("void flash_fwd_kernel<Flash_fwd_kernel_traits<128>>(Flash_fwd_params)", "library"),
        ("Memset (Device)", "copy"),
    ],
)
def test_a_kernels_name_says_who_wrote_it(kernel, maker):
    assert graphs.maker_of(kernel) == maker


def test_rung_3_is_asked_for_its_breaks_and_a_function_with_one_is_found_out(tables):
    found = tables("graphs")
    breaks = found[found.part == "breaks"].set_index("variant")
    assert set(breaks.index) == {"training step", "forward pass"}
    assert breaks.graphs.notna().all() and set(breaks.fullgraph) <= {"raises", "compiles"}

    def broken(x):
        y = x * 2
        torch._dynamo.graph_break()
        return y + 1

    told = graphs.graph_breaks(broken, (torch.ones(2),))
    assert told["breaks"] == 1 and told["fullgraph"] == "raises" and told["error_told"]


def test_what_is_asked_is_what_the_script_hands_to_the_compiler():
    script, model = regimes.new(graphs.DEFAULT, SMALL, CPU)
    x, target = rungs.problem(32, 1, 16, CPU)
    plain = torch.compile
    (step,) = copies.handed_over(lambda: script.step(model, x, target, "default"))
    (forward,) = copies.handed_over(lambda: script.inference(model, x, "default"))
    assert step.__name__ == "loss_of" and forward is model and torch.compile is plain


def test_the_modes_are_compared_with_the_step_that_is_not_compiled(tables):
    found = tables("graphs")
    timed = found[(found.part == "time") & (found.role != "again")].set_index("variant")
    assert timed.loc["2 amp bf16"].role == "control" and timed.loc["3 default"].ratio > 0
    assert timed.loc["3 reduce-overhead"].note == copies.WHY_NO_GRAPHS
    tuned = tables("autotuned")
    timed = tuned[(tuned.part == "time") & (tuned.role != "again")].set_index("variant")
    assert timed.loc["3 default"].role == "control"
    assert timed.loc["3 max-autotune"].note == copies.WHY_NO_GRAPHS
    assert set(tuned.part) == {"time"}, "eager makes no code, and breaks are asked once"


@pytest.mark.parametrize("ways", [graphs.MODES, graphs.TUNED_MODES])
def test_without_the_control_there_is_no_comparison_and_the_error_says_why(monkeypatch, ways):
    def fails(*_) -> None:
        raise RuntimeError("no compiler here")

    monkeypatch.setattr(regimes, "ready", fails)
    whole = f"{ways[0].label}, which all others are compared with: RuntimeError: no compiler here"
    with pytest.raises(AnatomyError, match=f"^{whole}$"):
        graphs.measure(ways, SMALL, CPU, "eager", 0.02)


def test_kernels_of_a_mode_are_rows_with_who_made_them(monkeypatch):
    seen = {
        "product_s": 2e-6,
        "busy_s": 3e-6,
        "kernels_per_call": 2,
        "kernel_seconds": [
            ["nvjet_tst_128x256", "product", 1, 2e-6],
            ["triton_poi_fused_gelu_0", "pointwise", 1, 1e-6],
        ],
    }
    monkeypatch.setattr(ladder_kernels, "seconds_by_kind", lambda call, watch: dict(seen))
    found = graphs.measure(graphs.MODES, SMALL, CPU, "eager", 0.02)
    kernels = found[(found.part == "kernel") & (found["mode"] == "3 default")]
    assert list(zip(kernels.kind, kernels.made_by, strict=True)) == [
        ("product", "library"),
        ("pointwise", "Triton"),
    ]
    timed = found[found.part == "time"].set_index("variant")
    assert timed.loc["2 amp bf16"].kernels_per_call == 2


def test_the_slow_recording_is_made_by_name_alone():
    from anatomy.record import signatures

    known = signatures.experiments()
    assert known["ladder.autotuned"].on_request and not known["ladder.graphs"].on_request


def test_everything_is_as_it_was_afterwards():
    before, dice = copies.gates.switches(), torch.get_rng_state()
    with pytest.raises(RuntimeError), copies.apart(CPU):
        torch.rand(1)
        torch.set_float32_matmul_precision("medium")
        raise RuntimeError
    assert copies.gates.switches() == before
    assert torch.equal(torch.get_rng_state(), dice)
