"""Comparisons of long calls get a budget that leaves time for enough blocks."""

from types import SimpleNamespace

import pandas as pd
import pytest
import torch

from anatomy.experiments import never, transfers

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
