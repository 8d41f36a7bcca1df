"""Diagrams of mechanisms: drawn for desk and phone, words within the sheet, figures of the rows."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from anatomy import page
from anatomy.chapters.attention import tiles
from anatomy.chapters.channels_last import pixels
from anatomy.chapters.never import trips
from anatomy.chapters.precision import formats, underflow
from anatomy.figures.charts.svg import WIDTHS
from anatomy.figures.diagrams import kernel_rows
from anatomy.judge import rows
from anatomy.record import recording
from anatomy.record.showing import Showing, using
from anatomy.table import units
from anatomy.table.errors import BadParameter

ROOT, MACHINE = Path(__file__).parents[3] / "recordings", "nvidia-h200"
CONVERT = {"convolution": "*fprop*", "convert": "*ToN*Kernel*"}
LAYOUTS = {"NCHW": "NCHW", "channels_last": "channels_last"}
ONE = "C=64 inference bf16 N=64"
PRICES = {"Each time": [("a trip", "ping-pong 1024", "by way of the CPU")]}
# Function of a page, its arguments, and rows whose times stand in it: (experiment, op, variant).
DRAWN = [
    (
        tiles.tiles,
        {"experiment": "attention.backends", "op": "forward N=8192"},
        [("attention.backends", "forward N=8192", name) for name in ("manual", "default")],
    ),
    (
        formats.formats,
        {"experiment": "limits.ceilings", "size": "8192 x 8192 x 8192"},
        [("limits.ceilings", f"matmul {f}", "8192 x 8192 x 8192") for f in ("fp32", "bf16")],
    ),
    (underflow.gradients, {"experiment": "precision.gradients"}, []),
    (
        page.kernel_rows,
        {"experiment": "channels_last.map", "op": ONE, "names": LAYOUTS, "work": "convolution"}
        | {"kinds": CONVERT},
        [("channels_last.map", ONE, name) for name in LAYOUTS],
    ),
    (pixels.pixels, {}, []),
    (trips.prices, {"experiment": "never.costs", "habits": PRICES}, []),
    (
        trips.trip,
        {"experiment": "never.costs", "op": "ping-pong 1024"},
        [("never.costs", "ping-pong 1024", "by way of the CPU")],
    ),
]


def row_of(experiment: str, op: str, variant: str) -> dict:
    there = recording.find(ROOT, MACHINE, experiment).rows
    return rows.select(there, op=op, variants=[variant])[0]


def drawn(function, options) -> str:
    with using(Showing(ROOT, MACHINE)):
        return function(**options)


@pytest.mark.parametrize(
    ("function", "options", "shown"), DRAWN, ids=[each[0].__name__ for each in DRAWN]
)
def test_it_is_drawn_for_desk_and_phone_with_the_recorded_times(function, options, shown):
    html = drawn(function, options)
    sheets = re.findall(r'<svg [^>]*data-(\w+)=""[^>]*viewBox="0 0 (\d+) (\d+)"(.*?)</svg>', html)
    assert {kind: float(width) for kind, width, _, _ in sheets} == WIDTHS
    assert re.search(r'role="img" aria-label="[^"]{30,}"', html)
    found = [row_of(*each) for each in shown]
    times = [
        (units.seconds(row["median_s"], most=3), rows.printed(row, "median_s")) for row in found
    ]
    for _, width, height, inside in sheets:
        for x, y, size, rest, said in re.findall(
            r'<text x="([-\d.]+)" y="([-\d.]+)" font-size="([\d.]+)"([^>]*)>([^<]*)<', inside
        ):
            room = {"end": (1, 0), "middle": (0.5, 0.5)}.get(
                (re.search(r'text-anchor="(\w+)"', rest) or [0, ""])[1], (0, 1)
            )
            wide = len(said) * float(size) * 0.5
            assert float(x) - room[0] * wide > -6 and float(x) + room[1] * wide < float(width) + 6
            assert float(y) <= float(height) and float(size) >= 10, said
        assert all(any(time in inside for time in either) for either in times)


def test_scores_are_heads_times_n_squared_in_the_format_of_q():
    q_bytes = 8 * 1024 * 64 * 2  # heads × N × width in 16 bits
    assert tiles.score_bytes({"bytes": 4 * q_bytes, "sequence": 1024}, 64) == 8 * 1024**2 * 2


def test_the_bar_under_the_kernels_is_as_long_as_the_call_and_blue_as_the_kernel_alone():
    html = drawn(page.kernel_rows, DRAWN[3][1])
    bars = [t for t in re.findall("<rect [^>]*>", html) if f'height="{kernel_rows.BAR:g}"' in t]
    whole, blue, alone, _ = (float(re.search(r' width="([\d.]+)"', tag)[1]) for tag in bars[:4])
    first, second = (row_of(*row)["median_s"] for row in DRAWN[3][2])
    assert len(bars) == 4 * len(WIDTHS) and whole / alone == pytest.approx(first / second, 0.01)
    assert blue == alone, "the same kernel runs in both, and alone in the second"


def test_how_long_a_kernel_takes_among_others_is_known_only_from_the_same_one_alone():
    def row(variant: str, seconds: float, *kernels: str) -> dict:
        return {"variant": variant, "median_s": seconds, "kernels": kernels}

    alone, among = row("a", 2.0, "Memset", "fprop"), row("b", 5.0, "convert", "fprop")
    assert kernel_rows.working([alone, among], "fprop*") == {"a": 2.0, "b": 2.0}
    assert kernel_rows.working([alone, row("b", 5.0, "convert", "fprop_2")], "fprop*") == {}
    assert kernel_rows.working([alone, row("b", 1.0, "convert", "fprop")], "fprop*") == {"a": 2.0}


def test_two_operations_stand_side_by_side_on_a_desk_and_one_under_the_other_on_a_phone():
    ops = {"bf16": ONE, "fp32": "C=64 inference fp32 N=64"}
    html = drawn(page.kernel_rows, DRAWN[3][1] | {"op": ops})
    places = re.findall(r'<g transform="translate\(([\d.]+) ([\d.]+)\)">', html)
    desk, phone = (list(zip(*places[at : at + 2], strict=True)) for at in (0, 2))
    assert desk[0][0] != desk[0][1] and desk[1] == ("0", "0")
    assert phone[0] == ("0", "0") and phone[1][0] != phone[1][1]


@pytest.mark.parametrize(("verdict", "hollow"), [("undecided", True), ("slower", False)])
def test_a_price_that_is_undecided_is_hollow_with_its_interval(monkeypatch, verdict, hollow):
    row = {"use_s": 2e-4, "use_low_s": 1.5e-4, "use_high_s": 3e-4, "verdict": verdict, "uses": 1}
    # As wide as the verdict found it: from nothing on, and not from the low end of a use.
    row |= {"role": "control", "median_s": 1e-3, "ratio_low": 0.9, "ratio_high": 1.3}
    monkeypatch.setattr(rows, "select", lambda *_, **given: [row])
    html = drawn(trips.prices, {"experiment": "never.costs", "habits": PRICES})
    desk, _ = re.findall(r"<svg .*?</svg>", html, re.DOTALL)
    assert ("200 µs, undecided" in html) == hollow == ("var(--md-default-bg-color)" in desk)
    lines = re.findall(
        r'<polyline points="([\d.]+),[\d.]+ ([\d.]+),[^"]*"[^>]*stroke-width="2"', desk
    )
    (low, high), edge = (
        map(float, lines[0]),
        min(map(float, re.findall(r'points="([\d.]+),', desk))),
    )
    assert (low == edge) == hollow and high > low


def test_kernels_of_a_kind_that_follow_one_another_share_a_box():
    names = ["nchwToNhwcKernel", "nchwToNhwcKernel", "Memset (Device)", "xmma_fprop", "strange"]
    kinds = {"convolution": "*fprop*", "convert": "*ToNhwc*|*ToNchw*"}
    assert kernel_rows.runs(names, kinds) == [("convert", 2), ("convolution", 1), ("other", 1)]


def test_what_was_asked_for_must_be_a_kind_and_a_price_must_be_positive():
    with pytest.raises(BadParameter, match="none of the kinds"):
        drawn(page.kernel_rows, DRAWN[3][1] | {"work": "matmul"})
    with pytest.raises(BadParameter, match="no positive"):
        free = {"Each time": [("none", "ping-pong 1024", "stay on the GPU")]}
        drawn(trips.prices, {"experiment": "never.costs", "habits": free})


def test_a_variant_that_could_not_run_is_left_out_with_its_reason(monkeypatch):
    row = row_of("channels_last.map", ONE, "NCHW")
    refused = {"variant": "channels_last", "median_s": None, "kernels": None, "note": "No <unit>."}
    monkeypatch.setattr(rows, "select", lambda *_, **given: [row | refused, row])
    html = drawn(page.kernel_rows, DRAWN[3][1])
    assert "<svg" in html and "channels_last: No &lt;unit&gt;." in html


@pytest.mark.parametrize("travel_s", [9.0, 30.0])
def test_a_launch_is_as_long_on_a_trip_as_without_one_and_all_boxes_follow_one_another(travel_s):
    (stays, _), (host, gpu) = trips.stays(6.0), trips.travels(6.0, travel_s)
    lasts = [
        [box.end - box.start for box in each if "launch" in box.words] for each in (stays, host)
    ]
    assert lasts == [pytest.approx([2.0] * 3), pytest.approx([2.0] * 2)]
    for boxes in (stays, host):
        assert all(later.start == pytest.approx(box.end) for box, later in pairwise(boxes))
    assert (stays[-1].end, host[-1].end) == (6.0, travel_s)
    assert all(later.start >= box.end - 1e-9 for box, later in pairwise(gpu))
