"""Registers without a GPU: the kernel on the CPU in both ways, refusals, and the claims."""

from types import SimpleNamespace

import pytest
import torch

from anatomy.chapters.reflection import claims as asked
from anatomy.chapters.reflection import registers, requirements
from anatomy.claims.table import Table
from anatomy.parts import cuda_kernels


def test_both_kinds_of_index_compute_the_same(monkeypatch, kernels_on_cpu):
    given = {"thread_registers": 40, "local_bytes": 0}
    monkeypatch.setattr(cuda_kernels, "given_to_a_thread", lambda run: given)
    card = SimpleNamespace(multi_processor_count=1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda where: card)
    monkeypatch.setattr(registers, "ROUNDS", 3)
    monkeypatch.setattr(registers, "HOW", {"budget_s": 0.3, "settle_cap_s": 0.01})
    table = registers.registers("cpu", iters=2)
    kinds = [registers.CONSTANT, registers.VARIABLE]
    assert list(table.variant) == [*kinds, f"{registers.CONSTANT} (again)"]
    assert table.error.lt(1e-6).all() and set(table.thread_registers) == {40}


def test_without_a_gpu_both_rows_say_why():
    table = registers.registers("cpu")
    assert len(table) == 2 and table.note.str.contains("needs a GPU").all()


def test_the_requirement_covers_what_is_kept_and_what_is_checked():
    (need,) = requirements.registers(None)
    threads = 132 * requirements.BLOCKS_PER_SM * requirements.THREADS
    assert need.bytes > threads * 32 * (4 + 8)


def row(variant: str, ms: float, **more) -> dict:
    """A row of so many milliseconds, 1 % wide, whose control takes one."""
    verdict = "slower" if ms > 1.02 else "faster" if ms < 0.98 else "same"
    ends = {"ratio": ms, "ratio_low": 0.99 * ms, "ratio_high": 1.01 * ms, "verdict": verdict}
    ends |= {"median_s": 1e-3 * ms, "low_s": 0.99e-3 * ms, "high_s": 1.01e-3 * ms}
    return {"variant": variant, "noise_floor": 0.001} | ends | more


def operations(ms: float, flops: int) -> list[dict]:
    return [row("matmul, tf32", ms, flops=flops), row("softmax", 2.0, flops=100)]


def chains(elementwise: float, products: float) -> list[dict]:
    both = {"large elementwise": elementwise, "large products": products}
    return [row("eager", ms, op=op) for op, ms in both.items()]


def steps(small: float, large: float, waits: float | None = 0.9) -> list[dict]:
    both = {asked.SMALL: (small, waits), asked.LARGE: (large, waits and 0.01)}
    eager = [row("eager", 1.0, op=op, gap_share=share) for op, (_, share) in both.items()]
    return eager + [row("reduce-overhead", ms, op=op) for op, (ms, _) in both.items()]


def kept(ms: float) -> list[dict]:
    return [row("index known at run time", ms, local_bytes=128)]


@pytest.mark.parametrize(
    ("claim", "rows", "word"),
    [
        (asked.more_flops_can_be_faster, operations(1.0, 2000), "holds"),
        (asked.more_flops_can_be_faster, operations(4.0, 2000), "fails"),
        (asked.more_flops_can_be_faster, operations(2.0, 2000), "inconclusive"),
        (asked.more_flops_can_be_faster, operations(1.0, 500), "fails"),
        (asked.fusion_helps_where_bytes_wait, chains(9.0, 1.0), "holds"),
        (asked.fusion_helps_where_bytes_wait, chains(9.0, 1.5), "holds in part"),
        (asked.fusion_helps_where_bytes_wait, chains(1.2, 1.5), "fails"),
        (asked.graphs_pay_where_the_gpu_waits, steps(0.6, 1.0), "holds"),
        (asked.graphs_pay_where_the_gpu_waits, steps(1.1, 1.0), "holds in part"),
        (asked.graphs_pay_where_the_gpu_waits, steps(1.0, 0.7), "fails"),
        (asked.graphs_pay_where_the_gpu_waits, steps(0.6, 1.0, None), "not measurable here"),
        (asked.an_index_leaves_the_registers, kept(6.0), "holds"),
        (asked.an_index_leaves_the_registers, kept(1.2), "fails"),
    ],
)
def test_a_claim_follows_the_times(claim, rows, word):
    assert claim(Table(rows, {})).word == word


def test_evidence_says_how_much_lies_in_memory():
    found = asked.an_index_leaves_the_registers(Table(kept(6.0), {}))
    assert "128 bytes a thread" in found.evidence
