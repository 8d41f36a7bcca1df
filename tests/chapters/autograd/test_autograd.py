"""The autograd graph: the walk sees all of it, and what is told of a node is true."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from torch.autograd import DeviceType
from torch.nn import functional as F

from anatomy.chapters.autograd import blocks, compiled, costs, walk
from anatomy.chapters.autograd import census as autograd_census
from anatomy.chapters.autograd import graph as autograd_graph
from anatomy.chapters.autograd import nodes as autograd_nodes
from anatomy.chapters.autograd.blocks import SCOPES, Fused, Manual, Size
from anatomy.machine import host
from anatomy.parts import attention
from anatomy.table.errors import BadParameter

CPU = torch.device("cpu")
SMALL = Size(batch=2, sequence=16, width=32, heads=2, dtype="fp32")


def walked(out: torch.Tensor) -> list[walk.Node]:
    return walk.walk(out.grad_fn)


# The walk.


def test_a_walk_has_no_limit_and_visits_each_node_once():
    leaf = torch.randn(4, 4, requires_grad=True)
    x = leaf
    for _ in range(3000):
        x = x.t()
    nodes = walked(x + x)
    assert len(nodes) == 3002 and nodes[0].name == "AddBackward0"
    assert walk.counts(nodes)["shape_nodes"] == 3000
    assert walk.counts(nodes)["accumulate_nodes"] == 1
    assert nodes[0].next == (1, 1)


def test_a_walk_stops_at_the_ends_that_it_is_given():
    leaf = torch.randn(4, requires_grad=True)
    middle = leaf * 2
    out = middle.exp().sin()
    found = walk.walk(out.grad_fn, {middle.grad_fn})
    assert [node.name for node in found] == ["SinBackward0", "ExpBackward0"]
    assert found[-1].next == ()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ViewBackward0", "shape"),
        ("TBackward0", "shape"),
        ("CloneBackward0", "copy"),
        ("ToCopyBackward0", "copy"),
        ("AddmmBackward0", "compute"),
        ("TanhBackward0", "compute"),
        ("AccumulateGrad", "accumulate"),
    ],
)
def test_a_node_is_of_the_kind_of_its_operation(name, kind):
    assert walk.kind_of(name) == kind


def test_the_tree_follows_the_longest_way_and_shows_what_several_lead_to_once():
    leaf = torch.randn(4, 4, requires_grad=True)
    shared = leaf.exp()
    lines = walk.tree(walked(shared + shared.sin().cos())).splitlines()
    main = [line.split()[1] for line in lines if not line.startswith("|")]
    assert main == ["AddBackward0", "CosBackward0", "SinBackward0", "ExpBackward0"]
    assert sum("ExpBackward0" in line for line in lines) == 2
    assert sum("see there" in line for line in lines) == 1


def test_graphs_have_one_signature_if_nodes_and_edges_are_the_same():
    def graph(batch: int, fused: bool) -> str:
        way = Fused() if fused else Manual(SMALL.sequence)
        size = Size(batch, SMALL.sequence, SMALL.width, SMALL.heads, "fp32")
        model = blocks.layer(size, way, CPU)
        return walk.signature(walked(blocks.outputs(size, model, "layer", CPU)))

    assert graph(2, False) == graph(3, False) != graph(2, True)


def test_what_hands_on_its_gradient_is_told_from_what_computes_or_copies():
    leaf = torch.randn(4, 4, requires_grad=True)
    a, b = (leaf * 2).t().unbind()[:2]
    out = a.view(2, 2) + b.view(2, 2).clone()
    nodes = walked(out)
    grad = torch.randn(2, 2)
    order, hands_on = walk.watch(nodes, lambda: out.backward(grad))
    named = {nodes[number].name: free for number, free in hands_on.items()}
    assert named["AddBackward0"] and named["CloneBackward0"] and named["TBackward0"]
    assert not named["UnbindBackward0"] and not named["MulBackward0"]
    assert sorted(order) == list(range(len(nodes))) and order[0] == 0


def test_the_hooks_are_gone_afterwards():
    leaf = torch.randn(3, requires_grad=True)
    out = (leaf * 2).sum()
    nodes = walked(out)
    order, _ = walk.watch(nodes, lambda: out.backward(retain_graph=True))
    seen = list(order)
    out.backward()
    assert order == seen


def test_saved_bytes_count_each_memory_once_and_no_weight():
    weight = torch.randn(8, 8, requires_grad=True)
    x = torch.randn(8, 8, requires_grad=True)
    out, kept = walk.held(lambda: (x @ weight).exp() @ weight)
    found = walk.bytes_of(kept, [x, weight])
    assert found["counted_bytes"] > found["distinct_bytes"] > found["saved_bytes"]
    assert found["saved_bytes"] == 8 * 8 * 4, "the result of exp alone"
    assert out.requires_grad


def test_a_node_tells_its_saved_tensors_by_name():
    x, weight = torch.randn(3, 4, requires_grad=True), torch.randn(4, 5, requires_grad=True)
    node = walked(x @ weight)[0]
    assert set(walk.saved(node)) == {"self", "mat2"}
    assert "mat2 (4, 5) float32" in list(walk.described(walk.saved(node)))


@pytest.mark.parametrize(
    ("name", "backend"),
    [
        (None, "math"),
        ("ScaledDotProductFlashAttentionBackward0", "flash"),
        ("ScaledDotProductFlashAttentionForCpuBackward0", "flash (of the CPU)"),
        ("ScaledDotProductEfficientAttentionBackward0", "efficient"),
        ("ScaledDotProductCudnnAttentionBackward0", "cudnn"),
        ("ScaledDotProductOtherBackward0", "ScaledDotProductOtherBackward0"),
    ],
)
def test_the_backend_is_known_by_the_node(name, backend):
    assert walk.backend_of(name) == backend


# The layer.


@pytest.mark.parametrize(
    ("width", "heads", "told"),
    [(770, 12, "Take dmodel=768, or dmodel=780"), (3, 4, "Take dmodel=4, or dmodel=8")],
)
def test_a_width_that_can_not_be_divided_comes_back_with_one_that_can(width, heads, told):
    with pytest.raises(BadParameter, match=f"not a multiple of nhead={heads}.*{told}"):
        autograd_graph.census(device="cpu", dtype="fp32", dmodel=width, nhead=heads)


def test_attention_written_out_is_what_the_fused_call_computes():
    q, k, v = (torch.randn(2, 2, 16, 8) for _ in range(3))
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(Manual(16)(q, k, v), expected)


def test_the_layer_is_the_same_with_every_way_to_attend():
    given = costs.problem(SMALL, CPU)
    for way in (Manual(SMALL.sequence), Fused()):
        for found, exact in zip(given.step(way)(), given.exact, strict=True):
            torch.testing.assert_close(found.double(), exact, rtol=1e-4, atol=1e-4)


def test_a_gradient_in_fp16_is_neither_lost_nor_too_large():
    size = Size(2, 64, 64, 2, "fp16")
    for each in costs.problem(size, CPU).step(Manual(64))():
        assert each.isfinite().all() and (each == 0).double().mean() < 0.01


def test_a_sequence_too_long_for_memory_says_so_and_leaves_the_others(monkeypatch):
    monkeypatch.setattr(host, "free_bytes", lambda where: 40 * 2**30)
    size = Size(2, 16384, 768, 12, "fp16")
    refused = blocks.too_large(size, CPU)
    assert set(refused) == {"manual", "math"}
    assert "more than half of the 40" in refused["math"]


def test_gradients_have_no_error_where_float64_does_not_fit(monkeypatch):
    ways = {"manual": Manual(SMALL.sequence)}
    for free, known in ((2 * SMALL.exact_bytes, True), (SMALL.exact_bytes // 2, False)):
        monkeypatch.setattr(host, "free_bytes", lambda where, free=free: free)
        rows = list(autograd_census._gradients(SMALL, ways, CPU))
        assert len(rows) == 13 and all(("error" in row) == known for row in rows)


def test_a_backend_that_is_not_there_is_a_row_with_its_reason(monkeypatch):
    def refusal(name: str, act: Callable, where: torch.device) -> str:
        return "not supported on sm_75: flash needs sm_80" if name == "flash" else ""

    monkeypatch.setattr(attention, "refusal", refusal)
    with attention.switches_kept() as ordinary:
        ways = blocks.attends(SMALL.sequence, ordinary)
        refused = blocks.refused(SMALL, ways, CPU)
    assert refused == {"flash": "not supported on sm_75: flash needs sm_80"}


def test_the_census_leaves_the_switches_as_they_were():
    before = [asked() for _, asked in attention.SWITCHES.values()]
    autograd_graph.census(device="cpu", dtype="fp32", seq=8, dmodel=16, nhead=2)
    assert [asked() for _, asked in attention.SWITCHES.values()] == before


@pytest.fixture(scope="module")
def census():
    return autograd_graph.census(device="cpu", dtype="fp32", seq=16, dmodel=32, nhead=2)


def test_parts_of_the_layer_contain_each_other(census):
    for way in ("manual", "default"):
        sizes = [
            int(census[(census.op == f"graph {scope}") & (census.variant == way)].nodes.iloc[0])
            for scope in SCOPES
        ]
        assert sizes == sorted(set(sizes)), way


def test_every_gradient_of_every_way_is_close_to_float64(census):
    rows = census[census.op.str.startswith("gradients ")]
    assert set(rows.attention) >= {"manual", "math", "default"}
    assert (rows.error < 1e-4).all() and rows.finite.all()
    assert (rows.groupby("attention").size() == 13).all()


def test_lines_that_have_nothing_to_do_add_no_node(census):
    added = census[census.op == "operations"].set_index("variant").nodes_added
    assert added["x * 2"] == added["x.view(-1)"] == 1 and added["x.t().contiguous()"] == 2
    assert added["x.contiguous(), of what is"] == added["x.detach()"] == 0
    assert added["x * 2, under no_grad"] == added["x > 0"] == 0


def test_the_same_graph_does_more_work_and_holds_more_at_a_larger_size(census):
    rows = census[(census.op == "sizes") & (census.attention == "manual")].set_index("variant")
    small, large = rows.loc["manual B=2 T=64"], rows.loc["manual B=4 T=256"]
    assert small.signature == large.signature
    assert large.layer_flops > 7 * small.layer_flops
    assert large.saved_bytes > 7 * small.saved_bytes


# The nodes.


def event(name: str, start: float, kernels=(), children=(), kind=DeviceType.CPU):
    return SimpleNamespace(
        name=autograd_nodes.EVALUATES + name,
        device_type=kind,
        time_range=SimpleNamespace(start=start),
        cpu_time_total=10.0 + start,
        kernels=[SimpleNamespace(name=n, duration=d) for n, d in kernels],
        cpu_children=list(children),
    )


def test_a_nodes_time_is_that_of_the_kernels_of_all_that_it_called():
    below = [SimpleNamespace(kernels=[SimpleNamespace(name="gemm", duration=6.0)], cpu_children=[])]
    events = []
    for turn in range(3):
        events.append(event("AddmmBackward0", 10 * turn, [("sum", 2.0)], below))
        events.append(event("torch::autograd::AccumulateGrad", 10 * turn + 5))
        events.append(event("AddmmBackward0", 10 * turn, kind=DeviceType.CUDA))
    events.reverse()
    found, why = autograd_nodes.by_node(events, ["AddmmBackward0", "AccumulateGrad"], True)
    assert not why and [row["kernels_per_call"] for row in found] == [2, 0]
    assert found[0]["device_s"] == pytest.approx(8e-6) and found[1]["device_s"] == 0
    assert found[0]["kernels"] == ["sum", "gemm"]
    assert found[0]["host_s"] == pytest.approx(25e-6), "the first pass is left out"


def test_events_that_do_not_fit_give_no_times():
    events = [event("AddmmBackward0", 0), event("MulBackward0", 5)] * 2
    found, why = autograd_nodes.by_node(events, ["AddmmBackward0", "AccumulateGrad"], True)
    assert found == [] and "not those of the nodes" in why


def test_the_nodes_of_attention_are_told_from_the_rest():
    table = autograd_graph.nodes(device="cpu", dtype="fp32", seq=16, dmodel=32, nhead=2, repeats=2)
    core = table[table.part == "attention"]
    fused = core[core.op == "default"]
    assert list(fused["name"]) == ["ScaledDotProductFlashAttentionForCpuBackward0"]
    written = set(core[core.op == "manual"]["name"])
    assert {"BmmBackward0", "SoftmaxBackward0"} <= written
    assert not written & {"UnbindBackward0", "AddmmBackward0", "AccumulateGrad"}
    assert table[table.node.notna()].host_s.gt(0).all()
    memory = table[table.op == "memory"].set_index("variant")
    own = table[table.op == "manual"].own_bytes.sum()
    assert own == memory.loc["manual"].saved_bytes, "nodes hold what the hooks were given"


# The costs, and the compiler.


def test_a_view_costs_the_slope_of_its_chain():
    settings = costs.Settings(CPU, 6, 0.05)
    table = costs.chain_of_views(settings, 0.1)
    last = table[table.views == table.views.max()].iloc[0]
    assert last.view_s > 0 and table.view_s.notna().sum() == 1


def test_shape_operations_change_no_number():
    x = torch.randn(6, 6)
    for name, operation in costs.shape_operations(x).items():
        for each in costs._several(operation(x)):
            assert torch.isin(each, x).all(), name


def test_without_attention_written_out_there_are_times_and_no_ratios(monkeypatch):
    monkeypatch.setattr(attention, "too_large", lambda size, where: {"manual": "too large"})
    settings = costs.Settings(CPU, 3, 0.02)
    with attention.switches_kept() as ordinary:
        table = costs._core(SMALL, ordinary, settings, "attention T=16")
    timed = table[table.median_s.notna() & (table.role == "variant")]
    assert len(timed) and timed.ratio.isna().all()
    assert table[table.variant == "manual"].note.iloc[0] == "too large"


def test_a_long_sequence_has_time_for_blocks_enough(monkeypatch):
    given = {}

    def looks(size, ordinary, settings, op):
        given[op] = settings.budget_s
        return costs._refused(op, {"manual": "not asked"})

    monkeypatch.setattr(costs, "_core", looks)
    monkeypatch.setattr(costs, "_layer", looks)
    settings = costs.Settings(CPU, 3, 0.02)
    size = Size(1, 4 * costs.LAYER_LONGEST, 32, 2, "fp32")
    with attention.switches_kept() as ordinary:
        costs.over_length(size, ordinary, settings, False)
    assert given.pop(f"attention T={size.sequence}") == 0.02 * costs.LONG_BUDGETS
    assert set(given.values()) == {0.02} and f"layer T={size.sequence}" not in given


def test_a_length_that_breaks_is_a_row_and_the_next_one_is_measured(monkeypatch):
    def breaks(*_):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(costs, "_core", breaks)
    monkeypatch.setattr(costs, "_layer", breaks)
    settings = costs.Settings(CPU, 3, 0.02)
    size = Size(1, 512, 32, 2, "fp32")
    with attention.switches_kept() as ordinary:
        table = costs.over_length(size, ordinary, settings, False)
    assert list(dict.fromkeys(table.op)) == [
        *("attention T=128", "layer T=128", "attention T=512", "layer T=512"),
    ]
    assert table.note.str.contains("out of luck").all()


def test_what_is_handed_over_is_counted_by_memory_and_without_what_is_there():
    weight, x = torch.randn(4, 4), torch.randn(4, 4)
    found = compiled.between([weight.t(), x, x.view(-1), 3], [weight])
    assert found == {"saved_tensors": 1, "saved_bytes": 64}
