"""The ladder's training step: rungs that compute the same, gates that hold, ways that may fail."""

import sys
from types import SimpleNamespace

import pytest
import torch

from anatomy.chapters.ladder import (
    comparison,
    copies,
    experiments,
    gates,
    inference,
    requirements,
    rungs,
    steps,
)
from anatomy.measure import stopwatch_for
from anatomy.table import intervals
from anatomy.table.errors import AnatomyError, BadParameter
from tests.fakes.fake_stopwatch import made_up_time
from tests.fakes.toys import TOY

CPU = torch.device("cpu")
SIZE = steps.Size(32, 1, 2, 16)
NO_GRAPHS = "CUDA graphs need a GPU"
# What a CPU can run.
PLAIN = ("0 fp32", "1 amp bf16", "1 amp fp16", "1 tf32", "2 amp bf16", "3 default")
RUNG_5 = (
    *("5 bf16 without a graph", "5 fp8 without a graph"),
    "5 fp8 delayed without a graph",
)


@pytest.fixture(scope="module")
def table():
    """The toy experiment's table, measured once."""
    with made_up_time():
        return experiments.training(**TOY["ladder.training"])


@pytest.fixture
def bench():
    """A problem of one layer, and rung 0's answer."""
    x, target = rungs.problem(SIZE.width, SIZE.batch, SIZE.sequence, CPU)
    wanted = rungs.reference(SIZE.layers, SIZE.width, x, target)
    found = stopwatch_for("cpu")
    with gates.compiled_by("eager"):
        yield steps.Bench(SIZE, x, target, wanted, found, gates.switches())
    torch.compiler.reset()


@pytest.fixture
def few(monkeypatch):
    """Only rungs 0 and 2 are tried."""
    labels = ("0 fp32", "2 amp bf16")
    kept = tuple(way for way in rungs.TRAINING if way.label in labels)
    monkeypatch.setattr(rungs, "TRAINING", kept)


def way(label: str) -> rungs.Way:
    return next(each for each in rungs.TRAINING if each.label == label)


def void(bench, label: str = "2 amp bf16") -> str:
    """Why a way does not pass, while rung 0 does."""
    ready, refused = steps.prepared(bench)
    assert "0 fp32" in [each.way.label for each in ready]
    return refused[label]


def test_every_rung_computes_what_rung_0_does(table):
    first = table[table.op == requirements.FORWARD_BACKWARD].set_index("variant")
    timed = first[first.median_s.notna() & (first.role != "again")]
    assert set(timed.index) == {*PLAIN, *RUNG_5}, first.note.dropna().to_dict()
    assert timed.loss_error["0 fp32"] == timed.gradient_error["0 fp32"] == 0.0
    for label in timed.index:
        assert timed.gradient_error[label] <= way(label).gradients
    # Rounding to 16 bits shows, so the errors are of something.
    assert 0 < timed.gradient_error["1 amp fp16"] < timed.gradient_error["1 amp bf16"]
    assert timed.gradient_error["1 amp bf16"] < timed.gradient_error["5 fp8 without a graph"]


def test_all_rungs_have_equal_parameters_and_equal_work(table):
    rows = table[table.counted_flops.notna()]
    size = steps.Size(32, 2, 2, 16)
    assert set(rows.counted_flops) == {3 * size.flops} and rows.parameters.nunique() == 1
    assert set(rows.flops) == {3 * size.flops} and set(rows.recomputed_flops) == {0}
    assert set(rows.counted_by) == {
        "FlopCounterMode",
        "FlopCounterMode, attention by its formula",
    }


def test_the_attention_that_ran_is_named(table):
    backend = table[table.op == requirements.FORWARD_BACKWARD].set_index("variant").backend
    assert backend["0 fp32"] == backend["1 tf32"] == "written out"
    assert backend["2 amp bf16"] == backend["3 default"] == "flash"


def test_the_optimizers_step_is_measured_of_what_counts(table):
    whole = table[table.op == requirements.WITH_OPTIMIZER]
    assert set(whole.variant) - {"0 fp32 (again)"} == {
        way.label for way in rungs.TRAINING if way.adamw
    }
    assert whole.peak_bytes.isna().all() and whole.gap_s.isna().all()
    compiled = table[table.rung == "3_compile"].set_index("variant")
    assert (compiled.graphs["3 default"] == 1).all(), "compiled once for both comparisons"


def test_what_a_cpu_can_not_run_says_so_once_for_each_comparison(table):
    notes = table[table.note.notna()].groupby("variant").note.agg(set)
    assert notes["3 reduce-overhead"] == notes["5 bf16"] == notes["5 fp8"] == {NO_GRAPHS}
    assert notes["4 current"] == {"Transformer Engine needs an NVIDIA GPU"}
    counts = table[table.note.notna()].groupby("variant").size()
    assert counts["4 current"] == 2 and counts["4 delayed"] == 1


