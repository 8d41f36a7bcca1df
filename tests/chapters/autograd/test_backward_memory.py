"""Diagrams of what is kept for the backward pass and what its nodes cost: they draw at both widths,
within the sheet, and say what the rows say."""

import pytest

from anatomy.chapters.autograd import calculations, node_costs, nodegraphs, saved_stack
from anatomy.chapters.autograd.saved_stack import Held
from anatomy.chapters.checkpointing import step_memory
from anatomy.judge import rows
from anatomy.record import recording
from anatomy.record.showing import Showing, using
from anatomy.table import units
from anatomy.table.errors import BadParameter
from tests.chapters.autograd import autograd_rows
from tests.chapters.checkpointing import checkpointing_rows
from tests.chapters.sync_points.test_drawings import drawn
from tests.fakes import synthetic

GRAPHS = {"manual": "Unfused attention", "default": "Fused attention"}
DEEP = "train C=2048 L=8 T=8x1024"


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    root = tmp_path_factory.mktemp("backward")
    autograd_rows.nodes(root)
    autograd_rows.costs(root)
    checkpointing_rows.frontier(root)
    with using(synthetic.showing(root)) as showing:
        yield showing


def pair(shown):
    table = shown.find("checkpointing.frontier").recording.rows
    names = (step_memory.CONTROL, step_memory.CHECKPOINTED)
    return [rows.select(table, op=DEEP, variants=[name])[0] for name in names]


def test_a_stack_holds_what_its_nodes_hold_and_the_first_operation_lies_lowest(shown):
    table = shown.find("autograd_graph.nodes").recording.rows
    for op in GRAPHS:
        stack = saved_stack.held(table, op)
        memory = rows.select(table, op="memory", variants=[op])[0]
        assert saved_stack.total(stack) == memory["saved_bytes"]
    # The backward pass of this toy visits the linear layer before attention.
    assert [each.name for each in stack] == ["fused attention", "linear"]
    assert [each.attention for each in stack] == [True, False]
    for picture in drawn(saved_stack.saved_stack("autograd_graph.nodes", graphs=GRAPHS)):
        assert f"Fused attention: {units.byte_count(saved_stack.total(stack))}" in picture


def test_a_graph_whose_nodes_hold_nothing_is_no_stack():
    with pytest.raises(BadParameter, match="holds memory"):
        saved_stack.held([{"op": "manual", "name": "AddBackward0", "own_bytes": 0}], "manual")


def test_every_node_is_a_bar_and_kernels_are_below_the_line(shown):
    table = shown.find("autograd_graph.nodes").recording.rows
    longest = max(node_costs.visited(table, "default"), key=lambda row: row["host_s"])
    for picture in drawn(node_costs.node_costs("autograd_graph.nodes", graphs=GRAPHS)):
        assert f">{nodegraphs.short(longest['name'])}<" in picture
        nodes = sum(map(len, autograd_rows.GRAPHS.values()))
        launch = sum(bool(each[3]) for graph in autograd_rows.GRAPHS.values() for each in graph)
        key = len(node_costs.KINDS)
        assert picture.count("<rect") == nodes + launch + key
        assert "of 7 nodes launch kernels" in picture, "those that store a gradient aside"
        assert "of 5 nodes launch kernels" in picture


def test_a_part_of_a_graph_is_drawn_with_the_edges_inside_of_it(shown):
    table = shown.find("autograd_graph.nodes").recording.rows
    inside = nodegraphs._only(table, "attention")
    for op, nodes in autograd_rows.PART.items():
        mine = [row for row in inside if row["op"] == op]
        assert {row["node"] for row in mine} == set(nodes)
        assert all(set(row["next"]) <= set(nodes) for row in mine)
    html = nodegraphs.graph("autograd_graph.nodes", graphs=GRAPHS, part="attention")
    assert "Fused attention, 1 node<" in html and "Unfused attention, 3 nodes<" in html
    with pytest.raises(BadParameter, match="no node is of the part"):
        nodegraphs._only(table, "elsewhere")


def test_beside_a_graph_stands_the_time_of_its_own_way(shown):
    table = shown.find(nodegraphs.TIMES).recording.rows
    op = "attention T=2048"
    html = nodegraphs.graph(
        "autograd_graph.nodes", graphs=GRAPHS, part="attention", times={op: "2048 tokens"}
    )
    for variant in GRAPHS:
        row = rows.select(table, op=op, variants=[variant])[0]
        assert f"2048 tokens: {rows.printed(row, 'median_s', units.PLAIN_DIGITS)}" in html
        assert f"peak memory: {units.byte_count(row['peak_bytes'])}" in html
    assert f", {rows.speed_in_words(row, short=True)}" in html, "of fused attention, the last"


def test_neighbours_too_small_to_be_named_share_a_box():
    sizes = [1, 2, 90, 3, 4, 50]
    stack = [Held(f"op {size}", size, attention=size == 4) for size in sizes]
    joined = saved_stack._together(stack, least=10)
    assert [each.bytes for each in joined] == [3, 90, 3, 4, 50], "attention stands by itself"
    assert joined[0].name == "op 1, op 2" and saved_stack.total(joined) == sum(sizes)


def test_a_step_ends_its_forward_pass_with_what_was_recorded(shown):
    control, checkpointed = pair(shown)
    for moments, row in (
        (step_memory.course(control), control),
        (step_memory.course(control, checkpointed), checkpointed),
    ):
        turn = [each for each in moments if each.what == "forward"][-1]
        assert turn.kept == pytest.approx(row["activation_bytes"])
        assert sum(each.what == "backward" for each in moments) == row["depth"]
    assert not any(each.again for each in step_memory.course(control))


def test_nothing_that_is_drawn_of_the_recorded_step_is_above_its_peak():
    published = Showing(root=recording.default_root(), machine="nvidia-h200")
    table = published.find("checkpointing.frontier").recording.rows
    names = (step_memory.CONTROL, step_memory.CHECKPOINTED)
    control, checkpointed = (rows.select(table, op=DEEP, variants=[name])[0] for name in names)
    for moments, row in (
        (step_memory.course(control), control),
        (step_memory.course(control, checkpointed), checkpointed),
    ):
        most = max(each.kept + each.again + each.gradients for each in moments)
        assert 0.85 * row["peak_bytes"] < most <= row["peak_bytes"]


def test_a_step_is_drawn_with_its_peaks_and_times(shown):
    for picture in drawn(step_memory.step_memory("checkpointing.frontier", op=DEEP)):
        for row in pair(shown):
            assert f"peak {units.byte_count(row['peak_bytes'])}" in picture


def test_without_memory_there_is_no_picture(shown, monkeypatch):
    monkeypatch.setattr(step_memory, "NEEDED", ("no such column",))
    assert "no memory was recorded" in step_memory.step_memory("checkpointing.frontier", op=DEEP)


def test_the_visits_of_shape_nodes_are_a_share_of_the_step():
    assert calculations.visits_of_shape_nodes(nodes=28, view=1e-6, step=1e-3) == pytest.approx(
        0.028
    )
