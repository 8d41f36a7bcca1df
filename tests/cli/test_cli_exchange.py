"""`import`, `diff` and `export --archive`: what they print, and the status they leave with."""

import csv
import io
import json

import pytest

from anatomy import cli
from anatomy.record import recording
from tests.fakes import synthetic, two_machines
from tests.record.exchange.sets import PLACE, save


@pytest.fixture
def here(tmp_path, monkeypatch):
    folder = tmp_path / "recordings"
    folder.mkdir()
    monkeypatch.setenv("ANATOMY_RECORDINGS", str(folder))
    return folder


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    return two_machines.made(tmp_path_factory.mktemp("two"))


@pytest.fixture
def run(capfd):
    def call(*arguments):
        with pytest.raises(SystemExit) as end:
            cli.main([str(argument) for argument in arguments])
        return end.value.code, *capfd.readouterr()

    return call


def test_what_is_exported_can_be_imported_elsewhere(run, here, tmp_path):
    file, packed, there = save(here), tmp_path / "set.tar.gz", tmp_path / "there"
    status, out, _ = run("export", "--archive", packed)
    assert status == 0 and "has 1 recordings" in out
    status, out, _ = run("import", packed, "--save", there, "--dry-run")
    assert status == 0 and "Would be: 1 added." in out and not there.exists()
    status, out, _ = run("import", packed, "--save", there)
    assert status == 0 and "1 added." in out
    assert (there / PLACE).read_bytes() == file.read_bytes()
    status, out, _ = run("import", packed)
    assert status == 0 and "1 kept." in out and "It is here already." in out


def test_one_that_is_refused_keeps_all_out_unless_it_is_skipped(run, here, tmp_path):
    there = tmp_path / "there"
    save(there)
    save(there, slug="bad-gpu").write_text("{")
    status, out, _ = run("import", there)
    assert status == 1 and "1 added, 1 refused." in out and "Nothing was written" in out
    assert recording.machines(here) == []
    status, out, _ = run("import", there, "--skip-refused", "--format", "json")
    assert status == 0 and recording.machines(here) == ["toy-gpu"]
    assert [each["word"] for each in json.loads(out)] == ["refused", "added"]


def test_what_is_no_set_is_one_sentence(run, here, tmp_path):
    status, out, err = run("import", tmp_path / "nothing.tgz")
    assert status == 2 and out == "" and "There is no nothing.tgz" in err
    (tmp_path / "a.tgz").write_text("neither")
    status, out, err = run("import", tmp_path / "a.tgz")
    assert status == 1 and len(err.splitlines()) == 1 and "a.tgz is refused" in err


def test_diff_of_two_machines_here(run, two, monkeypatch):
    monkeypatch.setenv("ANATOMY_RECORDINGS", str(two))
    mine = (synthetic.MACHINE, two_machines.OTHER)
    status, out, err = run("diff", *mine)
    assert status == 0 and err == ""
    assert "Other GPU" in out and "slice-doubles-fp16" in out and "figures that moved" in out
    assert "verdicts differ" in out and "Only the old one has" in out
    assert run("diff", *mine, "--fail")[0] == 1
    assert run("diff", mine[1], mine[1], "--fail")[0] == 0


def test_diff_as_data(run, two, monkeypatch):
    monkeypatch.setenv("ANATOMY_RECORDINGS", str(two))
    mine = (synthetic.MACHINE, two_machines.OTHER)
    lines = list(csv.DictReader(io.StringIO(run("diff", *mine, "--format", "csv")[1])))
    (told,) = json.loads(run("diff", *mine, "--format", "json")[1])
    assert len(lines) == len(told["figures"]) == told["counts"]["figures"]
    assert {each["word"] for each in lines} <= {"moved", "same", "undecided"}
    assert told["new"]["gpu"] == ["Other GPU"] and told["new"]["driver"] == ["600.1"]
    assert told["counts"]["verdicts that differ"] == len(told["verdicts"]) > 0
    time = next(e for e in told["figures"] if e["figure"] == "median_s" and e["word"] == "moved")
    assert time["unit"] == "s" and time["old_low"] <= time["old"] <= time["old_high"]
    assert time["over"] == pytest.approx(time["new"] / time["old"])


def test_diff_of_an_archive_with_what_is_here(run, two, monkeypatch, tmp_path):
    monkeypatch.setenv("ANATOMY_RECORDINGS", str(two))
    packed = tmp_path / "set.tar.gz"
    run("export", "--machine", two_machines.OTHER, "--archive", packed)
    assert "0 moved" in run("diff", packed, two_machines.OTHER, "--fail")[1]
    assert run("diff", packed, two_machines.OTHER, "--fail")[0] == 0
    assert run("diff", packed, two)[0] == 0  # the machine that both have
    status, out, _ = run("diff", synthetic.MACHINE, packed)  # the set's only machine
    assert status == 0 and two_machines.OTHER in out
    both = ("--machine", synthetic.MACHINE, "--machine", two_machines.OTHER)
    assert run("diff", two, packed, *both, "--fail")[0] == 1


def test_diff_of_what_is_not_there_says_what_is(run, two, monkeypatch):
    monkeypatch.setenv("ANATOMY_RECORDINGS", str(two))
    status, _, err = run("diff", "nonesuch", two_machines.OTHER)
    assert status == 2 and "neither a file, nor a folder" in err and synthetic.MACHINE in err
    status, _, err = run("diff", two, two, "--machine", "nonesuch")
    assert status == 2 and "nonesuch" in err
    one = ("--machine", "a")
    assert run("diff", two, two, *one, *one, *one)[0] == 2
    assert run("diff", two_machines.OTHER, two_machines.OTHER, *one)[0] == 2
