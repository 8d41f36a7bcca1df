"""The grid runner: which errors are rows, what these say, what is given back, what ends a run."""

import gc
import weakref

import pandas as pd
import pytest
import torch

from anatomy.parts import grid, memory
from anatomy.record.requirements import Capacity, Requirement
from anatomy.table import errors
from tests.fakes.fake_stopwatch import FakeStopwatch

CPU = torch.device("cpu")
CELLS = [{"op": f"sum N={n}", "batch": n} for n in (1, 2, 3)]
GRID = {"variants": ("plain", "fused"), "quantity": "step_wall", "where": CPU}
CUDA_OOM = "CUDA out of memory. Tried to allocate 20.00 GiB. Process 4711 has 3 GiB in use."


def timed(cell, **more) -> pd.DataFrame:
    """A table as `compare` gives it, of times that were told."""
    rows = [("plain", "control", 2.0), ("fused", "variant", 1.0)]
    named = {"op": cell["op"], "quantity": "step_wall", "device": "cpu"} | more
    columns = ("variant", "role", "median_s")
    return pd.DataFrame([dict(zip(columns, row, strict=True)) | named for row in rows])


def failing_at(batch: int, error: Exception):
    """Measures all cells but that of one batch, which raises."""

    def measure(cell):
        if cell["batch"] == batch:
            raise error
        return timed(cell)

    return measure


@pytest.fixture
def cleaned(monkeypatch):
    """Devices whose memory was given back."""
    seen, real = [], grid.give_back
    monkeypatch.setattr(grid, "give_back", lambda where: seen.append(where) or real(where))
    return seen


def accelerator_error(code: int) -> torch.AcceleratorError:
    error = torch.AcceleratorError("CUDA error: what it says decides nothing, out of memory or not")
    error.error_code = code
    return error


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (torch.OutOfMemoryError(CUDA_OOM), "out of memory"),
        (MemoryError(), "out of memory"),
        (accelerator_error(2), "out of memory"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling x"), "out of memory"),
        (errors.OutOfMemory("It needs 3 GiB."), "out of memory: It needs 3 GiB."),
        (errors.DisagreementError("fused strays.\nBy 2."), "wrong result: fused strays."),
        (errors.MeasurementError("The clock jumped."), "not measured: The clock jumped."),
        (errors.MeasurementError(), "not measured: MeasurementError:"),
        (errors.DeviceError("FP8 needs sm_89."), "not supported: FP8 needs sm_89."),
        (
            NotImplementedError("no kernel in /opt/venv/torch/x.py"),
            "not supported: NotImplementedError: no kernel in x.py",
        ),
    ],
)
def test_what_any_experiment_must_expect_costs_its_cell_alone_and_says_what_it_is(error, note):
    table = grid.measure_cells(CELLS, failing_at(2, error), **GRID, promised=("uses",))
    assert list(table.batch) == [1, 1, 2, 2, 3, 3] and {*grid.PROMISED, "uses"} <= {*table}
    lost = table[table.batch == 2]
    assert set(lost.note) == {note} and lost.median_s.isna().all()
    assert list(lost.variant) == ["plain", "fused"] and list(lost.role) == ["control", "variant"]
    assert set(lost.op) == {"sum N=2"} and set(lost.quantity) == {"step_wall"}
    assert set(lost.device) == {"cpu"}
    assert list(table[table.batch != 2].median_s) == [2.0, 1.0] * 2
    assert table[table.batch != 2].note.isna().all()


@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError("division by zero"),
        RuntimeError("out of memory, says the text, which decides nothing"),
        errors.BadParameter("size=0 must be above 0."),
        errors.Busy("Another process computes."),
        accelerator_error(700),
    ],
)
def test_what_nobody_foresaw_ends_the_run_and_names_its_cell(error, cleaned):
    with pytest.raises(type(error)) as caught:
        grid.measure_cells(CELLS, failing_at(2, error), **GRID)
    assert caught.value is error
    assert error.__notes__ == ["This was raised in the cell with op='sum N=2', batch=2."]
    lost_device = isinstance(error, torch.AcceleratorError)
    assert cleaned == [CPU] * (1 if lost_device else 2), "nothing can be given back any more"


