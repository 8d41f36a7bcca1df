"""A trace on a page: its lanes, its sums, and the Chrome trace that it holds."""

import gzip
import json
import re
from base64 import b64decode

import pytest

from anatomy.figures.diagrams import timelines
from anatomy.figures.diagrams.canvas import Canvas
from anatomy.figures.diagrams.lanes import COPY, KERNEL, LAUNCH, WAIT
from anatomy.figures.diagrams.timelines import timeline as shown
from anatomy.record.showing import using
from anatomy.table.errors import UnknownName
from tests.chapters.sync_points.sync_points_rows import events, timeline
from tests.fakes import synthetic

RUNS = ("no wait", "item each step")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    root = tmp_path_factory.mktemp("trace")
    timeline(root)
    with using(synthetic.showing(root)):
        yield shown("sync_points.timeline", caption="What happened.")


def test_a_gpu_that_waits_for_its_host_stands_still():
    busy, waiting = (timelines.still(events(run)) for run in RUNS)
    assert busy[0] < waiting[0] and busy[2] < waiting[2]
    lane = [
        {"lane": "GPU", "start_s": start, "end_s": end}
        for start, end in ((1.0, 3.0), (2.0, 4.0), (6.0, 7.0))
    ]
    assert timelines.still(lane) == (2.0, 6.0, 2.0), "kernels of two streams overlap"
    assert timelines.still([]) == (0.0, 0.0, 0.0)


def test_the_page_has_a_panel_for_each_run_a_table_and_a_download(page):
    assert all(f">{run}</text>" in page for run in RUNS)
    assert "GPU idle" in page and "nvjet_hsh" in page and "What happened." in page


def test_under_the_longest_pause_of_a_run_stands_what_the_page_says_of_it():
    lane = [
        {"lane": "GPU", "kind": "kernel", "variant": "k", "start_s": start, "end_s": end}
        for start, end in ((1.0, 3.0), (4.0, 5.0), (8.0, 9.0))
    ]
    assert timelines._pauses(lane) == [(3.0, 4.0), (5.0, 8.0)] and timelines._pauses([]) == []
    plain, said = Canvas(680), Canvas(680)
    timelines._lanes(plain, {"run": lane}, 10.0, {"another": "idle"})
    timelines._lanes(said, {"run": lane}, 10.0, {"run": "idle"})
    assert ">idle<" in said.svg("wide") and ">idle<" not in plain.svg("wide")
    assert said.height > plain.height


def test_the_download_is_a_chrome_trace_of_every_event(page):
    name, packed = re.search(r'download="([^"]+)" href="data:[^,]+,([^"]+)"', page).groups()
    assert b64decode(packed)[:10] == b"\x1f\x8b\x08\0\0\0\0\0\x02\x03", "no date, any Python"
    trace = json.loads(gzip.decompress(b64decode(packed)))
    complete = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert name.endswith(".trace.json.gz")
    assert len(complete) == sum(len(events(run)) for run in RUNS)
    kernel = next(event for event in complete if event["cat"] == "kernel")
    assert kernel["dur"] == pytest.approx(28.0) and "nvjet" in kernel["name"], "in microseconds"
    named = {event["args"]["name"] for event in trace["traceEvents"] if event["ph"] == "M"}
    assert {*RUNS, "CPU", "GPU", "PyTorch"} == named


@pytest.mark.parametrize("kind", ["wide", "narrow"])
def test_kinds_differ_in_height_or_frame_and_runs_share_a_scale(page, kind):
    picture = re.search(rf"<svg[^>]*data-{kind}.*?</svg>", page, re.DOTALL)[0]
    boxes = [
        dict(re.findall(r'([\w-]+)="([^"]*)"', box)) for box in re.findall("<rect[^>]*", picture)
    ]
    looks = {box["fill"]: (box["height"], "stroke-dasharray" in box) for box in boxes}
    assert len(looks) > 2 and len({box["fill"] for box in boxes[: len(looks)]}) == len(looks)
    on_host, on_gpu = ((LAUNCH, WAIT), (KERNEL, COPY))
    for one, other in (on_host, on_gpu):
        assert one not in looks or other not in looks or looks[one] != looks[other]
    ticks = [re.findall(r">([\d.]+ µs|0)</text>", part) for part in picture.split("GPU</text>")[1:]]
    assert len(ticks) == len(RUNS) and ticks[0] == ticks[1] != []


def test_each_event_is_told_once_and_found_in_both_pictures(page):
    wide, narrow = (
        re.search(rf"<svg[^>]*data-{kind}.*?</svg>", page, re.DOTALL)[0]
        for kind in ("wide", "narrow")
    )
    drawn = [row for run in RUNS for row in events(run) if row["lane"] in timelines.DRAWN]
    told = re.findall(r"<rect[^>]*><title>([^<]+)</title></rect>", wide)
    numbers = [int(number) for number in re.findall(r'<rect[^>]* data-m="(\d+)"', narrow)]
    assert len(told) == len(numbers) == len(drawn) and "<title>" not in narrow
    assert [list(dict.fromkeys(told))[number] for number in numbers] == told


def test_a_run_that_is_not_there_and_rows_that_are_no_events_are_errors():
    with pytest.raises(UnknownName, match="run 'other'"):
        timelines.by_run(events(RUNS[0]), ["other"])
    with pytest.raises(UnknownName, match="column"):
        timelines.by_run([{"op": "matmul"}])


def test_a_machine_without_a_trace_says_why(tmp_path):
    why = "needs a GPU that runs behind its host; this is cpu"
    rows = [{"run": run, "lane": None, "variant": run, "note": why} for run in RUNS]
    synthetic.record(tmp_path, "sync_points.timeline", rows)
    with using(synthetic.showing(tmp_path)):
        assert why in shown("sync_points.timeline")
