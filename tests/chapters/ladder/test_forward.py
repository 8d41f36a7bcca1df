"""The ladder without gradients: the forward pass and decoding, gates, twins, memory, columns."""

import pandas as pd
import pytest
import torch

from anatomy.chapters.ladder import copies, experiments, inference, rungs
from anatomy.chapters.ladder.inference import ALLOWED, Ready, Task
from anatomy.measure import blocks, stopwatch_for
from anatomy.table.errors import AnatomyError, BadParameter, DisagreementError
from tests.chapters.ladder import ladder_forward_rows
from tests.fakes import synthetic
from tests.fakes.fake_stopwatch import made_up_time
from tests.fakes.toys import TOY

CPU = torch.device("cpu")
FORWARD, DECODING = Task("forward", 64, 2, 2, 16), Task("decoding", 64, 2, 1, 1, 24)
ON_CPU = [way for way in rungs.TRAINING if way.rung.number != 4 and not way.graph]


@pytest.fixture(autouse=True)
def uncompiled():
    """Functions run as they are: what is compiled is another test's subject."""
    with torch.compiler.set_stance("force_eager"):
        yield


@pytest.fixture(scope="module")
def tables():
    """Both experiments at toy size."""
    names = ("inference", "decoding")
    with made_up_time():
        return {name: getattr(experiments, name)(**TOY[f"ladder.{name}"]) for name in names}


def way_of(label: str):
    return next(way for way in inference.WAYS if way.label == label)


def ready(label: str, task: Task, twin: Ready | None = None) -> Ready:
    x = task.input(CPU)
    wanted = inference.reference(task, x)
    return inference.prepare(way_of(label), task, x, wanted, stopwatch_for(CPU), twin)


@pytest.mark.parametrize("task", [FORWARD, DECODING], ids=["forward", "decoding"])
@pytest.mark.parametrize("way", ON_CPU, ids=lambda way: way.label)
def test_every_way_that_a_cpu_has_adds_what_rung_0_adds(task, way):
    found = ready(way.label, task)
    assert found.told["output_error"] <= ALLOWED[way.products]
    if way.products not in ("fp32", "tf32"):  # which a CPU computes alike
        assert found.told["output_error"] > 1e-5, "another number format cannot be exact"


@pytest.mark.parametrize("way", ON_CPU, ids=lambda way: way.label)
def test_a_step_of_decoding_is_the_last_token_of_the_whole_sequence(way):
    """Keys and values kept from the tokens before give what the causal pass over all gives."""
    B, T, C, L = 1, 12, 64, 2
    script = copies.own_copy(way.rung.script, CPU)
    model = script.build(C, L, CPU)
    x = torch.randn(B, T, C, generator=torch.Generator().manual_seed(3))
    whole = script.inference(model, x, way.name)().float()
    kind = inference.KEPT_AS.get(way.products, torch.bfloat16)
    caches = [torch.zeros(2, B, 1, T, C, dtype=kind) for _ in range(L)]
    for t in range(T):  # the newest token stands last
        caches = [torch.roll(cache, -1, 3) for cache in caches]
        grown = [cache[:, :, :, T - 1 - t :] for cache in caches]
        last = script.inference(model, x[:, t : t + 1], way.name, grown)().float()
    off = torch.linalg.vector_norm(last - whole[:, -1:])
    # A scale for the whole tensor is another one for a single token of it.
    allowed = 2**-4 if way.products == "fp8" else 2**-6
    assert float(off / torch.linalg.vector_norm(whole[:, -1:])) < allowed


def test_a_way_that_leaves_its_layers_out_is_void(monkeypatch):
    """Its output is close to the input, and so to the right output: what is added is not."""
    plain = copies.own_copy

    def without_layers(rung, where):
        script = plain(rung, where)
        script.inference = lambda model, x, way, caches=None: lambda: x.clone()
        return script

    x = FORWARD.input(CPU)
    wanted = inference.reference(FORWARD, x)
    monkeypatch.setattr(copies, "own_copy", without_layers)
    with pytest.raises(AnatomyError, match="void: what its layers add strays 1 from"):
        inference.prepare(way_of("2 amp bf16"), FORWARD, x, wanted, stopwatch_for(CPU), None)
    assert not inference.strays(torch.full_like(x, float("nan")), wanted, x) <= 1


def test_weights_count_as_they_are_read():
    elements = 2 * (12 * 64 * 64 + 4 * 64)
    assert ready("2 amp bf16", FORWARD).told["weight_bytes"] == 4 * elements
    assert ready("5 bf16 without a graph", FORWARD).told["weight_bytes"] == 2 * elements
    eight = ready("5 fp8 without a graph", FORWARD)
    assert eight.told["weight_bytes"] == 2 * 12 * 64 * 64 + 2 * (2 * 4 * 64), "norms are bfloat16"
    kv = 2 * 2 * 24 * 64
    assert ready("0 fp32", DECODING).told["kv_bytes"] == 4 * kv
    assert ready("5 fp8 without a graph", DECODING).told["kv_bytes"] == 2 * kv


def test_weights_in_8_bits_do_not_stay_when_the_model_is_trained():
    script = copies.own_copy("5_fastest", CPU)
    model = script.build(64, 1, CPU)
    x, target = rungs.problem(64, 1, 16, CPU)
    script.inference(model, x, "fp8 without a graph")()
    assert all(m.ready for m in model.modules() if isinstance(m, script.Linear))
    script.step(model, x, target, "fp8 without a graph")()
    assert all(p.grad is not None for p in model.parameters())


