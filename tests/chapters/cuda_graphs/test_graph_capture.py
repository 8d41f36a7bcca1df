"""CUDA graphs without a GPU: what the tables hold with a graph that is made up, and the claims."""

import re
from types import SimpleNamespace

import pandas as pd
import pytest
import torch

from anatomy import claims
from anatomy.chapters.cuda_graphs import calculations, graph_capture
from anatomy.chapters.cuda_graphs.claims import kernel_class
from anatomy.measure import census
from anatomy.parts import graphs as graph_replays
from anatomy.parts import grid, memory
from anatomy.record import recording
from anatomy.table import intervals
from anatomy.table.errors import DisagreementError, MeasurementError
from tests.claims.test_claims import edited
from tests.fakes import synthetic
from tests.fakes.fake_stopwatch import made_up_time
from tests.fakes.verdicts import verdict

CPU = torch.device("cpu")


@pytest.fixture
def toy(monkeypatch):
    """Made-up time, and a graph that is a copy of the eager result into tensors that stay."""

    def capture(call, where, pool=None):
        static = call()
        each = [static] if isinstance(static, torch.Tensor) else list(static)

        def replay():
            again = call()
            for kept, new in zip(each, [again] if len(each) == 1 else again, strict=True):
                kept.copy_(new)
            return static

        return graph_replays.Captured(replay, seconds=0.25, pool_bytes=2**21)

    monkeypatch.setattr(graph_replays, "capture", capture)
    monkeypatch.setattr(graph_capture, "capture", capture)
    with made_up_time():
        yield


def chain(work: str = "pointwise", quantities=("step_wall",)) -> pd.DataFrame:
    elements = 64 if work == "pointwise" else 64**2
    told = {"op": f"{work} 64", "work": work, "elements": elements, "links": 3}
    return graph_capture._chain(told, 3, CPU, quantities, 6)


@pytest.mark.parametrize("work", ["pointwise", "products"])
def test_a_cell_compares_the_graph_with_the_loop_and_keeps_its_costs(work, toy):
    table = chain(work)
    steady, first = table[:-1], table.iloc[-1]
    assert list(steady.variant) == ["eager", "graph", "graph, input copied", "eager (again)"]
    assert set(table.work) == {work} and set(table.elements) == {
        64 if work == "pointwise" else 64**2
    }
    assert first.op == f"first call {work} 64" and first.median_s == 0.25
    graphs = steady[steady.role == "variant"]
    assert set(graphs.pool_bytes) == {2**21} and set(graphs.capture_s) == {0.25}
    assert steady[steady.role != "variant"].pool_bytes.isna().all()
    assert set(steady.error) != {None} and (steady.error < graph_capture.ALLOWED_CHAIN).all()


def test_a_capture_has_paid_after_its_seconds_over_what_a_replay_saves():
    def row(variant, role, verdict, seconds, quantity="step_wall"):
        told = {"variant": variant, "role": role, "verdict": verdict, "quantity": quantity}
        return told | {"blocks_s": [seconds] * 12}

    def costs(verdict, quantity="step_wall"):
        rows = [row("eager", "control", "control", 3.0, quantity)]
        rows.append(row("graph", "variant", verdict, 1.0, quantity))
        captured = graph_replays.Captured(lambda: None, seconds=10.0, pool_bytes=1)
        return graph_replays._with_costs(pd.DataFrame(rows), captured).iloc[1]

    assert costs("faster").replays == intervals.break_even(10.0, [3.0] * 12, [1.0] * 12).median == 5
    assert pd.isna(costs("undecided").replays) and pd.isna(costs("slower").replays)
    assert pd.isna(costs("faster", "host_enqueue").replays), "the host's time is not the wall's"


def test_the_mean_kernel_is_busy_time_by_kernels_and_null_where_nobody_looked():
    seen = census.Census(("a", "a", "b"), busy_s=6e-6, span_s=9e-6)
    assert graph_replays._mean_kernel(seen) == pytest.approx(2e-6)
    assert graph_replays._mean_kernel(None) is None
    assert graph_replays._mean_kernel(census.Census((), 0.0, 0.0)) is None


def test_a_census_and_an_account_of_memory_reach_the_rows_they_are_of(toy, monkeypatch):
    seen = census.Census(("k",) * 4, busy_s=8e-6, span_s=9e-6)
    monkeypatch.setattr(census, "take", lambda calls, watch: dict.fromkeys(calls, seen))
    peaks = iter([memory.Peak(5, 6, 7), memory.Peak(0, 6, 9), memory.Peak(1, 6, 9)])
    monkeypatch.setattr(memory, "peak", lambda call, where: next(peaks))
    table = chain()
    assert set(table.kernel_s) == {2e-6}
    steady = table[:-1].set_index("variant")
    assert steady.loc["eager"].kernels_per_call == 4
    assert list(steady.reserved_bytes) == [7, 9, 9, 7]
    assert list(steady.peak_bytes) == [5, 0, 1, 5]


