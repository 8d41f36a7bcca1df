"""What a worker makes of a table, and of an error."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import torch

from anatomy import judge
from anatomy.record import worker
from anatomy.table import errors
from anatomy.table.errors import BadParameter, MeasurementError


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
    failure = worker._failure(torch.OutOfMemoryError(CUDA_OOM))
    assert failure["error"] == "OutOfMemory"
    assert "asked for 20.00 GiB, with 1.50 GiB free. Take smaller sizes" in failure["message"]
    assert worker._failure(MemoryError())["error"] == "OutOfMemory"
    assert worker._failure(torch.OutOfMemoryError("No more."))["error"] == "OutOfMemory"
    numbered = torch.AcceleratorError("CUDA error: no more.")
    for code, kind in ((2, "OutOfMemory"), (700, "MeasurementError")):
        numbered.error_code = code
        assert worker._failure(numbered)["error"] == kind


@pytest.mark.parametrize("shape", [(2**62,), (2**40, 2**20)])
def test_out_of_memory_is_known_by_its_text_where_torch_has_no_type_for_it(shape):
    with pytest.raises(RuntimeError) as caught:
        torch.empty(shape)
    assert type(caught.value) is RuntimeError
    assert worker._failure(caught.value)["error"] == "OutOfMemory"
    assert worker._failure(ValueError("out of memory"))["error"] == "MeasurementError"


def test_a_foreseen_error_is_its_sentence_and_a_bug_keeps_its_traceback():
    foreseen = worker._failure(BadParameter("size=0 must be above 0."))
    assert foreseen == {"error": "BadParameter", "message": "size=0 must be above 0.", "trace": ""}
    try:
        raise KeyError("dtype")
    except KeyError as error:
        bug = worker._failure(error)
    assert bug["error"] == "MeasurementError" and bug["message"] == "KeyError: 'dtype'"
    assert "test_worker.py" in bug["trace"]


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("/x/anatomy/chapters/layers/sizes.py", " (sizes.py:2)"),
        ("/x/anatomy/chapters/layers/shown/sizes.py", " (sizes.py:2)"),
        ("/x/chapters/env/site-packages/torch/nn/sizes.py", ""),
    ],
)
def test_a_bug_names_its_line_in_the_chapter_and_its_cell(file, said):
    scope = {}
    exec(compile("def act():\n    1 / 0", file, "exec"), scope)
    with pytest.raises(ZeroDivisionError) as caught:
        scope["act"]()
    caught.value.add_note("This was raised in the cell with N=8.")
    assert worker._failure(caught.value)["message"] == (
        f"ZeroDivisionError: division by zero{said}. This was raised in the cell with N=8."
    )


def test_every_named_error_can_come_back_from_a_worker():
    from anatomy.record.isolation import revive

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
    message = worker._failure(caught.value)["message"]
    assert message == f"ZeroDivisionError: division by zero{place}"
