"""Verdicts on the autograd graph follow the rows; the drawing shows what the rows say."""

import json
import re

import pytest

from anatomy import claims
from anatomy.chapters.autograd import claims as autograd_claims
from anatomy.chapters.autograd import nodegraphs
from anatomy.figures.charts import layered, svg
from anatomy.record import recording, showing
from anatomy.table.errors import UnknownName
from tests.chapters.autograd import autograd_rows
from tests.fakes import synthetic

CPU_WHY = "not supported on sm_75: not there"


@pytest.fixture
def edited(tmp_path):
    """A function that saves a toy recording with changed rows, and gives a claim's verdict."""

    def judge(name: str, table: str, change=lambda row: None) -> claims.Result:
        path = getattr(autograd_rows, table)(tmp_path)
        data = json.loads(path.read_text())
        rows = [dict(row) for row in recording.load(path).data["rows"]]
        for row in rows:
            change(row)
        recording.save(data | {"rows": synthetic.as_said(rows)}, tmp_path)
        return claims.evaluate(synthetic.showing(root=tmp_path), name)

    return judge


def refuse(row):
    """A change after which nothing in a row was measured."""
    for column in ("nodes", "nodes_added", "median_s", "kernels_per_call", "signature", "view_s"):
        if column in row:
            row[column] = None
    row["note"] = CPU_WHY


EVERY = {
    "attention-nodes-become-one": "census",
    "fused-attention-is-faster": "costs",
    "shape-nodes-share": "census",
    "shape-nodes-cost-nothing": "costs",
    "graph-size-constant": "census",
    "efficient-backward-node": "census",
    "graph-shows-fusion": "nodes",
    "every-operation-adds-nodes": "census",
    "graph-shows-memory-and-compute": "census",
}


@pytest.mark.parametrize(("name", "table"), EVERY.items())
def test_what_was_not_measured_gives_no_verdict(name, table, edited):
    assert edited(name, table, refuse).word == claims.NOT_MEASURABLE


def test_attention_is_one_node_where_it_is(edited):
    name = "attention-nodes-become-one"
    found = edited(name, "census")
    assert found.condition.startswith("attention "), "the counts stand under the verdict"
    assert found.word == claims.IN_PART and "attention: 19 unfused, 20 (math)" in found.evidence
    assert found.measured.high == 19

    def to_one(many: int):
        def change(row):
            if row.get("scope"):
                row["nodes"] = many if row["variant"] == "manual" else 1

        return change

    for many, word in ((20, claims.HOLDS), (18, claims.HOLDS), (17, claims.FAILS)):
        assert edited(name, "census", to_one(many)).word == word, "a tenth less is still 20"
    none = edited(name, "census", lambda row: row.get("scope") and row.update(nodes=7))
    assert none.word == claims.FAILS


def test_fused_attention_is_twice_as_fast_where_it_is(edited):
    name = "fused-attention-is-faster"
    found = edited(name, "costs")
    assert found.word == claims.IN_PART and found.condition.startswith("except for T=128")

    def factor(by: float):
        def change(row):
            if row.get("scope") and row["variant"] in ("efficient", "flash", "cudnn", "default"):
                control = autograd_rows.SPEEDUPS[row["sequence"]]
                row["blocks_s"] = [s * control / by for s in row["blocks_s"]]

        return change

    assert edited(name, "costs", factor(3)).word == claims.HOLDS
    more = edited(name, "costs", factor(8))
    assert more.word == claims.HOLDS and "to 5.00× in 0" in more.evidence, "more breaks no promise"
    assert edited(name, "costs", factor(1.5)).word == claims.FAILS
    wide = edited(name, "costs", lambda row: row.update(noise_floor=30.0))
    assert wide.word == claims.INCONCLUSIVE


def test_half_of_the_nodes_change_a_shape_or_not(edited):
    name = "shape-nodes-share"
    found = edited(name, "census")
    assert found.word == claims.IN_PART
    assert "17 of 27, or of 40 with the ends (efficient, flash, cudnn, default)" in found.evidence

    def share(part: float):
        def change(row):
            if row.get("scope") == "layer":
                row |= {"nodes": 100, "accumulate_nodes": 0, "shape_nodes": int(100 * part)}

        return change

    assert edited(name, "census", share(0.5)).word == claims.HOLDS
    assert edited(name, "census", share(0.3)).word == claims.FAILS


