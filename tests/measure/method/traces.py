"""Scenarios and their traces: what the measuring room is asked, and what it then does.

A scenario is a function of a virtual card (`@scenario`), of which there are some fifty in
`scenarios` and `scenarios_beside`. Its trace is kept in METHOD.json.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from anatomy.measure import compare_raw
from tests.fakes import fake_gpu
from tests.measure.method.traced_gpu import OPERATIONS, TracedGpu

# What is kept of a row: all that clocks, counters and checks said, and none of its words.
FIGURES = (
    *("variant", "role", "quantity", "device", "error", "blocks_s", "resolution_s"),
    *("p5_s", "p95_s", "p99_s", "samples", "launch_inclusive", "throttle", "discarded"),
    *("discarded_why", "enqueue_s", "sm_clock_mhz", "power_w", "temperature_c", "kernels"),
    *("kernels_per_call", "busy_s", "gap_share", "period_s", "samples_s"),
)


@dataclass(frozen=True)
class Scenario:
    """What is asked of the room: `act(gpu)` returns figures, or raises `raises`."""

    name: str
    act: Callable[[TracedGpu], object]
    card: dict
    raises: type[Exception] | None


@dataclass(frozen=True)
class Trace:
    """What the room did in one scenario.

    Attributes:
        kinds: A letter for each operation, see `OPERATIONS`.
        operations: Digest of the operations with what they were given.
        figures: Digest of what came of it, or the exception's name.
    """

    kinds: str
    operations: str
    figures: str


SCENARIOS: dict[str, Scenario] = {}


def scenario(*, raises: type[Exception] | None = None, **card) -> Callable:
    """Make a function a scenario, on a card with these properties."""

    def register(act: Callable[[TracedGpu], object]) -> Callable:
        SCENARIOS[act.__name__] = Scenario(act.__name__, act, card, raises)
        return act

    return register


def compared(gpu: TracedGpu, calls: dict, **options) -> dict:
    """What a comparison found, without its words."""
    raw = compare_raw(calls, **{"budget_s": 0.2, "settle_cap_s": 0.0, "profile": False} | options)
    return {
        "rows": [{name: row[name] for name in FIGURES if name in row} for row in raw.rows],
        "medians": raw.medians,
        "errors": raw.errors,
        "warnings": len(raw.warnings),
    }


def counted(figures: dict, *, warnings: int) -> dict:
    """The figures, if there were as many warnings as there should be."""
    assert figures["warnings"] == warnings, figures["warnings"]
    return figures


def traced(scenario: Scenario) -> Trace:
    """Run one scenario on a card of its own."""
    fake_gpu.forget()
    gpu = TracedGpu(**scenario.card)
    with pytest.MonkeyPatch.context() as patched:
        patched.delenv("ANATOMY_ALLOW_FOREIGN", raising=False)
        gpu.install(patched)
        try:
            figures = scenario.act(gpu)
            assert scenario.raises is None, f"{scenario.name} raised no {scenario.raises.__name__}"
        except Exception as error:
            if scenario.raises is None or not isinstance(error, scenario.raises):
                raise
            figures = type(error).__name__
        finally:
            fake_gpu.forget()
    kinds = "".join(OPERATIONS[kind] for kind, *_ in gpu.operations)
    return Trace(kinds, _digest(gpu.operations), _digest(figures))


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(_plain(value)).encode()).hexdigest()[:16]


def _plain(value: object) -> object:
    """The same with floats rounded: sums may come out in another order on another Python."""
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    assert value is None or isinstance(value, str | int), f"a {type(value).__name__} in a trace"
    return value
