"""A recording is current while the code and the machine are those that made it; never by time."""

import os
import re

import pytest

from anatomy.record.provenance.codehash import code_hash
from anatomy.record.provenance.freshness import STATES, freshness
from anatomy.record.recording import Recording
from tests.fakes.toy_recording import made

SOURCE = """
@experiment("contiguity.bench")
def bench(m: int = 4096, device: str = "cuda:0"):
    return helper(m)


def helper(x):
    return x


@experiment("contiguity.other")
def other(m: int = 1):
    return m
"""
HERE = {"slug": "nvidia-h200", "card": "0123456789ab", "torch": "2.11.1+cu130", "driver": "580.99"}


@pytest.fixture
def toys(tmp_path):
    root = tmp_path / "toys"
    (root / "experiments").mkdir(parents=True)
    (root / "experiments" / "contiguity.py").write_text(SOURCE)
    return root


@pytest.fixture
def recorded(toys):
    now = code_hash("contiguity.bench", made()["params"], root=toys).hash
    return Recording(made(code=made()["code"] | {"hash": now}))


def state(recorded, toys, **here):
    found = freshness(recorded, HERE | here, package=toys)
    assert found.state in STATES
    assert found.reason.endswith(".")
    return found


def test_nothing_recorded_is_missing(toys):
    assert freshness(None, HERE, package=toys).state == "missing"


def test_the_same_code_and_machine_are_current(recorded, toys):
    assert state(recorded, toys).state == "current"
    assert state(recorded, toys).current
    assert freshness(recorded, None, package=toys).current


def test_without_a_gpu_only_the_code_counts(recorded, toys):
    recorded.data["machine"]["slug"] = "nvidia-b200"
    assert freshness(recorded, None, package=toys).state == "current"


def test_files_times_do_not_count(recorded, toys):
    os.utime(toys / "experiments" / "contiguity.py", (2e9, 2e9))
    assert state(recorded, toys).state == "current"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("return x", "return -x", "code-changed"),
        ("m: int = 4096", "m: int = 8192", "code-changed"),
        ("def other(m: int = 1)", "def other(m: int = 2)", "current"),
        ("return x", "return x  # the same", "current"),
        ("def bench", "def bank", "current"),
        ("(m: int = 4096,", "(size: int = 4096,", "code-changed"),
        ("m: int = 4096", "m: bool = True", "code-changed"),
    ],
)
def test_an_edit_turns_exactly_its_experiment_stale(recorded, toys, old, new, expected):
    file = toys / "experiments" / "contiguity.py"
    assert SOURCE.count(old) >= 1
    file.write_text(SOURCE.replace(old, new))
    for here in (HERE, None):
        assert freshness(recorded, here, package=toys).state == expected


@pytest.mark.parametrize(
    ("here", "expected", "reason"),
    [
        ({"torch": "2.11.0+cpu"}, "current", ""),
        ({"torch": "2.12.0+cu130"}, "software-other", "with PyTorch 2.11; this is 2.12"),
        ({"torch": "2.1.0"}, "software-other", "this is 2.1"),
        ({"driver": "580.200.01"}, "current", ""),
        ({"driver": "590.1"}, "software-other", "driver branch 580; this is 590"),
        ({"slug": "nvidia-b200"}, "machine-other", "on nvidia-h200; this is nvidia-b200"),
        ({"slug": "nvidia-h200-x4"}, "machine-other", "this is nvidia-h200-x4"),
        (
            {"card": "ffffffffffff"},
            "machine-other",
            "another card of this model .*ANATOMY_CARD=any",
        ),
        ({"slug": "nvidia-b200", "torch": "2.12"}, "machine-other", "nvidia-b200"),
        ({"card": None, "driver": None, "torch": None}, "current", ""),
    ],
)
def test_another_machine_or_other_software_is_told_apart(recorded, toys, here, expected, reason):
    found = state(recorded, toys, **here)
    assert found.state == expected
    assert re.search(reason, found.reason)


def test_any_card_of_the_model_will_do_where_that_is_asked_for(recorded, toys, monkeypatch):
    monkeypatch.setenv("ANATOMY_CARD", "any")
    assert state(recorded, toys, card="ffffffffffff").state == "current"
    assert state(recorded, toys, slug="nvidia-b200").state == "machine-other"
    monkeypatch.setenv("ANATOMY_CARD", "same")
    assert state(recorded, toys, card="ffffffffffff").state == "machine-other"


def test_fewer_processes_than_are_declared_are_not_current_and_more_are(recorded, toys):
    file = toys / "experiments" / "contiguity.py"
    file.write_text(SOURCE.replace('bench")', 'bench", processes=3)', 1))
    found = state(recorded, toys)
    assert found.state == "code-changed"
    assert found.reason == "It was measured in 1 process, and is to be in 3."
    assert not freshness(recorded, None, package=toys).current
    assert state(Recording(recorded.data | {"method": {"processes": 3}}), toys).current
    two = state(Recording(recorded.data | {"method": {"processes": 2}}), toys)
    assert two.reason == "It was measured in 2 processes, and is to be in 3."
    file.write_text(SOURCE)
    assert state(Recording(recorded.data | {"method": {"processes": 3}}), toys).current


def test_the_processes_of_another_experiment_do_not_count(recorded, toys):
    file = toys / "experiments" / "contiguity.py"
    before, found, after = SOURCE.rpartition('other")')
    file.write_text(f'{before}other", processes=3){after}')
    assert found and state(recorded, toys).current


def test_one_run_may_ask_for_other_processes_than_are_declared(recorded, toys):
    two = Recording(recorded.data | {"method": {"processes": 2}})
    assert freshness(two, HERE, package=toys, processes=2).current
    found = freshness(two, HERE, package=toys, processes=4)
    assert found.reason == "It was measured in 2 processes, and is to be in 4."