def test_a_view_costs_what_its_slope_says_and_a_copy_what_it_launches(edited):
    name = "shape-nodes-cost-nothing"
    found = edited(name, "costs")
    assert found.word == claims.IN_PART and "unbind" in found.evidence
    assert re.fullmatch(
        r"true of the GPU in \d+ of \d+ operations, not of the CPU", found.condition
    )
    assert found.measured.unit == "s" and found.measured.value == autograd_rows.VIEW_S

    def free(row):
        if row.get("view_s"):
            row |= {"view_s": 1e-9, "view_low_s": -5e-9, "view_high_s": 6e-9}
        row["kernels_per_call"] = 0

    assert edited(name, "costs", free).word == claims.HOLDS
    assert edited(name, "costs", lambda row: row.update(kernels_per_call=1)).word == claims.FAILS

    def unclear(row):
        if row.get("view_s"):
            row |= {"view_low_s": -1e-6, "view_high_s": 5e-6}
        row["kernels_per_call"] = None

    assert edited(name, "costs", unclear).word == claims.INCONCLUSIVE


def test_the_size_of_the_graph_is_constant_but_for_one_sequence(edited):
    name = "graph-size-constant"
    found = edited(name, "census")
    assert found.word == claims.IN_PART and "manual B=1" in found.condition
    same = edited(name, "census", lambda r: r.get("op") == "sizes" and r.update(nodes=46))
    assert same.word == claims.HOLDS


def test_the_name_of_the_fused_node_is_the_one_that_ran(edited):
    name = "efficient-backward-node"
    found = edited(name, "census")
    assert found.word == claims.IN_PART and "for fp32" in found.condition
    own = autograd_claims.EFFICIENT_NODE
    assert edited(name, "census", lambda row: row.update(fused_node=own)).word == claims.HOLDS
    assert edited(name, "census", lambda row: row.update(fused_node=None)).word == claims.FAILS


def test_a_node_is_a_kernel_only_if_each_launches_one(edited):
    name = "graph-shows-fusion"
    found = edited(name, "nodes")
    assert found.word == claims.FAILS and "2 several" in found.evidence
    one = edited(name, "nodes", lambda row: row.update(kernels_per_call=1))
    assert one.word == claims.HOLDS

    def only_fused(row):
        row["kernels_per_call"] = 1 if row["op"] == "default" else 2

    assert edited(name, "nodes", only_fused).word == claims.IN_PART


def test_lines_add_nodes_or_not(edited):
    name = "every-operation-adds-nodes"
    found = edited(name, "census")
    assert found.word == claims.FAILS and "x.detach()" in found.evidence, "it says *every*"
    one = edited(name, "census", lambda r: "nodes_added" in r and r.update(nodes_added=1))
    assert one.word == claims.HOLDS


def test_one_graph_stands_for_layers_of_any_size(edited):
    name = "graph-shows-memory-and-compute"
    assert edited(name, "census").word == claims.FAILS

    def constant(row):
        if row.get("op") == "sizes":
            row |= {"saved_bytes": 2**20, "layer_flops": 10**9}

    assert edited(name, "census", constant).word == claims.HOLDS

    def only_memory(row):
        if row.get("op") == "sizes":
            row["saved_bytes"] = 2**20

    assert edited(name, "census", only_memory).word == claims.IN_PART


# The drawing.


def test_the_longest_way_is_a_straight_line_and_each_layer_lies_below_the_last():
    graph = {0: [1, 4], 1: [2], 2: [3], 3: [], 4: [3]}
    found = nodegraphs.layout(graph)
    assert [found.lanes[node] for node in (0, 1, 2, 3)] == [0, 0, 0, 0]
    assert found.lanes[4] == 1 and found.layers == {0: 0, 1: 1, 2: 2, 3: 3, 4: 1}
    assert all(found.layers[a] < found.layers[b] for a, b in found.edges)
    assert found.size == (2, 4)


