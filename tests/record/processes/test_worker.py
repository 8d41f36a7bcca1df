"""What a worker makes of a table, and of an error."""

import io
import json
import math
import os
import sys
import warnings
from datetime import datetime
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from torch._inductor.async_compile import AsyncCompile

from anatomy import judge
from anatomy.record import declare
from anatomy.record.processes import worker
from anatomy.table import errors
from anatomy.table.errors import BadParameter, Busy, DeviceError, MeasurementError

# One measurement, of a function that takes no time, by a clock that says what it is told.


@pytest.fixture
def table(monkeypatch):
    """What the measured function returns; the machine and the clock are told."""
    table = pd.DataFrame([{"op": "copy", "bytes": 8, "hue": 1}])
    monkeypatch.setattr(declare, "load", lambda name, package: lambda **params: table)
    monkeypatch.setattr(worker.host, "describe", lambda device, gpus=None: {"slug": device * gpus})
    monkeypatch.setattr(worker.host, "foreign_processes", lambda device: None)
    looks, readings = iter(["before", "after"]), iter([10.0, 12.50049])
    monkeypatch.setattr(worker.host, "conditions", lambda device: next(looks))
    clock = SimpleNamespace(time=lambda: 107.00049, monotonic=lambda: next(readings))
    monkeypatch.setattr(worker, "time", clock)
    monkeypatch.setenv("ANATOMY_ALLOW_FOREIGN", "0")
    monkeypatch.delitem(sys.modules, "anatomy.measure", raising=False)
    return table


SPEC = {"experiment": "toy.fine", "params": {}, "package": None, "spawned": 100.0}
SPEC |= {"allow_foreign": False}


def test_a_measurement_is_told_with_its_times_and_circumstances(table):
    with pytest.warns(UserWarning, match="toy.fine returned columns that nobody declared: hue"):
        found = worker.measure(SPEC)
    assert found.pop("software")["torch"] == torch.__version__
    started = found.pop("started_at")
    assert datetime.fromisoformat(started.removesuffix("Z")) and len(started) == 20
    assert found == {
        "experiment": "toy.fine",
        "machine": {"slug": "cpu"},
        "method": {"process": "one process, fresh", "start_s": 7.0, "measured_s": 2.5},
        "conditions": {"before": "before", "after": "after"},
        "noise_floor": {},
        "rows": [{"op": "copy", "bytes": 8, "hue": 1}],
        "warnings": [],
    }


@pytest.mark.filterwarnings("ignore:toy.fine returned columns")
@pytest.mark.parametrize(
    ("params", "begun"),
    [
        ({"device": "cuda:0", "backend": "inductor"}, True),
        ({"device": "cuda:0", "backend": "eager"}, False),
        ({"device": "cuda:0"}, False),
        ({"device": "cpu", "backend": "inductor"}, False),
    ],
)
def test_where_something_is_compiled_its_compilers_begin_before(table, monkeypatch, params, begun):
    monkeypatch.setattr(worker.host, "require_device", lambda device: None)
    asked = []
    monkeypatch.setattr(AsyncCompile, "use_process_pool", lambda: asked.append(1))
    with pytest.warns(UserWarning):
        process = worker.measure(SPEC | {"params": params})["method"]["process"]
    assert bool(asked) == process.endswith("the compiler's processes begun") == begun


def test_a_compiler_that_knows_no_such_processes_is_left_to_itself(table, monkeypatch):
    monkeypatch.delattr(AsyncCompile, "use_process_pool")
    assert worker._begin_compilers() == ""


def test_what_it_waited_for_others_is_no_part_of_what_it_took(table, monkeypatch):
    waited = SimpleNamespace(waited_s=3.0)  # for an experiment before, in the same process
    monkeypatch.setitem(sys.modules, "anatomy.measure.turns", waited)

    def turn(**_):
        waited.waited_s += 1.25
        return table

    monkeypatch.setattr(declare, "load", lambda name, package: turn)
    method = worker.measure(SPEC)["method"]
    assert (method["measured_s"], method["waited_s"]) == (1.25, 1.25)


