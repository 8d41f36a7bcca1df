"""`pytorch-gpu-anatomy distributed`: what it asks the recorder for, and each error's status."""

from types import SimpleNamespace

import pytest

from anatomy import cli
from anatomy.machine import driver, host
from anatomy.record import recorder
from anatomy.record.recorder import Outcome


@pytest.fixture
def run(tmp_path, capfd):
    """Run the command in this process: (status, standard error)."""

    def call(*arguments):
        with pytest.raises(SystemExit) as end:
            cli.main(["distributed", "--save", str(tmp_path), *arguments])
        return end.value.code, capfd.readouterr().err

    return call


@pytest.fixture
def recorded(monkeypatch):
    """The calls that the recorder is given; it measures nothing."""
    calls = []

    def record(items, **_):
        calls.extend((item.name, item.params) for item in items)
        return Outcome()

    monkeypatch.setattr(recorder, "record", record)
    return calls


@pytest.fixture
def two_gpus(monkeypatch):
    cards = [SimpleNamespace(name="Toy GPU", uuid=str(n), index=n) for n in range(2)]
    here = {"slug": "toy-gpu", "card": "0", "cards": ["0", "1"], "torch": "2.13", "driver": "580"}
    monkeypatch.setattr(host, "here", lambda: here)
    monkeypatch.setattr(driver, "visible_cards", lambda: cards)


def test_all_four_are_asked_for_with_as_many_gpus(run, recorded, two_gpus):
    assert run("--gpus", "2", "--scale", "0.5")[0] == 0
    assert [name.partition(".")[2] for name, _ in recorded] == [
        *("collectives", "training", "overlap", "memory")
    ]
    assert {params["world_size"] for _, params in recorded} == {2}
    assert {params["scale"] for _, params in recorded} == {0.5}


def test_one_alone_may_be_asked_for(run, recorded):
    assert run("--device", "cpu", "--only", "memory")[0] == 0
    assert [name for name, _ in recorded] == ["distributed.memory"]


def test_more_gpus_than_there_are_is_one_error_before_anything_starts(run, recorded, two_gpus):
    status, said = run("--gpus", "3")
    assert status == 3 and said.count("error:") == 1 and not recorded
    assert "3 GPUs of one model are asked for, and 2 are visible here" in said


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--only", "colectives"], 2, "Did you mean 'collectives'?"),
        (["--gpus", "0"], 2, "greater than or equal to 1"),
    ],
)
def test_what_is_not_possible_is_refused(arguments, status, words, run, recorded):
    left, said = run("--device", "cpu", *arguments)
    assert left == status and words in " ".join(said.split()) and not recorded


def test_without_a_gpu_it_says_what_is_missing(run, monkeypatch):
    monkeypatch.setattr(host, "here", lambda: None)
    status, said = run()
    assert status == 3 and "CUDA requested but" in said


def test_several_tasks_of_srun_without_torchrun_are_refused(run, recorded, monkeypatch):
    """Each would take itself for the only one, measure, and record."""
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "2")
    status, said = run("--device", "cpu")
    assert status == 2 and "srun started 2 tasks" in said and not recorded
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "1")
    assert run("--device", "cpu")[0] == 0 and recorded
