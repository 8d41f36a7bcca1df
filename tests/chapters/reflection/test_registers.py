"""Registers without a GPU: the kernel on the CPU in both ways, refusals, and the claims."""

from types import SimpleNamespace

import pytest
import torch

from anatomy.chapters.reflection import claims as asked
from anatomy.chapters.reflection import registers, requirements
from anatomy.claims.table import Table
from anatomy.parts import cuda_kernels
from tests.chapters.reflection import reflection_rows
from tests.fakes.verdicts import verdict


@pytest.fixture
def toy(monkeypatch, kernels_on_cpu):
    """A card of one SM whose kernels run on the CPU, with little to do."""
    given = {"thread_registers": 40, "local_bytes": 0}
    monkeypatch.setattr(cuda_kernels, "given_to_a_thread", lambda run: given)
    card = SimpleNamespace(multi_processor_count=1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda where: card)
    monkeypatch.setattr(registers, "ROUNDS", 3)
    monkeypatch.setattr(registers, "BLOCKS_PER_SM", 2)
    monkeypatch.setattr(registers, "HOW", {"budget_s": 0.3, "settle_cap_s": 0.01})


def test_both_kinds_of_index_compute_the_same(toy):
    table = registers.registers("cpu", iters=2)
    kinds = [registers.CONSTANT, registers.VARIABLE]
    assert list(table.variant) == [*kinds, f"{registers.CONSTANT} (again)"]
    assert table.median_s.gt(0).all() and table.error.lt(1e-6).all()
    assert set(table.thread_registers) == {40}


def test_without_a_gpu_both_rows_say_why():
    table = registers.registers("cpu")
    assert len(table) == 2 and table.note.str.contains("needs a GPU").all()


def test_the_sums_are_those_of_the_kernel_by_hand():
    x = torch.arange(32.0).repeat(1, 1).T.contiguous()
    mine = [float(k) for k in range(32)]
    for _ in range(2):
        for k in range(32):
            mine[k] = (mine[k] + mine[(k + 1) % 32]) / 2
    assert registers.exact(x, 2).item() == pytest.approx(sum(mine), rel=1e-12)
    assert x[5, 0] == 5, "what the kernel reads is left as it is"


def test_the_requirement_covers_what_is_kept_and_what_is_checked():
    (need,) = requirements.registers(None)
    threads = 132 * requirements.BLOCKS_PER_SM * requirements.THREADS
    assert need.bytes > threads * 32 * (4 + 8)


@pytest.mark.parametrize(("slower", "word"), [(6.0, "holds"), (1.2, "fails")])
def test_the_claim_on_registers_follows_the_times(tmp_path, slower, word):
    reflection_rows.registers(tmp_path, slower=slower)
    found = verdict(tmp_path, "an-index-leaves-the-registers")
    assert found.word == word and "128 bytes a thread" in found.evidence


def timed(name: str, seconds: float, **more) -> dict:
    ends = {"median_s": seconds, "low_s": 0.99 * seconds, "high_s": 1.01 * seconds}
    return {"variant": name, "noise_floor": 0.001} | ends | more


@pytest.mark.parametrize(
    ("matmul_s", "flops", "word"),
    [
        (1e-4, 2000, "holds"),
        (4e-4, 2000, "fails"),
        (2e-4, 2000, "inconclusive"),
        (1e-4, 500, "fails"),
    ],
)
def test_more_operations_can_take_less_time(matmul_s, flops, word):
    rows = [timed("matmul, tf32", matmul_s, flops=flops), timed("softmax", 2e-4, flops=100)]
    assert asked.more_flops_can_be_faster(Table(rows, {})).word == word


def over(name: str, ratio: float, verdict: str, **more) -> dict:
    ends = {"ratio": ratio, "ratio_low": 0.99 * ratio, "ratio_high": 1.01 * ratio}
    return timed(name, ratio * 1e-3) | ends | {"verdict": verdict} | more


@pytest.mark.parametrize(
    ("elementwise", "products", "word"),
    [(9.0, 1.0, "holds"), (9.0, 1.5, "holds in part"), (1.2, 1.5, "fails")],
)
def test_fusion_is_asked_of_bytes_and_of_matmuls(elementwise, products, word):
    rows = [
        over("eager", elementwise, "slower", op="large elementwise"),
        over("eager", products, "slower" if products > 1 else "same", op="large products"),
    ]
    assert asked.fusion_helps_where_bytes_wait(Table(rows, {})).word == word


@pytest.mark.parametrize(
    ("small", "large", "waits", "word"),
    [
        ((0.6, "faster"), (1.0, "same"), 0.9, "holds"),
        ((1.1, "slower"), (1.0, "same"), 0.9, "holds in part"),
        ((1.0, "same"), (0.7, "faster"), 0.9, "fails"),
        ((0.6, "faster"), (1.0, "same"), None, "not measurable here"),
    ],
)
def test_graphs_are_asked_of_steps_by_what_their_gpu_waits(small, large, waits, word):
    rows = []
    for op, (ratio, seen), share in ((asked.SMALL, small, waits), (asked.LARGE, large, 0.01)):
        gap = share if waits is not None else None
        rows.append(timed("eager", 1e-3, op=op, gap_share=gap))
        rows.append(over("reduce-overhead", ratio, seen, op=op))
    assert asked.graphs_pay_where_the_gpu_waits(Table(rows, {})).word == word