@pytest.mark.filterwarnings("ignore:toy.fine returned columns")
@pytest.mark.parametrize(("spent", "told"), [([1_000_000, None, 500_000], 1.5), ([], None)])
def test_it_is_told_how_long_of_it_was_compiling(table, monkeypatch, spent, told):
    """What this process compiled before it measured is not counted."""
    known = [SimpleNamespace(duration_us=9_000_000)]

    def compiles():
        known.extend(SimpleNamespace(duration_us=each) for each in spent)
        return table

    dynamo = SimpleNamespace(get_compilation_metrics=lambda: list(known))
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", dynamo)
    monkeypatch.setattr(declare, "load", lambda name, package: compiles)
    assert worker.measure(SPEC)["method"].get("compiling_s") == told


@pytest.mark.filterwarnings("ignore:toy.fine returned columns")
def test_what_the_clock_and_the_table_say_of_it_is_kept(table, monkeypatch):
    said = {"method": {"clock": "events", "blocks": 12}, "warnings": ["It is hot."]}
    told = SimpleNamespace(account=lambda device: said)
    monkeypatch.setitem(sys.modules, "anatomy.measure", told)
    table.attrs |= {"gpus": 2, "method": {"blocks": 24}, "warnings": ["It is loud."]}
    found = worker.measure(SPEC)
    assert found["machine"] == {"slug": "cpucpu"}
    assert (found["method"]["clock"], found["method"]["blocks"]) == ("events", 24)
    assert found["warnings"] == ["It is hot.", "It is loud."]


@pytest.mark.filterwarnings("ignore:toy.fine returned columns")
def test_who_computes_on_the_card_too_is_company_that_must_be_allowed(table, monkeypatch):
    monkeypatch.setattr(worker.host, "foreign_processes", lambda device: [17])
    with pytest.raises(Busy, match=r"^Process 17 computes on cpu too, and would share its time"):
        worker.measure(SPEC)
    monkeypatch.setattr(worker.host, "foreign_processes", lambda device: [17, 18])
    with pytest.raises(Busy, match=r"^Processes 17, 18 compute on cpu too"):
        worker.measure(SPEC)
    assert os.environ["ANATOMY_ALLOW_FOREIGN"] == "0"
    assert worker.measure(SPEC | {"allow_foreign": True})["rows"]
    assert os.environ["ANATOMY_ALLOW_FOREIGN"] == "1", "and `compare` needs not ask"


def test_a_device_that_is_not_there_is_told_before_anything_is_imported(table, monkeypatch):
    def refuse(device):
        raise DeviceError(f"No {device} here.")

    monkeypatch.setattr(worker.host, "require_device", refuse)
    monkeypatch.setattr(declare, "load", lambda *_: 1 / 0)
    with pytest.raises(DeviceError, match="No cuda:1 here"):
        worker.measure(SPEC | {"params": {"device": "cuda:1"}})


def outcome(tmp_path, monkeypatch, **spec):
    """What a worker that is given this writes."""
    file = tmp_path / "result"
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(spec | {"result": str(file)})))
    worker.main()
    return json.loads(file.read_text())


def test_a_worker_answers_with_what_it_found_or_with_what_went_wrong(tmp_path, monkeypatch):
    described = outcome(tmp_path, monkeypatch, describe="cpu")
    assert set(described) == {"machine", "software"} and described["machine"]["gpu"] is None
    monkeypatch.setattr(worker, "measure", lambda spec: {"rows": spec["rows"]})
    assert outcome(tmp_path, monkeypatch, rows=[1]) == {"rows": [1]}
    failed = outcome(tmp_path, monkeypatch)
    assert (failed["error"], failed["message"]) == ("MeasurementError", "KeyError: 'rows'")
    monkeypatch.setattr(worker, "measure", lambda spec: {"rows": math.nan})
    with pytest.raises(ValueError, match="not JSON compliant"):
        outcome(tmp_path, monkeypatch)