def test_a_graph_that_computes_something_else_is_not_timed(toy, monkeypatch):
    wrong = graph_replays.Captured(lambda: torch.zeros(64, dtype=torch.bfloat16), 0.1, 0)
    monkeypatch.setattr(graph_replays, "capture", lambda *args: wrong)
    with pytest.raises(DisagreementError, match="graph strays"):
        chain()


def test_a_training_step_has_a_loss_and_gradients_and_counts_three_passes(toy):
    told = {"op": "training C=64 tokens=16", "work": "training", "width": 64, "tokens": 16}
    table = graph_capture._step(told | {"layers": 1}, 8, CPU, 6)
    assert table.flops.iloc[0] == 3 * 16 * (24 * 64 * 64 + 4 * 64 * 8)
    assert set(table.width) == {64} and table.op.iloc[-1].startswith("first call training")


def on_a_gpu(monkeypatch, measure) -> pd.DataFrame:
    """The table of one cell of a GPU that is made up."""
    monkeypatch.setattr(grid, "give_back", lambda where: None)
    monkeypatch.setattr(graph_capture, "held_before", lambda where: 5)
    where, cells = torch.device("cuda", 0), [{"op": "x", "elements": 4}]
    return graph_capture._measured(cells, measure, graph_capture.WALL, where, ())


@pytest.mark.parametrize("error", [RuntimeError("no\nmemory"), MeasurementError("no")])
def test_what_fails_on_a_gpu_is_a_row_that_says_why(error, monkeypatch):
    def fails(cell):
        raise error

    table = on_a_gpu(monkeypatch, fails)
    assert table.note.str.endswith("no").all() and table.median_s.isna().all()
    assert list(table.variant) == ["eager", "graph", "graph, input copied"]
    with pytest.raises(TypeError):  # a mistake of ours is not a limit of the machine

        def mistake(cell):
            raise TypeError

        on_a_gpu(monkeypatch, mistake)


def test_what_was_held_before_a_cell_is_not_the_cells(monkeypatch):
    table = pd.DataFrame({"op": ["x", "first call x"], "reserved_bytes": [7, None]}, dtype=object)
    found = on_a_gpu(monkeypatch, lambda cell: table)
    assert found.reserved_bytes[0] == 2 and pd.isna(found.reserved_bytes[1])


def test_the_stopwatch_is_there_before_anything_is_held(monkeypatch):
    asked = []
    monkeypatch.setattr(graph_replays, "stopwatch_for", lambda where: asked.append("stopwatch"))
    cuda = {"empty_cache": lambda: asked.append("emptied")}
    cuda |= {"memory_reserved": lambda where: asked.append("read") or 3}
    monkeypatch.setattr(torch, "cuda", SimpleNamespace(**cuda))
    assert graph_replays.held_before(CPU) == 3 and asked == ["stopwatch", "emptied", "read"]


@pytest.mark.parametrize("name", ["map", "training", "pools"])
def test_a_cpu_has_no_graphs_and_says_so(name):
    table = getattr(graph_capture, name)(device="cpu")
    known = [name for name in ("op", "variant", "quantity") if name in table]
    assert table.note.str.contains("need an NVIDIA GPU; this is cpu").all()
    assert "median_s" not in table or table.median_s.isna().all()
    assert not table.duplicated(known).any()


def test_pools_are_counted_for_each_way_and_number(toy, monkeypatch):
    taken = []
    capture = graph_capture.capture
    monkeypatch.setattr(
        graph_capture,
        "capture",
        lambda call, where, pool: taken.append(pool) or capture(call, where, pool),
    )
    monkeypatch.setattr(memory, "peak", lambda call, where: memory.Peak(0, 0, 10 + len(call())))
    cuda = {"synchronize": lambda where: None, "empty_cache": lambda: None}
    cuda |= {"memory_reserved": lambda where: 10, "graph_pool_handle": lambda: "shared"}
    monkeypatch.setattr(torch, "cuda", SimpleNamespace(**cuda))
    inputs = [torch.zeros(2, 3), torch.zeros(1, 3)]
    held = list(graph_capture._held(lambda x: x + 1, inputs, CPU))
    assert held == [("eager", 2, 36), ("own pools", 2**22, 36), ("one pool", 2**22, 36)]
    assert taken == [None, None, "shared", "shared"]


@pytest.fixture
def recorded(tmp_path):
    for name in ("map", "training", "pools"):
        synthetic.MAKERS[f"graph_capture.{name}"](tmp_path)
    return tmp_path


