"""What a comparison says of itself, in a terminal and in a notebook."""

import re

import pytest
import torch

from anatomy.comparison import compare
from anatomy.judge import limits, printing
from tests.fakes.fake_stopwatch import Fake, FakeStopwatch

CEILINGS = limits.Ceilings(
    "toy",
    {
        "copy": limits.Ceiling("copy", 4e12, "B/s", "measured", "a recording"),
        "matmul bf16": limits.Ceiling("matmul bf16", 8e14, "FLOP/s", "datasheet", "its maker"),
    },
)


def row(variant="a", role="variant", **more):
    told = {
        "variant": variant,
        "role": role,
        "control": None if role == "control" else "a",
        "quantity": "gpu_cold",
        "device": "cuda",
        "median_s": 1e-3,
        "low_s": 0.99e-3,
        "high_s": 1.01e-3,
        "blocks_s": [1e-3] * 12,
        "ratio": 1.5,
        "ratio_low": 1.4,
        "ratio_high": 1.6,
        "verdict": "control" if role == "control" else "slower",
        "regime": "kernel-bound",
    }
    return told | more


CONTROL = row(role="control")
AGAIN = row("a (again)", role="again", verdict="again", ratio=1.0)


def test_times_ratios_and_verdicts_stand_in_the_text_and_the_duplicate_does_not():
    text = printing.as_text([CONTROL, row("b"), AGAIN], 0.002)
    assert "a (again)" not in text
    assert re.search(r"b\s+1\.00.*ms.*1\.5.*slower\s+kernel-bound", text)
    assert "noise floor 0.20%: how far a strays from itself" in text
    assert "medians of 12 blocks with 95 % intervals" in text


@pytest.mark.parametrize(("blocks", "called"), [(6, "95 % intervals"), (5, "the range of all, ")])
def test_an_interval_of_95_percent_is_one(blocks, called):
    text = printing.as_text([row(role="control", blocks_s=[1e-3] * blocks), AGAIN], 0.002)
    assert f"medians of {blocks} blocks with {called}" in text


@pytest.mark.parametrize(
    ("quantity", "device", "words"),
    [
        ("gpu_cold", "cuda", "GPU time, cold cache (gpu_cold); medians of 12 blocks"),
        ("gpu_warm", "cuda", "GPU time, back to back (gpu_warm)"),
        ("gpu_cold", "cpu", "CPU time, cold cache (gpu_cold)"),
        ("host_enqueue", "cuda", "host time until the call returns (host_enqueue)"),
        ("step_wall", "cpu", "wall time of a step (step_wall)"),
    ],
)
def test_whose_time_it_is_stands_below(quantity, device, words):
    asked = row(role="control", quantity=quantity, device=device, limit="copy")
    text = printing.as_text([asked], 0.0)
    assert words in text
    assert ("pytorch-gpu-anatomy limits" in text) == (device == "cuda"), "a CPU has no such limits"


def test_a_share_is_of_the_ceiling_that_binds():
    # 6e11 FLOP at 8e14 FLOP/s take 0.75 ms, 2e9 bytes at 4e12 B/s half a millisecond.
    compute = row("b", limit="matmul bf16", flops=6e11, bytes=2e9)
    assert (
        printing.cells([compute], CEILINGS)[0]["of the limit"] == "75.0% of matmul bf16 (datasheet)"
    )
    assert "compute-bound" in printing.cells([compute], CEILINGS)[0]["regime"]
    memory = row("b", limit="matmul bf16", flops=1e9, bytes=2e9)
    assert printing.cells([memory], CEILINGS)[0]["of the limit"] == "50.0% of copy"
    assert "memory-bound" in printing.cells([memory], CEILINGS)[0]["regime"]
    assert printing.cells([row("b", limit="copy", bytes=1e9)], CEILINGS)[0]["of the limit"] == (
        "25.0% of copy"
    )


@pytest.mark.parametrize(
    "more", [{"verdict": "impossible", "note": "too fast"}, {"limit": None}, {"bytes": None}]
)
def test_nothing_is_said_of_a_limit_where_nothing_is_known(more):
    found = printing.cells(
        [row("b", control=None, **{"limit": "copy", "bytes": 1e9} | more)], CEILINGS
    )[0]
    assert "of the limit" not in found
    assert found.get("note", "") == more.get("note", "")


def test_what_a_reader_must_know_is_said():
    odd = row("b", wide=True, throttle="power-limited", control="c")
    found = printing.cells([CONTROL, odd])[1]
    assert found["verdict"] == "slower, wide"
    assert found["note"] == "over c. power-limited"


def test_who_has_no_limits_of_the_machine_is_told_how_to_get_them():
    asked = row("b", limit="copy", bytes=1e9)
    assert "pytorch-gpu-anatomy limits" in printing.as_text([asked], 0.0)
    assert "pytorch-gpu-anatomy limits" not in printing.as_text([asked], 0.0, ceilings=CEILINGS)


def test_a_notebook_gets_a_table_with_every_name_escaped():
    found = printing.as_html([CONTROL, row("<b>")], 0.002, ["look out"])
    assert '<td style="text-align:left">&lt;b&gt;</td>' in found
    assert found.count("<tr>") == 3 and "<script" not in found
    assert "warning: look out" in found


def test_a_comparison_prints_itself_both_ways():
    watch = FakeStopwatch()
    fakes = {"a": Fake(watch, 1e-3), "b": Fake(watch, 2e-3)}
    found = compare(fakes, watch=watch, profile=False)
    assert "slower" in str(found) and "slower" in found._repr_html_()


def test_a_limit_follows_from_what_was_counted_and_the_results_number_format():
    def limit(result, **counts):
        watch = FakeStopwatch()
        fake = Fake(watch, 1e-3)

        def call():
            fake()
            return result

        return compare({"a": call}, watch=watch, profile=False, **counts).table.limit[0]

    half = torch.ones(4, dtype=torch.bfloat16)
    assert limit(half, bytes=8) == "copy"
    assert limit(half, bytes=8, flops=8) == "matmul bf16"
    assert limit(half, bytes=8, limit="read") == "read"
    assert limit(half) is None
    assert limit(torch.ones(4, dtype=torch.float64), flops=8) is None
