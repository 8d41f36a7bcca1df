"""References in prose to what attention's softmax takes at the least."""

from collections.abc import Mapping
from typing import Any

from anatomy.figures.text import spans
from anatomy.figures.text.facts import reference
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.record.showing import Showing
from anatomy.table import units

BACKENDS = "attention.backends"
# Exponentials in a clock of each SM. Shah et al. 2024 (FlashAttention-3, arXiv:2407.08608, section
# 2.2) count 3.9e12 a second on an H100: 16 of each of 132 SMs at 1830 MHz, as NVIDIA's CUDA C++
# Programming Guide has it for this capability.
EXPONENTIALS = {"9.0": 16}


@reference("exponentials")
def exponentials(showing: Showing, op: str, spec: str) -> str:
    """`[[exponentials:forward N=8192]]`, seconds of one exponential for each score, by all SMs at
    their highest clock, of a forward call without a mask."""
    found = showing.find(BACKENDS)
    if showing.collecting:
        return ""
    if found.recording is None:
        return spans.gap(found)
    machine = found.recording.data["machine"]
    row = rows.select(found.recording.rows, op=op)[0]
    if (seconds := least_s(row, found.params["head_width"], machine)) is None:
        return spans.gap_because(f"the rate of exponentials of {machine.get('gpu')} is not known")
    origin = f"one exponential for each score at {EXPONENTIALS[machine['capability']]} a clock of "
    origin += f"each SM, at {machine['max_sm_clock_mhz']} MHz; {op} of {BACKENDS}"
    return spans.figure("measured", units.seconds(seconds, most=2), origin) + spans.marks(found)


def least_s(row: Row, head_width: int, machine: Mapping[str, Any]) -> float | None:
    """Seconds of a row's exponentials, by the units for them alone; None where their rate on this
    machine is not known. Each score has 4 D FLOPs in the two matmuls, and one exponential."""
    per_clock = EXPONENTIALS.get(str(machine.get("capability")))
    clock = machine.get("max_sm_clock_mhz")
    if per_clock is None or units.missing(clock):
        return None
    a_second = per_clock * machine["sm_count"] * clock * 1e6
    return row["flops"] / (4 * head_width) / a_second