# Rows.


def test_missing_values_become_null_and_lists_stay_lists():
    table = pd.DataFrame(
        {
            "variant": ["a", None],
            "median_s": [1.5, np.nan],
            "pays_after": [np.inf, 3.0],
            "blocks_s": [np.array([1.0, 2.0]), None],
            "when": [pd.NaT, pd.NA],
            "dtype": [torch.float16, None],
            "wide": [np.True_, False],
        }
    )
    rows = worker.rows_of(table, "toy.fine")
    assert rows[0] == {
        "variant": "a",
        "median_s": 1.5,
        "pays_after": None,
        "blocks_s": [1.0, 2.0],
        "when": None,
        "dtype": "torch.float16",
        "wide": True,
    }
    assert set(rows[1].values()) == {None, 3.0, False}
    json.dumps(rows, allow_nan=False)


def test_a_gap_does_not_turn_a_count_into_a_fraction():
    rows = worker.rows_of(pd.DataFrame({"samples": [240, None], "power_w": [1.5, None]}), "toy")
    assert rows[0] == {"samples": 240, "power_w": 1.5}
    assert type(rows[0]["samples"]) is int


def test_only_a_gap_makes_a_column_of_fractions_one_of_counts():
    table = pd.DataFrame({"ratio": [1.0, 2.0], "power_w": [2.0, None], "clock": [1.5, 2.0]})
    rows = worker.rows_of(table, "toy")
    kinds = [[type(value) for value in row.values()] for row in rows]
    assert kinds == [[float, int, float], [float, type(None), float]]


def test_rows_of_a_sparse_table_leave_out_what_they_lack():
    table = pd.DataFrame([{"part": "pair", "ratio": 1.01}, {"part": "estimate", "samples": 12}])
    table.attrs["sparse"] = True
    assert worker.rows_of(table, "toy") == [
        {"part": "pair", "ratio": 1.01},
        {"part": "estimate", "samples": 12},
    ]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ([1, 2], "toy returned a list, not a DataFrame"),
        (pd.DataFrame(), "toy returned no rows"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns of one name"),
        (pd.DataFrame({"a": [object()]}), r"can keep: rows\[0\].a is a object, which JSON can't"),
    ],
)
def test_what_is_no_table_is_refused(table, said):
    with pytest.raises(MeasurementError, match=said):
        worker.rows_of(table, "toy")


def test_the_noise_floor_of_an_op_is_the_largest_of_its_comparisons():
    rows = [
        {"op": "matmul", "quantity": "gpu_warm", "noise_floor": 0.004},
        {"op": "matmul", "quantity": "gpu_warm", "noise_floor": 0.011},
        {"op": "matmul", "quantity": "gpu_cold", "noise_floor": 0.002},
        {"op": "copy", "noise_floor": None},
    ]
    assert judge.noise_floors(rows) == {"matmul gpu_warm": 0.011, "matmul gpu_cold": 0.002}


CUDA_OOM = (
    "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 139.80 GiB of "
    "which 1.50 GiB is free. Including non-PyTorch memory, this process has 138.29 GiB in use."
)


def test_out_of_memory_says_how_much_was_asked_for_and_how_much_was_free():
    failure = worker.failure(torch.OutOfMemoryError(CUDA_OOM))
    assert failure["error"] == "OutOfMemory"
    assert "asked for 20.00 GiB, with 1.50 GiB free. Take smaller sizes" in failure["message"]
    assert worker.failure(MemoryError())["error"] == "OutOfMemory"
    assert worker.failure(torch.OutOfMemoryError("No more."))["error"] == "OutOfMemory"
    numbered = torch.AcceleratorError("CUDA error: no more.")
    for code, kind in ((2, "OutOfMemory"), (700, "MeasurementError")):
        numbered.error_code = code
        assert worker.failure(numbered)["error"] == kind


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("Storage size calculation overflowed with sizes=[4611686018427387904]"),
        TypeError("empty(): Overflow when unpacking long"),
    ],
)
def test_each_way_to_say_that_there_is_no_memory_is_known(error):
    failure = worker.failure(error)
    assert failure["error"] == "OutOfMemory" and failure["trace"] == ""
    assert failure["message"].startswith("It ran out of memory when it asked for more. Take small")


