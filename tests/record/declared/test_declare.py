"""The decorator: it registers, and refuses what the function can't take."""

import inspect
import runpy

import pytest

from anatomy.record import declare, signatures
from anatomy.table.errors import AnatomyError, BadParameter, UnknownName


def test_a_toy_that_is_loaded_is_the_function_and_takes_only_what_it_declares(toylab):
    fine = declare.load("toy.fine", toylab)
    assert len(fine(size=2)) == len(fine("cpu", size="2")) == 4
    assert fine.__doc__.startswith("Return three rows")
    assert "size" in inspect.signature(fine).parameters
    with pytest.raises(BadParameter, match=r"toy\.fine: size=0: it must be a whole number from"):
        fine(size=0)
    with pytest.raises(TypeError, match="an unexpected keyword argument 'sizes'"):
        fine(sizes=2)


def test_what_the_decorator_is_told_is_what_was_read(toylab, monkeypatch):
    parameters, told = inspect.signature(declare.experiment), {}

    def told_only(*names, **given):
        bound = parameters.bind(*names, **given)
        bound.apply_defaults()
        told[bound.arguments["name"]] = bound.arguments
        return lambda function: function

    monkeypatch.setattr(declare, "experiment", told_only)
    runpy.run_path(str(toylab / "chapters" / "toy.py"))
    assert told["toy.fine"]["page"] == "benchmarks/toy.md"
    read = signatures.experiments(toylab)
    assert told == {name: {each: getattr(read[name], each) for each in told[name]} for name in read}


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


def test_the_package_that_is_named_comes_before_another_of_its_name(tmp_path, monkeypatch):
    for place, decorator in (("other", "lambda name: abs"), ("named", "declare.experiment")):
        folder = tmp_path / place / "lab_of_twins" / "experiments"
        folder.mkdir(parents=True)
        (folder / "twins.py").write_text(
            f"from anatomy.record import declare\nexperiment = {decorator}\n\n\n"
            '@experiment("twins.bench")\ndef bench(size: int = 1):\n    """Nothing."""\n'
        )
    monkeypatch.syspath_prepend(tmp_path / "other")
    assert declare.load("twins.bench", tmp_path / "named" / "lab_of_twins").__name__ == "bench"


def test_an_experiment_that_does_not_register_is_named(tmp_path):
    folder = tmp_path / "lab" / "experiments"
    folder.mkdir(parents=True)
    (folder / "quiet.py").write_text(
        "def experiment(name):\n    return lambda function: function\n\n\n"
        '@experiment("quiet.bench")\ndef bench(size: int = 1):\n    """Nothing."""\n'
    )
    with pytest.raises(AnatomyError, match=r"did not register quiet\.bench"):
        declare.load("quiet.bench", tmp_path / "lab")