def test_an_experiment_may_foresee_more_but_not_that_the_device_is_lost():
    more = GRID | {"foreseen": (RuntimeError,)}
    table = grid.measure_cells(CELLS, failing_at(1, RuntimeError("no such layout")), **more)
    assert set(table[table.batch == 1].note) == {"failed: RuntimeError: no such layout"}
    with pytest.raises(torch.AcceleratorError):
        grid.measure_cells(CELLS, failing_at(1, accelerator_error(700)), **more)


def test_what_a_cell_made_is_gone_before_memory_is_given_back_failed_or_not(monkeypatch):
    made, alive = [], []

    def measure(cell):
        x = torch.ones(cell["batch"])
        made.append(weakref.ref(x))
        if cell["batch"] == 2:
            raise torch.OutOfMemoryError(CUDA_OOM)
        return timed(cell)

    gc.collect()
    monkeypatch.setattr(grid, "give_back", lambda where: alive.append(made[-1]() is not None))
    grid.measure_cells(CELLS, measure, **GRID)
    assert alive == [False] * 3, "a traceback would hold what the cell that failed had made"


def test_coordinates_are_added_to_what_was_measured_but_never_overwrite_it():
    table = grid.measure_cells(CELLS[:1], lambda cell: timed(cell, batch=7).assign(op="x"), **GRID)
    assert set(table.batch) == {7} and set(table.op) == {"x"}


def test_a_budget_that_is_used_up_leaves_the_rest_with_a_reason(monkeypatch):
    watch = FakeStopwatch(device=CPU)
    monkeypatch.setattr(grid, "stopwatch_for", lambda where: watch)

    def measure(cell):
        watch.time_s += 20.0
        return timed(cell)

    table = grid.measure_cells(CELLS, measure, **GRID, budget_s=30.0)
    assert list(table.median_s.notna()) == [True] * 4 + [False] * 2
    assert set(table[table.batch == 3].note) == {"not begun: the 30 s for all are used up"}


def test_rows_without_times_have_each_quantity_and_the_variants_of_their_cell():
    told = GRID | {"quantity": ("gpu_cold", "gpu_warm"), "variants": lambda cell: [cell["op"], "b"]}
    table = grid.measure_cells(CELLS[:1], failing_at(1, MemoryError()), **told)
    assert list(table.quantity) == ["gpu_cold"] * 2 + ["gpu_warm"] * 2
    assert list(table.variant) == ["sum N=1", "b"] * 2
    assert list(table.role) == ["control", "variant"] * 2


@pytest.mark.parametrize(
    ("raised", "note"),
    [
        (torch.OutOfMemoryError(CUDA_OOM), "out of memory"),
        (KeyError("aten.x"), "not compiled: KeyError: 'aten.x'"),
    ],
)
def test_what_a_compiler_raises_is_known_by_its_type_and_by_that_of_what_it_wraps(raised, note):
    def backend(graph, examples):
        raise raised

    found, why = grid.attempt(lambda: torch.compile(torch.sin, backend=backend)(torch.ones(2)), CPU)
    assert (found, why) == (None, note)


def test_nothing_is_compiled_already_when_the_next_cell_begins():
    compiled = []

    def backend(graph, examples):
        compiled.append(graph)
        return graph.forward

    run = torch.compile(torch.sin, backend=backend)
    for _ in range(2):
        assert grid.attempt(lambda: float(run(torch.zeros(2)).sum()), CPU) == (0.0, "")
    assert len(compiled) == 2


def test_a_cell_that_requires_more_than_there_is_is_not_begun_and_says_both(monkeypatch):
    on = Capacity(8 * 2**30, (7, 5))
    monkeypatch.setattr(memory, "capacity", lambda where: on)
    wants = [Requirement("sum N=1", 2**20), Requirement("sum N=2", 9 * 2**30)]
    wants.append(Requirement("sum N=3", 2**20, "bf16"))
    begun = []
    table = grid.measure_cells(
        CELLS, lambda cell: begun.append(cell["batch"]) or timed(cell), **GRID, required=wants
    )
    assert begun == [1] and table[table.batch == 1].note.isna().all()
    assert set(table[table.batch == 2].note) == {"needs 9.50 GiB; 8.00 GiB are free on this card"}
    assert set(table[table.batch == 3].note) == {"not supported on sm_75: bf16 products need sm_80"}