def test_a_graph_uses_the_script_and_model_of_its_twin_and_pays_for_its_compiling(monkeypatch):
    twin = ready("5 fp8 without a graph", FORWARD)
    twin.told |= {"setup_s": 100.0, "product_s": 0.25, "reserved_bytes": 7}
    monkeypatch.setattr(copies, "require_possible", lambda way, where: None)
    found = ready("5 fp8", FORWARD, twin)
    assert found.script is twin.script and found.model is twin.model
    assert found.told["setup_s"] > 100 and found.told["product_s"] == 0.25
    other = ready("3 reduce-overhead", FORWARD, ready("3 default", FORWARD))
    assert other.told["setup_s"] < 100, "another mode is another compilation"


def test_without_rung_0_there_is_no_comparison_and_the_error_says_why(monkeypatch):
    def fails(*_) -> None:
        raise AnatomyError("void: it strays")

    monkeypatch.setattr(inference, "prepare", fails)
    with pytest.raises(AnatomyError, match=r"^0 fp32, which all others .* with: void: it strays$"):
        experiments.inference(**TOY["ladder.inference"])


def test_copies_of_a_script_share_no_code():
    one, two = (copies.own_copy("3_compile", CPU) for _ in range(2))
    assert one.Transformer.forward.__code__ is not two.Transformer.forward.__code__
    assert one.DEVICE == "cpu"


def test_a_mode_that_leaves_cuda_graphs_out_is_void(monkeypatch):
    skips = iter((0, 1))
    monkeypatch.setattr(copies.gates, "skipped_graphs", lambda: next(skips))
    with pytest.raises(AnatomyError, match="left CUDA graphs out"):
        copies.set_up(way_of("3 reduce-overhead"), lambda: lambda: None, 1, stopwatch_for(CPU))


def test_a_way_that_leaves_a_switch_is_void_and_the_switch_is_put_back():
    before = torch.get_float32_matmul_precision()

    def make():
        torch.set_float32_matmul_precision("medium")
        return lambda: None

    with pytest.raises(AnatomyError, match="switch of the process"):
        copies.set_up(way_of("1 tf32"), make, 1, stopwatch_for(CPU))
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize("name", ["inference", "decoding"])
def test_all_ways_have_a_row_and_those_that_a_cpu_lacks_say_why(name, tables):
    found = tables[name]
    of_task = found[(found.op != "first call") & (found.role != "again")]
    assert sorted(of_task.variant) == sorted(way.label for way in inference.WAYS)
    absent = of_task[of_task.median_s.isna()]
    assert absent.note.notna().all() and len(absent) == len(of_task) - len(ON_CPU)
    timed = of_task.dropna(subset="median_s").set_index("variant")
    assert timed.loc["0 fp32"].role == "control"
    assert (timed.setup_s > 0).all() and (timed.output_error >= 0).all()


def test_decoding_is_held_against_the_memory_and_the_forward_pass_against_products(tables):
    forward, one = (tables[n][tables[n].role == "variant"] for n in ("inference", "decoding"))
    forward, one = (table.dropna(subset="ratio") for table in (forward, one))
    assert set(one.limit) == {"read"} and set(forward.limit) >= {"matmul bf16", "matmul fp8"}
    assert (one.bytes == one.weight_bytes + one.kv_bytes).all()
    assert forward.bytes.isna().all() and set(one.context) == {TOY["ladder.decoding"]["context"]}


def test_what_was_set_up_is_paid_back_only_where_it_is_faster():
    rows = synthetic.compared("x", "step_wall", 1e-3, {"a": 0.5, "b": 1.5}, control="0")
    table = pd.DataFrame(rows).assign(setup_s=2.0)
    found = inference._with_uses(table).set_index("variant")
    assert found.loc["a"].uses == pytest.approx(4000, rel=0.05)
    assert pd.isna(found.loc["b"].uses) and pd.isna(found.loc["0"].uses)


def test_one_way_that_fails_among_the_others_costs_itself_alone(monkeypatch):
    plain = inference.compare

    def failing(calls, **given):
        if "1 tf32" in calls:
            raise DisagreementError("1 tf32 changed its answer while it was measured")
        return plain(calls, **given)

    monkeypatch.setattr(inference, "compare", failing)
    monkeypatch.setattr(blocks, "LOOKS", (6,))
    kept = [ready(label, FORWARD) for label in ("0 fp32", "1 tf32", "2 amp bf16")]
    wanted = inference.reference(FORWARD, FORWARD.input(CPU))
    table, blamed = inference._compared(FORWARD, kept, wanted, CPU, 0.02)
    assert set(table.variant) == {"0 fp32", "0 fp32 (again)", "2 amp bf16"}
    assert list(blamed) == ["1 tf32"]


@pytest.mark.parametrize(
    "wrong", [{"width": 0}, {"width": 200}, {"layers": 0}, {"budget_s": 0.0}, {"context": 0}]
)
def test_sizes_of_nothing_are_refused(wrong):
    with pytest.raises(BadParameter, match=next(iter(wrong))):
        experiments.decoding(**TOY["ladder.decoding"] | wrong)


@pytest.mark.parametrize("name", ["inference", "decoding", "regimes", "graphs", "autotuned"])
def test_made_up_recordings_have_columns_that_the_experiments_have(name, tmp_path, tables):
    path = getattr(ladder_forward_rows, name)(tmp_path)
    assert path.exists()
    if name in tables:
        told = {"kernel_seconds", "backend", "note"} | set(inference.KERNELS)
        made = set(ladder_forward_rows._forward(name, 1, 1.0)[0])
        assert made <= set(tables[name].columns) | told
