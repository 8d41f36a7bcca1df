"""Comparisons of long calls get a budget that leaves time for enough blocks."""

from types import SimpleNamespace

import pandas as pd
import pytest
import torch

from anatomy.chapters.attention import attention
from anatomy.chapters.never import never
from anatomy.chapters.precision import training
from anatomy.chapters.sync_points import transfers

CPU = torch.device("cpu")


@pytest.mark.parametrize("long", [True, False])
def test_long_calls_get_a_longer_budget(long, monkeypatch):
    asked = []

    def fake(calls, *, budget_s, **told):
        asked.append(budget_s)
        names = [*calls, f"{next(iter(calls))} (again)"]
        roles = ["control", *["variant"] * (len(calls) - 1), "again"]
        rows = [
            {"variant": n, "role": r, "blocks_s": [1.0, 2.0]}
            for n, r in zip(names, roles, strict=True)
        ]
        return SimpleNamespace(table=pd.DataFrame(rows))

    monkeypatch.setattr(transfers, "compare", fake)
    monkeypatch.setattr(never, "compare", fake)
    monkeypatch.setattr(transfers, "waits_for_gpu", lambda watch, call: True)
    if long:
        monkeypatch.setattr(transfers, "LARGE_BYTES", 4096)
        monkeypatch.setattr(never, "LONG_ELEMENTS", 16)
    watch = SimpleNamespace(device=CPU, wall=lambda calls: 0.0)
    tables = list(transfers.copies("to the GPU", 4096, watch, 6))
    assert [set(table.waits) for table in tables] == [{True}] * 2
    never.ping_pong(16, CPU, 6)
    ours, theirs = (
        (transfers.LARGE_BUDGET_S, never.LONG_BUDGET_S)
        if long
        else (transfers.BUDGET_S, never.BUDGET_S)
    )
    assert asked == [ours, ours, theirs]


class Asked(Exception):
    """Raised in place of a measurement, with the budget it was to have."""


@pytest.mark.parametrize("long", [True, False])
def test_long_steps_and_long_sequences_get_a_longer_budget(long, monkeypatch):
    def fake(calls, *, budget_s, **told):
        raise Asked(budget_s)

    monkeypatch.setattr(attention, "compare", fake)
    monkeypatch.setattr(attention, "LONG_SEQUENCE", 64 if long else 65)
    with pytest.raises(Asked) as asked:
        attention.backends(device="cpu", heads=2, head_width=16, longest=64, iters=6)
    assert asked.value.args == (attention.LONG_BUDGET_S if long else attention.BUDGET_S,)

    monkeypatch.setattr(training, "compare", fake)
    monkeypatch.setattr(training, "LONG_FLOPS", 1.0 if long else 1e30)
    with pytest.raises(Asked) as asked:
        training.maps([(16, 16)], CPU, 6, 0.5)
    assert asked.value.args == (0.5 * training.LONG_BUDGETS if long else 0.5,)
