"""The ladder in a terminal: one row a way, from rung 0 upwards, and why some can't be climbed."""

import io
from types import SimpleNamespace

from rich.console import Console

from anatomy.cli import ladder
from anatomy.record import recording
from tests.chapters.ladder import ladder_traffic_rows


def row(variant: str, ratio: float | None = None, op: str = "forward and backward", **more) -> dict:
    told = {"op": op, "variant": variant, "role": "variant", "quantity": "step_wall"}
    if ratio is not None:
        told |= {"median_s": 0.01 * ratio, "low_s": 0.0099 * ratio, "high_s": 0.0101 * ratio}
        told |= {"ratio": ratio, "ratio_low": ratio * 0.99, "ratio_high": ratio * 1.01}
        told |= {"verdict": "faster", "flops": 1e12, "setup_s": 3.0, "total_peak_bytes": 2**31}
    return told | more


ROWS = [
    row("0 fp32", 1.0, role="control", verdict="control"),
    row("3 default", 0.25, share_of_ceiling=0.8, ratio_before=0.5, verdict_before="faster"),
    row("5 fp8", 0.1, verdict="undecided", gradient_error=0.07),
    row("0 fp32 (again)", 1.0, role="again"),
    row("4 current", note="Transformer Engine needs an NVIDIA GPU"),
    row("4 block", note="void: its loss strays 0.4 from rung 0's; 0.02 is allowed"),
    row("3 reduce-overhead", note="CUDA graphs need a GPU"),
    row("4 delayed", note="Transformer Engine needs an NVIDIA GPU"),
    {"op": "ceiling bf16", "variant": "8192 x 8192 x 8192", "quantity": "gpu_warm"},
    {"op": "first call", "variant": "compiler, first call", "quantity": "step_wall"},
]


def printed(rows, experiment=ladder.STEPS) -> list[str]:
    found = SimpleNamespace(rows=rows, experiment=experiment, warnings=["a noisy host"])
    held = io.StringIO()
    console = Console(file=held, width=200, color_system=None)
    for part in ladder.report(found):
        console.print(part, highlight=False)
    return [line.strip() for line in held.getvalue().splitlines() if line.strip()]


def line_of(lines: list[str], start: str) -> str:
    (found,) = [line for line in lines if line.lstrip("│ ").startswith(start + " ")]
    return found


def test_one_row_a_way_from_rung_0_upwards():
    lines = printed(ROWS)
    names = [name for line in lines for name in SHOWN if line.lstrip("│ ").startswith(name + " ")]
    assert names == SHOWN
    assert "8192" not in "".join(lines) and "again" not in "".join(lines)


SHOWN = [
    *("0 fp32", "3 default", "3 reduce-overhead"),
    *("4 current", "4 block", "4 delayed", "5 fp8"),
]


def test_a_row_has_its_speed_up_its_share_and_what_it_took():
    lines = printed(ROWS)
    compiled = line_of(lines, "3 default")
    shown = ("4.00× [3.96, 4.04]", "2.00×", "80.0%", "400 TFLOP/s", "2.00 GiB", "3.00 s")
    assert all(cell in compiled for cell in shown)
    assert "×" not in line_of(lines, "0 fp32")
    assert line_of(lines, "5 fp8").count("?") == 1, "an undecided speed-up is marked"
    assert "?: not told apart from the noise" in lines
    assert not any("?" in line for line in printed(ROWS[:2]))


def test_what_can_not_be_climbed_says_so_in_its_row_and_why_below():
    lines = printed(ROWS)
    assert "can't run" in line_of(lines, "4 current")
    assert "void" in line_of(lines, "4 block")
    assert "4 current, 4 delayed: Transformer Engine needs an NVIDIA GPU" in lines
    assert "3 reduce-overhead: CUDA graphs need a GPU" in lines
    assert lines[-1] == "warning: a noisy host"


def test_each_comparison_has_a_table_and_empty_columns_are_left_out():
    lines = printed([*ROWS, row("0 fp32", 1.2, "with AdamW", role="control", verdict="control")])
    assert "with AdamW, wall time of a step" in lines
    assert any("gradients off" in line for line in lines)
    assert not any("gradients off" in line for line in printed(ROWS[:2]))


def test_bytes_of_attention_are_shown_counted_and_on_paper(tmp_path):
    path = ladder_traffic_rows.traffic(tmp_path)
    lines = printed(recording.load(path).data["rows"], ladder.TRAFFIC)
    rows = [line for line in lines if "T=8192 H=8" in line]
    assert len(rows) == 6 and all(line.count("×") == 2 for line in rows)


def test_without_counters_the_reason_is_said_once(tmp_path):
    path = ladder_traffic_rows.traffic(tmp_path, counted=False)
    lines = printed(recording.load(path).data["rows"], ladder.TRAFFIC)
    assert lines.count("counters not read: ERR_NVGPUCTRPERM") == 1
    assert all(line.count("×") == 1 for line in lines if "T=8192 H=8" in line)
