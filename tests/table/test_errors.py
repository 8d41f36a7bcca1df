"""Errors say what is wrong, what was got and what to do, and carry an exit status."""

import pickle

import pytest

from anatomy.table import errors
from anatomy.table.errors import AnatomyError, UnknownName, close_names

NAMES = ["contiguity.bench", "tensor_layout.report", "limits.ceilings"]


def test_an_unknown_name_comes_back_with_the_closest_and_all_where_they_are_few():
    error = UnknownName("experiment", "contiguty.bench", NAMES)
    assert str(error) == (
        "There is no experiment 'contiguty.bench'. Did you mean 'contiguity.bench'? "
        "Known: contiguity.bench, limits.ceilings, tensor_layout.report."
    )
    assert error.suggestions[0] == "contiguity.bench"


def test_of_many_names_only_the_nearest_are_said():
    many = [*NAMES, *(f"topic{n}.bench" for n in range(50))]
    said = str(UnknownName("experiment", "contiguty.bench", many))
    assert said.startswith(
        "There is no experiment 'contiguty.bench'. Did you mean 'contiguity.bench'? "
        "The nearest of 53: contiguity.bench, "
    )
    assert said.count(",") == errors.NEAREST - 1
    assert "The nearest of 53: " in str(UnknownName("page", "zzz", many))


def test_a_name_like_no_other_gets_no_suggestion():
    assert str(UnknownName("page", "zzz", ["index.md"])) == (
        "There is no page 'zzz'. Known: index.md."
    )
    assert str(UnknownName("page", "zzz", [])) == "There is no page 'zzz'. Known: none."


@pytest.mark.parametrize(
    "near", ["Tensor-Layout.Report", "TENSOR_LAYOUT.report", "tensorlayout.report"]
)
def test_case_and_dashes_do_not_hide_a_name(near):
    assert close_names(near, NAMES)[0] == "tensor_layout.report"


def test_an_unknown_name_survives_a_process_boundary():
    error = UnknownName("experiment", "contiguty.bench", NAMES)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.suggestions) == (str(error), error.suggestions)


def test_every_error_is_an_anatomy_error_and_none_succeeds():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    kinds = [kind for kind in kinds if issubclass(kind, Exception)]
    assert all(issubclass(kind, AnatomyError) and kind.exit_status > 0 for kind in kinds)
    told_apart = {errors.BadParameter: 2, UnknownName: 2, errors.DeviceError: 3}
    told_apart |= {errors.OutOfMemory: 4, errors.Busy: 5, errors.RecordingError: 1}
    assert {kind: kind.exit_status for kind in told_apart} == told_apart
