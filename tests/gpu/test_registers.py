"""What the compiler gives a thread on a GPU: registers alone, or memory for what is indexed."""

import pytest
import torch

from anatomy.chapters.reflection import registers

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")


def test_an_array_that_is_indexed_by_a_variable_lies_in_memory(monkeypatch):
    monkeypatch.setattr(registers, "HOW", {"budget_s": 0.2})
    table = registers.registers(iters=2)
    assert table.note.isna().all() if "note" in table else True
    rows = table[table.role != "again"].set_index("variant")
    assert rows.local_bytes[registers.CONSTANT] == 0
    assert rows.local_bytes[registers.VARIABLE] >= 4 * 32
    assert rows.thread_registers[registers.CONSTANT] >= 32
