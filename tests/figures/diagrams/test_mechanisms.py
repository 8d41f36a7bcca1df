"""Fusion, launches and causes: both widths are drawn, words stay on the sheet, figures are the
rows' own."""

import re
from itertools import pairwise

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from anatomy import page
from anatomy.chapters.bottlenecks import causes
from anatomy.chapters.compilation import calculations, fusion, pace
from anatomy.chapters.compilation.chains import elementwise_layer
from anatomy.chapters.compilation.requirements import LAYERS
from anatomy.figures.diagrams import calls, lanes, queues, remedies
from anatomy.judge.limits import Ceiling, Ceilings
from anatomy.record.showing import using
from anatomy.table import units
from anatomy.table.errors import AnatomyError, UnknownName
from tests.chapters.bottlenecks import bottlenecks_rows
from tests.chapters.compilation import compilation_rows
from tests.chapters.cuda_graphs import graph_capture_rows
from tests.chapters.launches import launches_rows
from tests.chapters.memory_ladder import memory_ladder_rows as ladder
from tests.fakes import synthetic

SMALL = "training C=256 T=256"
CHAIN = {"op": "large elementwise", "layers": LAYERS}
OPS = {"pointwise 1024": "Short kernels", "pointwise 536870912": "Long kernels"}
SHOWN = {"copy": "memory", "item in every round": "sync"}
CALLS = {
    "fusion": lambda: fusion.fusion("compilation.breaks", **CHAIN),
    "queues": lambda: page.queues("graph_capture.map", OPS),
    "graph": lambda: page.queues("graph_capture.map", OPS, graph=True),
    "pace": lambda: pace.pace("compilation.map", shown={SMALL: ["eager", "compiled"]}),
    "causes": lambda: causes.causes(shown=SHOWN),
    "remedies": remedies.remedies,
}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    made = tmp_path_factory.mktemp("recordings")
    for make in (
        compilation_rows.breaks,
        compilation_rows.cells,
        graph_capture_rows.chains,
        bottlenecks_rows.confusion,
    ):
        make(made)
    synthetic.MAKERS["limits.ceilings"](made)
    return made


def drawn(root, name: str) -> str:
    with using(synthetic.showing(root=root)):
        return CALLS[name]()


@pytest.mark.parametrize("name", CALLS)
def test_it_is_drawn_for_a_desk_and_for_a_phone_with_all_words_on_the_sheet(root, name):
    html = drawn(root, name)
    for kind in ("wide", "narrow"):
        found = re.search(rf'<svg[^>]*data-{kind}=""[^>]*viewBox="0 0 (\d+) (\d+)"', html)
        width, height = map(int, found.groups())
        svg = html[found.start() : html.index("</svg>", found.start())]
        texts = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" font-size="([\d.]+)"', svg)
        assert texts
        for x, y, size in texts:
            assert 0 <= float(x) <= width and 0 < float(y) <= height and float(size) >= 10
    assert re.search(r'role="img" aria-label="[^"]{40,}"', html)


def test_a_step_ends_sooner_by_what_shortens_the_slower_side_alone(root):
    said = re.search(r'aria-label="([^"]+)"', drawn(root, "remedies"))[1]
    host, gpu = said.split("GPU-bound")
    assert "launch ends sooner" in host and "shorter kernels ends about as before" in host
    assert "launch ends about as before" in gpu and "shorter kernels ends sooner" in gpu
    for step in remedies.STEPS:
        for remedy in remedies.REMEDIES:
            ran, asked = [*remedies.kernels(step, remedy)], remedies.launches(step, remedy)
            assert len(ran) == remedies.KERNELS and ran[0][0] >= asked[0][1]
            assert all(later[0] >= before[1] for before, later in pairwise(ran))


