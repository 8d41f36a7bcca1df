"""Diagrams of waits: they draw at both widths, within the sheet, and say what the rows say."""

import re
from itertools import pairwise

import pytest

from anatomy.chapters.sync_points import (
    host_and_gpu,
    lost_lead,
    requirements,
    staging,
    waiting_lines,
)
from anatomy.chapters.sync_points.host_and_gpu import Loop
from anatomy.figures.diagrams import canvas, lanes
from anatomy.record.showing import using
from anatomy.table.errors import UnknownName
from tests.chapters.sync_points import sync_points_rows, syncs_rows
from tests.fakes import synthetic

PAIRS = [
    ("A value", "t[0].item()", "t.sum()"),
    ("A size", "t[t > 0]", "torch.where(t > 0, t, 0.0)"),
]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    root = tmp_path_factory.mktemp("waits")
    sync_points_rows.bench(root)
    syncs_rows.detected(root)
    syncs_rows.to_device(root)
    with using(synthetic.showing(root)) as showing:
        yield showing


def drawn(html: str) -> list[str]:
    """The pictures for a desk and a phone, their words inside the sheet."""
    pictures = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    assert len(pictures) == 2
    for picture, width in zip(pictures, (680, 330), strict=True):
        for x, size, rest, text in re.findall(
            r'<text x="([-\d.]+)" y="[-\d.]+" font-size="([\d.]+)"([^>]*)>([^<]*)<', picture
        ):
            wide = canvas.wide(text, float(size), code="monospace" in rest)
            anchor = re.search(r'text-anchor="(\w+)"', rest)
            share = {"end": 1, "middle": 0.5}[anchor[1]] if anchor else 0
            left = float(x) - share * wide
            assert left >= -1 and left + wide <= width + 1, (text, width)
            assert float(size) >= 10, text
    return pictures


@pytest.mark.parametrize("side", requirements.SIDES)
def test_a_loop_is_drawn_at_every_size_with_its_times(shown, side):
    loop = host_and_gpu.recorded(shown.find("sync_points.bench").recording.rows, side, "t.item()")
    wide, narrow = drawn(host_and_gpu.host_and_gpu("sync_points.bench", side=side))
    for picture in (wide, narrow):
        assert f"{host_and_gpu._time(loop.waiting)}, {loop.speed}" in picture
        assert host_and_gpu._time(loop.free) in picture and "GPU idle" in picture
        assert picture.count("<rect") < 200, "launches too short to see are drawn as one"


def test_a_loop_without_a_wait_has_the_pace_of_its_slower_half():
    gpu_bound = Loop(launch=1.0, kernel=3.0, free=3.0, waiting=6.0, idle=3.0, speed="").ahead()
    assert [begins for _, begins in gpu_bound[:4]] == [1.0, 4.0, 7.0, 10.0]
    assert [queued for queued, _ in gpu_bound[:4]] == [0.0, 1.0, 2.0, 3.0], "the host runs ahead"
    host_bound = Loop(launch=2.0, kernel=0.5, free=2.0, waiting=4.0, idle=3.5, speed="").ahead()
    assert [begins for _, begins in host_bound[:3]] == [2.0, 4.0, 6.0]


def test_the_idle_time_is_what_the_wait_adds_where_the_gpu_was_busy(shown):
    rows = shown.find("sync_points.bench").recording.rows
    loop = host_and_gpu.recorded(rows, 8192, "t.item()")
    row = next(r for r in rows if r["op"] == "loop 8192" and r["variant"] == "t.item()")
    assert loop.launch < loop.kernel and loop.idle == row["wait_s"]
    assert loop.waiting - loop.kernel == pytest.approx(row["wait_s"], rel=0.2)
    short = host_and_gpu.recorded(rows, min(requirements.SIDES), "t.item()")
    assert short.launch >= short.kernel and short.idle == short.waiting - short.kernel
    with pytest.raises(UnknownName):
        host_and_gpu.recorded(rows, 8192, "no such line")


def test_a_wait_in_each_step_loses_the_lead_that_short_kernels_need():
    each, short = len(lost_lead.KERNELS), lost_lead.SHORT
    free, waiting = (lost_lead.course(2, waits=waits)[each:] for waits in (False, True))
    assert all(one.ends == after.begins for one, after in pairwise(free)), "no gap between kernels"
    gaps = [one.ends < after.begins for one, after in pairwise(waiting)]
    assert gaps == [True] * short + [False] * (each - short - 1), "up to the first long one"


def test_the_sketch_of_a_lost_lead_needs_no_recording(shown):
    for picture in drawn(lost_lead.lost_lead("A sketch.")):
        assert "loss.item()" in picture and "at the CPU&#x27;s pace" in picture


def test_a_copy_is_drawn_with_what_each_way_takes(shown):
    op = "to the GPU 256 MiB"
    html = staging.staging("transfers.to_device", op=op)
    pageable, pinned = staging.recorded(shown.find("transfers.to_device").recording.rows, op)
    wide, narrow = drawn(html)
    assert pinned.returns < pinned.lasts < pageable.lasts
    assert "staging buffer" in wide and "staging" in narrow
    for seconds in (pageable.lasts, pinned.lasts, pinned.returns):
        assert staging._time(seconds) in wide


def test_lines_have_the_colour_of_what_was_seen(shown):
    wide, narrow = drawn(waiting_lines.waiting_lines("synchronizations.detected", pairs=PAIRS))
    for picture in (wide, narrow):
        assert picture.count(">waits<") == 2 and picture.count(">goes on<") == 2
    with pytest.raises(UnknownName):
        waiting_lines.waiting_lines(
            "synchronizations.detected", pairs=[("?", "t.sum()", "nothing")]
        )


@pytest.mark.parametrize(
    ("until", "most", "step"),
    [(163e-6, 6, 50e-6), (163e-6, 3, 100e-6), (0.031, 6, 0.01), (6, 6, 1)],
)
def test_an_axis_has_round_steps(until, most, step):
    assert lanes.round_step(until, most) == pytest.approx(step)
