"""The grid runner: which errors are rows, what these say, what is given back, what ends a run."""

import gc
import itertools
import weakref
from types import SimpleNamespace

import pandas as pd
import pytest
import torch

from anatomy.chapters.channels_last import channels_last
from anatomy.numerics import agreement
from anatomy.parts import grid
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


# A recorded experiment's loop, written with the runner: the coarse map of `channels_last.map`.


def map_by_grid(dtype: str, scale: float, iters: int = 12, budget_s: float = 0.6) -> pd.DataFrame:
    """As `channels_last.map` on the CPU, all clauses and loops that it has for itself left out."""
    layers = {layer[0]: layer for layer in channels_last.LAYERS}
    batches = [channels_last.scaled(n, scale) for n in channels_last.BATCHES]
    last = max(batches)

    def cells():
        for channels in layers:
            every = itertools.product(batches, channels_last.PHASES)
            wanted = [each for each in every if each[0] == last or each[1] == "inference"]
            for batch, phase in (*wanted, (last, "conversion")):
                told = channels_last._told(f"C={channels}", phase, dtype, batch)
                yield told | {"channels": channels}

    def measure(cell):
        layer, phase = layers[cell["channels"]], cell["phase"]
        asked = (dtype, cell["batch"], scale, CPU, cell, iters, budget_s)
        if phase == "conversion":
            return channels_last._conversion(layer, *asked)
        table = channels_last._layer(layer, phase, *asked)
        named = cell["batch"] == last and phase == "inference"
        return table if named else table.assign(kernels=None)

    ways = (channels_last.NCHW, channels_last.LAST, channels_last.CONVERTED)
    return grid.measure_cells(
        cells(),
        measure,
        variants=lambda cell: channels_last.WAYS if cell["phase"] == "conversion" else ways,
        quantity="gpu_warm",
        where=CPU,
        foreseen=(RuntimeError,),
        promised=("uses",),
    )


NO_ROOM, STRAYS = "C=64 training fp32 N=6", "C=3 conversion fp32 N=6"


@pytest.fixture
def compared(monkeypatch):
    """Compares results for real and tells the times; one cell has no memory, one a wrong answer."""

    def compare(calls, *, reference, allowed, quantity, op, device, **_):
        if op == NO_ROOM:
            raise torch.OutOfMemoryError(CUDA_OOM)
        if op == STRAYS:
            right = calls["to NCHW"]
            calls = calls | {"to NCHW": lambda: right() + 1}
        agreement.check(calls, dict.fromkeys(calls, reference), allowed)
        named = {"op": op, "quantity": quantity, "device": device.type, "kernels": "['k']"}
        rows = [
            {"variant": name, "role": "variant" if i else "control", "blocks_s": [3.0 - i / 2] * 12}
            | {"median_s": 3.0 - i / 2, "ratio": 1 - i / 6, "verdict": "faster" if i else "control"}
            for i, name in enumerate(calls)
        ]
        return SimpleNamespace(table=pd.DataFrame([row | named for row in rows]))

    monkeypatch.setattr(channels_last, "compare", compare)


def test_the_loop_of_a_recorded_experiment_gives_the_same_table_with_it(compared, monkeypatch):
    monkeypatch.setattr(channels_last, "LAYERS", channels_last.LAYERS[:2])
    torch.manual_seed(1)
    own = channels_last.map(device="cpu", dtype="fp32", scale=0.1)
    torch.manual_seed(1)
    with_grid = map_by_grid("fp32", scale=0.1)
    assert set(own.batch) == {4, 6}
    lost = own.note.notna()
    assert list(own.op[lost]) == [STRAYS] * 3 + [NO_ROOM] * 3
    assert list(with_grid.note[lost]) == [
        *(f"wrong result: {why}" for why in own.note[own.op == STRAYS]),
        *["out of memory"] * 3,  # and not, as there, what the allocator says of processes
    ]
    assert with_grid.note[~lost].isna().all()
    plain = [table.drop(columns="note").astype(object) for table in (own, with_grid)]
    plain = [table.where(table.notna(), None) for table in plain]
    pd.testing.assert_frame_equal(*plain, check_like=True)