def test_a_rung_is_held_against_the_one_before_it(table):
    rows = table[table.op == requirements.FORWARD_BACKWARD].set_index("variant")
    assert rows.before["0 fp32"] is None and rows.before["5 fp8 without a graph"] == "3 default"
    found = intervals.ratio_interval(rows.blocks_s["3 default"], rows.blocks_s["2 amp bf16"])
    assert rows.ratio_before["3 default"] == pytest.approx(found.median)


def test_the_compiler_is_started_before_the_rungs(table):
    (row,) = table[table.op == inference.FIRST].itertuples()
    assert row.variant == inference.COMPILER and row.median_s > 0
    assert row.gpu_code is None and row.cpu_code is None, "eager writes no code"


def test_no_switch_is_left_and_none_is_compiled_afterwards(table):
    assert torch.get_float32_matmul_precision() == "highest"
    assert gates.left_set(gates.switches()) is None


@pytest.mark.parametrize("given", [{"width": 192}, {"layers": 0}, {"batch": -1}, {"budget_s": 0}])
def test_sizes_that_make_no_model_are_refused(given):
    with pytest.raises(BadParameter):
        experiments.training(**TOY["ladder.training"] | given)


def test_the_batch_follows_from_the_width():
    assert [requirements.batch_of(width) for width in (32, 1024, 2048, 4096, 16384)] == [
        8,
        8,
        4,
        4,
        4,
    ]


