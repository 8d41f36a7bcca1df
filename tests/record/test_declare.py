"""The decorator: it registers, and changes nothing."""

import pytest

from anatomy.record import declare, signatures
from anatomy.table.errors import AnatomyError, UnknownName


def test_a_toy_is_loaded_with_what_its_decorator_was_told(toylab):
    found = declare.load("toy.fine", toylab)
    assert found.name == "toy.fine"
    assert (found.page, found.command, found.timeout_s) == (
        "benchmarks/toy.md",
        "c01 toy-bench",
        60,
    )
    assert len(found.function(size=2)) == 4  # the function itself, no wrapper


def test_what_is_loaded_is_what_was_read(toylab):
    for name, declared in signatures.experiments(toylab).items():
        loaded = declare.load(name, toylab)
        read = (declared.page, declared.command, declared.timeout_s, declared.files)
        assert (loaded.page, loaded.command, loaded.timeout_s, loaded.files) == read
        assert loaded.processes == declared.processes


def test_an_unknown_experiment_comes_with_a_known_one(toylab):
    with pytest.raises(UnknownName, match=r"Did you mean 'toy\.fine'"):
        declare.load("toy.fin", toylab)


def test_two_experiments_of_one_name_are_refused(monkeypatch):
    monkeypatch.setattr(declare, "LOADED", {})

    def bench():
        pass

    bench.__module__ = "first.contiguity"
    declare.experiment("contiguity.bench")(bench)

    def twin():
        pass

    twin.__name__, twin.__module__ = "bench", "second.contiguity"
    with pytest.raises(AnatomyError, match=r"in first\.contiguity and in second\.contiguity"):
        declare.experiment("contiguity.bench")(twin)


def test_an_experiment_that_does_not_register_is_named(tmp_path):
    folder = tmp_path / "lab" / "experiments"
    folder.mkdir(parents=True)
    (folder / "quiet.py").write_text(
        "def experiment(name):\n    return lambda function: function\n\n\n"
        '@experiment("quiet.bench")\ndef bench(size: int = 1):\n    """Nothing."""\n'
    )
    with pytest.raises(AnatomyError, match=r"did not register quiet\.bench"):
        declare.load("quiet.bench", tmp_path / "lab")
