"""Shares of a training step that are calculated from what was measured."""

from anatomy.figures.curriculum.calculations import calculation


@calculation(
    unit="%",
    nodes='autograd_graph.census.op="graph layer".variant=manual.shape_nodes',
    view='autograd_graph.costs.op="views".variant="512 views".view_s',
    step='autograd_graph.costs.op="layer T=128".variant=manual.median_s',
)
def visits_of_shape_nodes(nodes: float, view: float, step: float) -> float:
    """An unfused layer's shape nodes, each at the price of a view, over the time of its step."""
    return nodes * view / step