def say(row, word: str, ratio: float) -> None:
    """Make a row's comparison come out so."""
    if row["role"] == "variant" and row.get("ratio"):
        ends = {"ratio_low": 0.99 * ratio, "ratio_high": 1.01 * ratio}
        row |= {"verdict": word, "ratio": ratio, "noise_floor": 0.001} | ends


def test_graphs_are_faster_only_where_kernels_are_short(recorded):
    found = verdict(recorded, "cuda-graphs-are-faster")
    assert found.word == claims.IN_PART and "under 3 µs" in found.condition
    assert "1.00× (over 100 µs)" in found.evidence, "long kernels are told apart from short ones"
    assert found.measured.unit == "x" and found.measured.high > 1.5


@pytest.mark.parametrize(
    ("word", "ratio", "expected"),
    [
        ("faster", 0.6, claims.HOLDS),
        ("same", 1.0, claims.FAILS),
        ("slower", 1.2, claims.FAILS),
        ("faster", 1 / 1.5, claims.INCONCLUSIVE),
        ("faster", 0.8, claims.FAILS),
        ("faster", 0.1, claims.HOLDS),
    ],
)
def test_the_verdict_on_graphs_follows_the_rows(word, ratio, expected, recorded):
    for name in ("map", "training"):
        edited(recorded, f"graph_capture.{name}", lambda row: say(row, word, ratio))
    found = verdict(recorded, "cuda-graphs-are-faster")
    assert found.word == expected
    said = re.search(r"(\d+) are faster at all, (\d+) slower", found.evidence)
    assert (said[1] != "0", said[2] != "0") == (word == "faster", word == "slower")


def test_memory_is_neutral_where_a_graph_holds_no_more_than_the_loop(recorded):
    found = verdict(recorded, "cuda-graphs-memory-neutral")
    assert found.word == claims.IN_PART and "one pool" in found.condition
    assert "pools of their own 1.00× to 4.00×" in found.evidence

    def without_pool(row):
        for column in ("reserved_bytes", "pool_bytes"):
            row |= {column: 2**28} if row.get(column) else {}

    for name in ("training", "pools"):
        edited(recorded, f"graph_capture.{name}", without_pool)
    assert verdict(recorded, "cuda-graphs-memory-neutral").word == claims.HOLDS

    def with_pool(row):
        for column in ("reserved_bytes", "pool_bytes"):
            if row.get(column) and row["role"] == "variant":
                row[column] *= 1.5

    for name in ("training", "pools"):
        edited(recorded, f"graph_capture.{name}", with_pool)
    found = verdict(recorded, "cuda-graphs-memory-neutral")
    assert found.word == claims.FAILS and found.measured.value == pytest.approx(1.5)


@pytest.mark.parametrize("name", ["cuda-graphs-are-faster", "cuda-graphs-memory-neutral"])
def test_without_a_gpu_the_claims_on_graphs_say_why(name, tmp_path):
    for each in ("map", "training", "pools"):
        table = getattr(graph_capture, each)(device="cpu")
        rows = [
            {key: None if pd.isna(value) else value for key, value in row.items()}
            for row in table.to_dict("records")
        ]
        synthetic.record(tmp_path, f"graph_capture.{each}", rows)
    found = verdict(tmp_path, name)
    assert found.word == claims.NOT_MEASURABLE and "need an NVIDIA GPU" in found.evidence


def test_a_memset_beside_each_matmul_does_not_halve_the_time_of_a_call(recorded):
    def with_memsets(row):
        if "products 4096" in row["op"]:
            row |= {"kernel_s": 5e-5}  # what was kept: busy time over all that was launched
            row |= {"busy_s": 20 * 2e-4, "kernels_per_call": 40} if row["role"] == "control" else {}

    edited(recorded, "graph_capture.map", with_memsets)
    rows = recording.find(recorded, synthetic.MACHINE, "graph_capture.map").rows
    mine = [row for row in rows if "products 4096" in row["op"]]
    assert {row["kernel_s"] for row in mine} == {2e-4} and len(mine) == 5
    assert "1.00× (over 100 µs)" in verdict(recorded, "cuda-graphs-are-faster").evidence


def test_a_graph_gives_at_most_the_step_over_its_kernels():
    assert calculations.over_its_kernels(6e-3, 1.5e-3) == pytest.approx(4.0)


def test_kernels_are_told_apart_by_their_length():
    named = [kernel_class(x) for x in (1e-6, 5e-6, 2e-5, 1e-3, None, float("nan"))]
    assert named[:3] == ["under 3 µs", "3 to 10 µs", "10 to 30 µs"]
    assert named[3] == "over 100 µs" and named[4] == named[5] == "of unknown length"
    assert kernel_class(5e-5) == "30 to 100 µs"
