"""Answers of the exercises on launches."""

from anatomy.figures.curriculum.calculations import calculation

WALL = 'launches.rates."100 launches".step_wall'
OP = f'{WALL}."PyTorch op".per_launch_s'
GRAPH = f'{WALL}."CUDA graph".per_launch_s'
ADDED_BYTES = 12  # of an element of two vectors and their sum, in float32


@calculation("elements-of-a-launch", unit="elements", launch=OP, bandwidth="limit:copy")
def elements_of_a_launch(launch: float, bandwidth: float) -> float:
    """Time of a launch from Python times the bandwidth of a copy, over 12 bytes an element."""
    return launch * bandwidth / ADDED_BYTES


@calculation("saved-by-a-graph", unit="s", launch=OP, graph=GRAPH)
def saved_by_a_graph(launch: float, graph: float) -> float:
    """500 launches, each at the difference between one from Python and one in a graph."""
    return 500 * (launch - graph)


@calculation("kernels-in-a-millisecond", unit="kernels", launch=OP)
def kernels_in_a_millisecond(launch: float) -> float:
    """A millisecond over the time of a launch from Python."""
    return 1e-3 / launch