def test_bytes_that_an_allocator_counts_out_are_said_in_units():
    said = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 1048576 bytes."
    assert "asked for 1.00 MiB. " in worker.failure(RuntimeError(said))["message"]


def test_of_an_unforeseen_error_the_first_line_is_said():
    assert worker.failure(ValueError("\n one\ntwo"))["message"] == "ValueError: one"
    assert worker.failure(ValueError())["message"] == "ValueError: "


@pytest.mark.parametrize("shape", [(2**62,), (2**40, 2**20)])
def test_out_of_memory_is_known_by_its_text_where_torch_has_no_type_for_it(shape):
    with pytest.raises(RuntimeError) as caught:
        torch.empty(shape)
    assert type(caught.value) is RuntimeError
    assert worker.failure(caught.value)["error"] == "OutOfMemory"
    assert worker.failure(ValueError("out of memory"))["error"] == "MeasurementError"


def test_a_foreseen_error_is_its_sentence_and_a_bug_keeps_its_traceback():
    foreseen = worker.failure(BadParameter("size=0 must be above 0."))
    assert foreseen == {"error": "BadParameter", "message": "size=0 must be above 0.", "trace": ""}
    try:
        raise KeyError("dtype")
    except KeyError as error:
        bug = worker.failure(error)
    assert bug["error"] == "MeasurementError" and bug["message"] == "KeyError: 'dtype'"
    assert "test_worker.py" in bug["trace"]


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("/x/anatomy/chapters/layers/sizes.py", " (sizes.py:2)"),
        ("/x/anatomy/chapters/layers/shown/sizes.py", " (sizes.py:2)"),
        ("/x/chapters/site-packages/torch/nn/sizes.py", ""),
        ("/x/anatomy/experiments", ""),
    ],
)
def test_a_bug_names_its_line_in_the_chapter_and_its_cell(file, said):
    scope = {}
    exec(compile("def act(): inner()\ndef inner(): 1 / 0", file, "exec"), scope)
    with pytest.raises(ZeroDivisionError) as caught:
        scope["act"]()
    caught.value.add_note("This was raised in the cell with N=8.")
    assert worker.failure(caught.value)["message"] == (
        f"ZeroDivisionError: division by zero{said}. This was raised in the cell with N=8."
    )


def test_every_named_error_can_come_back_from_a_worker():
    from anatomy.record.processes.isolation import revive

    for name in dir(errors):
        kind = getattr(errors, name)
        if isinstance(kind, type) and issubclass(kind, errors.AnatomyError):
            back = revive(name, "It went wrong.")
            assert str(back) == "It went wrong." and back.exit_status == kind.exit_status
    assert isinstance(revive("NobodyKnows", "It went wrong."), MeasurementError)


def test_columns_that_nobody_declared_are_warned_of():
    with pytest.warns(UserWarning, match="toy returned columns that nobody declared: hue, tint"):
        worker._warn_of_undeclared("toy", [{"op": "a", "hue": 1}, {"hue": 2, "tint": 3}])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        worker._warn_of_undeclared("never.costs", [{"op": "a", "use_s": 1e-6}])


@pytest.mark.parametrize(
    "file, place",
    [
        ("/checkout/anatomy/chapters/tensors/bench.py", " (bench.py:1)"),
        ("/lab/experiments/toy.py", " (toy.py:1)"),
        ("/checkout/anatomy/parts/grid.py", ""),
    ],
)
def test_an_unforeseen_error_names_its_line_in_the_file_of_the_experiment(file, place):
    with pytest.raises(ZeroDivisionError) as caught:
        exec(compile("1 / 0", file, "exec"))
    message = worker.failure(caught.value)["message"]
    assert message == f"ZeroDivisionError: division by zero{place}"