class Counting(TorchDispatchMode):
    """Counts what eager operations read and write, in tensors of one size."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size, self.kernels, self.trips = size, 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.kernels += 1
        self.trips += sum(
            isinstance(each, torch.Tensor) and each.numel() == self.size for each in (*args, out)
        )
        return out


def test_the_kernels_drawn_are_those_of_the_layer_that_was_measured():
    x, weight = torch.randn(64), torch.ones(1)
    with Counting(64) as counted:
        elementwise_layer(x, weight)
    assert counted.kernels == len(fusion.LAYER)
    assert counted.trips == fusion.trips(1)


def test_the_bytes_of_all_trips_and_their_least_time_are_said():
    row = {"bytes": 2 * 10**9, "median_s": 0.25, "paced_by": "GPU"}
    copy = Ceiling("copy", 10**12, "B/s", "measured", "here")
    told = fusion.Told(row, fusion.trips(LAYERS), Ceilings("toy", {"copy": copy}))
    assert told.moved.endswith(": 119 ms at a copy's rate")
    assert told.time == "250 ms" and not told.pace
    host = fusion.Told(row | {"paced_by": "host", "low_s": 0.1, "high_s": 0.4}, 2, None)
    assert str(host).endswith("measured 250 ms (100 to 400), host-bound")


def test_a_chain_without_bytes_is_no_picture(root):
    with using(synthetic.showing(root=root)), pytest.raises(AnatomyError, match="no bytes"):
        fusion.fusion("compilation.breaks", op="small products", layers=LAYERS)


def test_the_bytes_of_a_chain_are_one_trip_each_way_and_all_trips_of_its_layers():
    assert calculations.fused_bytes(2e9, 1e12) == pytest.approx(2e-3)
    assert calculations.eager_bytes(2e9, 1e12) == pytest.approx(119e-3)


def test_a_step_whose_kernels_were_not_read_is_no_picture(root):
    with using(synthetic.showing(root=root)):
        html = pace.pace("compilation.map", shown={SMALL: ["reduce-overhead"]})
    assert "Not shown" in html and "<svg" not in html


def desk(html: str) -> str:
    return html[html.index("data-wide") : html.index("</svg>")]


def test_as_many_launches_are_drawn_as_kernels_and_one_for_the_graph(root):
    wide = desk(drawn(root, "graph"))
    assert wide.count(f'fill="{lanes.LAUNCH}"') == len(OPS) * (20 + 1)
    assert wide.count(f'fill="{lanes.KERNEL}"') == len(OPS) * (20 + 20)


def test_the_gpu_is_idle_only_where_the_host_paces_and_else_the_cpu_is_free(root):
    wide = desk(drawn(root, "graph"))
    assert wide.count("GPU idle: ") == 1 and wide.count("stroke-dasharray") == 3


CHAINS = {
    "host-bound": queues.Chain(20, 20, 9.0, 2.0, 182.0, True),
    "GPU-bound": queues.Chain(20, 20, 9.0, 64.0, 1300.0, False),
    "graph": queues.Chain(20, 1, 9.0, 1.0, 22.0, False),
}


@pytest.mark.parametrize("name", CHAINS)
def test_kernels_follow_their_launches_and_end_when_the_chain_does(name):
    chain = CHAINS[name]
    queued, ran = chain.queued(), chain.ran()
    assert len(ran) == chain.kernels and len(queued) == chain.launches
    assert ran[-1][1] <= chain.total_s * (1 + 1e-9)
    assert ran[-1][1] > 0.95 * chain.total_s
    assert all(end <= start * (1 + 1e-9) for (_, end), (start, _) in pairwise(ran))
    if chain.launches > 1:
        assert all(ran[at][0] >= queued[at][1] for at in range(chain.kernels))


def test_the_host_is_free_only_after_the_last_launch():
    chain, sheet = CHAINS["GPU-bound"], queues.Canvas(720)
    lane = lanes.Lanes(sheet, queues._shown_until(chain, count=8))
    queues._drawn(lane, 0.0, chain, count=8)
    launched = chain.queued()[-1][1]
    waiting = sum(start >= launched for start, _ in chain.ran())
    drawing = sheet.svg("wide")
    assert lane.until_s > launched
    assert f"{waiting} wait in the queue; CPU free" in drawing
    assert drawing.count(f'fill="{queues.LAUNCH}"') == chain.launches


@pytest.mark.parametrize(("width", "numbers"), [(720, range(1, 21)), (320, (5, 10, 15, 20))])
def test_where_numbers_have_little_room_every_fifth_is_shown(width, numbers):
    sheet = queues.Canvas(width)
    spans = CHAINS["host-bound"].queued()
    queues._numbered(lanes.Lanes(sheet, spans[-1][1]), 0.0, spans, queues.LAUNCH)
    assert re.findall(r">(\d+)</text>", sheet.svg("wide")) == list(map(str, numbers))


def test_a_name_has_the_share_of_its_workload_and_others_say_so(root):
    html = drawn(root, "causes")
    assert f"item in every round: the CPU waits for {units.percent(0.3)} of a step" in html
    assert f"copy: {units.percent(0.1)} of the bandwidth" in html
    names = [leaf.name for branch in causes.BRANCHES for leaf in branch.leaves]
    left = [name for name in names if name not in SHOWN.values()]
    assert html.count("no workload was built for it") == 2 * len(left)


def test_a_workload_that_was_not_recorded_is_an_error(root):
    with using(synthetic.showing(root=root)), pytest.raises(UnknownName, match="workload"):
        causes.causes(shown={"a guess": "memory"})


def test_the_picture_of_the_ladder_says_how_long_a_load_waits_where_it_was_measured(tmp_path):
    for name in ("limits.ceilings", "limits.bandwidth", "transfers.to_device"):
        synthetic.MAKERS[name](tmp_path)
    ladder.bandwidth(tmp_path), ladder.levels(tmp_path)
    with using(synthetic.showing(root=tmp_path)):
        without = page.memory_ladder()
    ladder.latency(tmp_path)
    with using(synthetic.showing(root=tmp_path)):
        drawn = page.memory_ladder()
    assert "L1 caches" in without and "waits" not in without
    assert drawn.count(">one load waits ") == 3 == drawn.count(">waits ")
    assert "reads by all SMs of the same lines" in drawn  # whole calls got no less


@pytest.mark.parametrize("without_cpp", [False, True])
def test_the_way_of_a_call_says_what_was_measured_of_it(tmp_path, without_cpp):
    launches_rows.rates(tmp_path, without_cpp=without_cpp)
    with using(synthetic.showing(root=tmp_path)):
        drawn = calls.way_of_a_call()
    assert "torch.add: 4.0" in drawn and "an empty kernel: 899 ns" in drawn
    assert ("driver alone: 1" in drawn) == (not without_cpp)