def test_no_two_nodes_lie_on_each_other_and_no_long_edge_runs_through_a_node():
    graph = {n: [] for n in range(12)}
    graph |= {0: [1, 11], 1: [2, 3, 4], 2: [5], 3: [5], 4: [5], 5: [6, 7], 6: [8], 7: [8]}
    graph |= {8: [9, 10], 9: [11]}
    found = nodegraphs.layout(graph)
    places = [(found.lanes[n], found.layers[n]) for n in graph]
    assert len(set(places)) == len(places)
    for (a, b), line in found.edges.items():
        lane = line[1][0]
        inside = range(found.layers[a] + 1, found.layers[b])
        assert not any(found.lanes[n] == lane and found.layers[n] in inside for n in graph)


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"kind": "compute", "kernels_per_call": 2}, "computes"),
        ({"kind": "compute", "kernels_per_call": 0}, "hands on"),
        ({"kind": "compute", "hands_on": True}, "hands on"),
        ({"kind": "shape", "kernels_per_call": 0, "hands_on": False}, "free"),
        ({"kind": "shape", "kernels_per_call": 1}, "moves"),
        ({"kind": "copy", "hands_on": False}, "moves"),
        ({"kind": "accumulate", "kernels_per_call": 0}, "collects"),
        ({"kind": "accumulate", "kernels_per_call": 1}, "collects and copies"),
        ({"kind": "accumulate"}, "collects"),
    ],
)
def test_what_a_node_does_is_told_by_what_was_seen(row, what):
    assert nodegraphs.does(row) == what
    assert what in nodegraphs.DOES and what in nodegraphs.SIGNS and what in layered.LOOKS


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("AddmmBackward0", "Addmm"),
        ("NativeLayerNormBackward0", "LayerNorm"),
        ("ScaledDotProductCudnnAttentionBackward0", "SDPA Cudnn"),
    ],
)
def test_a_label_is_short(name, label):
    assert nodegraphs.short(name) == label


def drawn(root, **graphs) -> str:
    with showing.using(synthetic.showing(root)):
        return nodegraphs.graph("autograd_graph.nodes", graphs=graphs)


def test_a_graph_has_a_title_for_each_node_a_table_and_a_key(tmp_path):
    autograd_rows.nodes(tmp_path)
    html = drawn(tmp_path, manual="Written out", default="Fused")
    assert "Written out, 7 nodes" in html and "Fused, 5 nodes" in html
    assert "attention: 3 nodes" in html and "attention: 1 node<" in html
    assert "<title>4 BmmBackward0: computes; 2 kernels" in html
    assert html.count("<tr>") >= 9 + 7
    key = re.search(r"<tr><th[^>]*>\W*changes a shape, and moves data</th>.*?</tr>", html)[0]
    assert re.findall(r">(\d+)<", key) == ["1", "1"], "of each graph"


def test_a_graph_that_could_not_be_walked_says_why(tmp_path):
    rows = [{"op": "manual", "variant": "manual", "note": "would need about 160 GiB"}]
    synthetic.record(tmp_path, "autograd_graph.nodes", rows)
    assert "Not shown: Written out: would need about 160 GiB." in drawn(
        tmp_path, manual="Written out"
    )
    with pytest.raises(UnknownName, match="There is no op 'other'"):
        drawn(tmp_path, other="Other")


@pytest.mark.parametrize("width", svg.WIDTHS.values())
def test_graphs_stand_beside_each_other_only_where_there_is_room(width):
    panel = {
        "title": "A",
        "lanes": 1,
        "layers": 2,
        "nodes": [
            {"lane": 0, "layer": n, "look": "computes", "share": 0.5, "label": "Add", "hover": "x"}
            for n in range(2)
        ],
        "edges": [[[0, 0], [0, 1]]],
        "band": None,
        "notes": [{"text": "128 tokens: 1 ms", "share": 0.5}],
    }
    spec = json.dumps(layered.graphs([panel, panel], width=width))
    wider = {**panel, "title": "B", "lanes": 2}  # whose marks leave less room beside them
    both = json.dumps(layered.graphs([panel, wider], width=width))
    bars = re.findall(r'"x": ([\d.]+), "y": [\d.]+, "x2": ([\d.]+), "top"', both)
    assert len(set(bars)) == 2
    lengths = {round(float(end) - float(start), 1) for start, end in bars}
    assert lengths == {layered.LONGEST / 2}, "one scale for both graphs"
    heights = json.loads(spec)["height"]
    beside = width > layered.SIDE_BY_SIDE
    assert heights == round((layered.TITLE + 3 * layered.STEP) * (1 if beside else 2))