def test_without_transformer_engine_rung_4_says_how_to_get_it(bench, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformer_engine", None)
    with pytest.raises(AnatomyError, match="pip install --no-build-isolation"):
        rungs.load("4_transformer_engine")
    monkeypatch.setattr(rungs, "without", lambda way, where: None)
    kept = (way("0 fp32"), way("4 current"))
    monkeypatch.setattr(rungs, "TRAINING", kept)
    ready, refused = steps.prepared(bench)
    assert [each.way.label for each in ready] == ["0 fp32"]
    assert refused["4 current"].startswith("Rung 4 needs Transformer Engine")
    (first, _) = (comparison.refused_rows(op, refused) for op in ("forward and backward", 2))
    assert first[0]["note"] == refused["4 current"] and "median_s" not in first[0]


def test_a_note_names_no_folder_of_the_machine():
    told = copies.why(AnatomyError("not here: /usr/lib/x86_64/libcudnn.so.9: no symbol"))
    assert told == "not here: libcudnn.so.9: no symbol"
    assert copies.why(OSError("/opt/some/lib.so: gone")) == "OSError: lib.so: gone"


def test_a_rung_that_computes_something_else_is_void(bench, few, monkeypatch):
    script = rungs.load("2_sdpa")
    ordinary = torch.nn.functional.scaled_dot_product_attention

    def seeing(*args, is_causal, **kwargs):
        return ordinary(*args, is_causal=False, **kwargs)

    changed = SimpleNamespace(
        **vars(torch.nn.functional) | {"scaled_dot_product_attention": seeing}
    )
    monkeypatch.setattr(script, "F", changed)
    assert void(bench).startswith("void: its gradients stray")


def test_a_rung_with_other_gradients_and_an_equal_loss_is_void(bench, few, monkeypatch):
    script = rungs.load("2_sdpa")
    ordinary = script.step

    def doubled(model, *args, **kwargs):
        call = ordinary(model, *args, **kwargs)

        def twice():
            loss = call()
            for each in model.parameters():
                each.grad *= 2
            return loss

        return twice

    monkeypatch.setattr(script, "step", doubled)
    assert void(bench).startswith("void: its gradients stray 1 from")


def test_a_rung_without_gradients_is_no_rung(bench, few, monkeypatch):
    monkeypatch.setattr(
        rungs.load("2_sdpa"), "step", lambda *args: lambda: torch.tensor(bench.wanted.loss)
    )
    assert "grad" in void(bench) or "NoneType" in void(bench)


def test_a_rung_with_more_weights_is_void(bench, few, monkeypatch):
    script = rungs.load("2_sdpa")
    ordinary = script.build
    monkeypatch.setattr(script, "build", lambda width, *rest: ordinary(2 * width, *rest))
    assert void(bench).startswith("void: it has") and "parameters, rung 0 has" in void(bench)


def test_a_rung_that_does_more_work_is_void(bench, few, monkeypatch):
    script = rungs.load("2_sdpa")
    ordinary = script.step

    def more(*args):
        call = ordinary(*args)
        a = torch.ones(8, 8)
        return lambda: call() + 0 * (a @ a)[0, 0]

    monkeypatch.setattr(script, "step", more)
    assert void(bench).startswith("void: its products with weights are")


def test_a_rung_that_leaves_a_switch_set_is_void_and_the_switch_is_put_back(
    bench, few, monkeypatch
):
    script = rungs.load("2_sdpa")
    ordinary = script.step

    def leaving(*args):
        torch.set_float32_matmul_precision("high")
        return ordinary(*args)

    monkeypatch.setattr(script, "step", leaving)
    assert "TF32 in products" in void(bench)
    assert torch.get_float32_matmul_precision() == "highest"
    assert not torch.backends.cuda.matmul.allow_tf32


def test_a_rung_that_fails_and_leaves_a_switch_set_reaches_no_other(bench, few, monkeypatch):
    def failing(*args):
        torch.backends.cuda.matmul.allow_tf32 = True
        raise RuntimeError("no such kernel")

    monkeypatch.setattr(rungs.load("2_sdpa"), "step", failing)
    assert void(bench) == "RuntimeError: no such kernel"
    assert not torch.backends.cuda.matmul.allow_tf32


def test_a_compiled_rung_that_runs_uncompiled_is_void(bench, monkeypatch):
    kept = (way("0 fp32"), way("3 default"))
    monkeypatch.setattr(rungs, "TRAINING", kept)
    with torch.compiler.set_stance("force_eager"):
        assert void(bench, "3 default").startswith("void: torch.compile compiled nothing")


def test_too_many_versions_of_a_function_fail_loudly():
    add = torch.compile(lambda x: x + 1, dynamic=False)
    with gates.compiled_by("eager"), pytest.raises(Exception, match="recompile_limit"):
        for length in range(2, 20):
            add(torch.ones(length))
    torch.compiler.reset()


def test_ways_with_cuda_graphs_come_last_and_keep_their_place(bench, monkeypatch):
    order = []

    def prepare(way, bench, plain):
        order.append((way.label, plain.way.label if plain else None))
        return steps.Ready(way, None, None)

    monkeypatch.setattr(steps, "prepare", prepare)
    ready, refused = steps.prepared(bench)
    assert not refused and [each.way for each in ready] == list(rungs.TRAINING)
    assert order[-6:] == [
        ("3 reduce-overhead", "3 default"),
        ("5 bf16", "5 bf16 without a graph"),
        ("5 fp8", "5 fp8 without a graph"),
        ("5 fp8 delayed", "5 fp8 delayed without a graph"),
        ("4 current in a graph", "4 current"),
        ("4 delayed in a graph", "4 delayed"),
    ]


def test_a_graph_of_what_is_void_is_void(bench, monkeypatch):
    def prepare(way, bench, plain):
        if way.label == "5 fp8 without a graph":
            raise AnatomyError("void: its loss strays")
        return steps.Ready(way, None, None)

    monkeypatch.setattr(steps, "prepare", prepare)
    _, refused = steps.prepared(bench)
    assert refused == dict.fromkeys((RUNG_5[1], "5 fp8"), "void: its loss strays")


def test_a_way_that_its_script_does_not_know_is_refused(bench, monkeypatch):
    unknown = rungs.FUSED.rung.way("amp fp64", "bf16")
    with pytest.raises(AnatomyError, match="has no way"):
        steps.prepare(unknown, bench)


def test_setting_up_a_graph_counts_what_was_compiled_for_the_way_without(bench):
    told = {"setup_s": 100.0, "graphs": 1}
    model = bench.model(way("5 bf16"))
    assert model is bench.model(way("5 bf16 without a graph"))
    assert model is not bench.model(way("5 fp8 without a graph"))
    plain = steps.Ready(way("5 bf16 without a graph"), model, None, told)
    _, found = steps._first(way("5 bf16"), bench, model, plain)
    assert found["setup_s"] > 100.0 and found["graphs"] == 2


def test_one_model_serves_the_ways_that_change_nothing_in_it(bench):
    assert bench.model(way("1 tf32")) is bench.model(way("1 amp bf16"))
    assert bench.model(way("2 amp bf16")) is not bench.model(way("1 amp bf16"))


@pytest.mark.parametrize("label", ["0 fp32", "1 amp fp16", "2 amp bf16", "3 default", RUNG_5[0]])
def test_with_its_optimizer_a_step_starts_from_equal_weights_each_time(bench, label):
    each = steps.prepare(way(label), bench)
    before = [weight.detach().clone() for weight in each.model.parameters()]
    loss = float(steps.with_optimizer(each, bench)())
    assert all(map(torch.equal, before, each.model.parameters()))
    assert abs(loss / bench.wanted.loss - 1) <= way(label).loss


def test_work_is_counted_exactly_and_other_work_is_refused(bench):
    script = rungs.load(rungs.FP32.rung.script)
    model = script.build(SIZE.width, SIZE.layers, CPU)
    work = gates.counted(script.step(model, bench.x, bench.target))
    attention = 3 * SIZE.attention_flops
    assert (work.by_weights, work.attention) == (3 * SIZE.flops - attention, attention)
    assert gates.by_shapes(model, SIZE.tokens).by_weights == work.by_weights
    assert gates.require_equal_work(work, work.by_weights, attention) == 3 * SIZE.flops
    for by_weights, own in ((work.by_weights + 2, attention), (work.by_weights, attention // 2)):
        with pytest.raises(AnatomyError, match="void: its"):
            gates.require_equal_work(work, by_weights, own)
