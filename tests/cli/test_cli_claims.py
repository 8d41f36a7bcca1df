"""`claims` and `prose`: what they print, and the status that they leave with."""

import csv
import io
import json
from shutil import copytree

import pytest

from anatomy import claims, cli
from anatomy.claims import ledger
from anatomy.figures.text import prose
from anatomy.record import recording
from tests.fakes import synthetic


@pytest.fixture
def root(tmp_path, monkeypatch):
    folder = copytree(synthetic.shared(), tmp_path / "recordings")
    monkeypatch.setenv("ANATOMY_RECORDINGS", str(folder))
    return folder


@pytest.fixture
def run(root, capfd):
    def call(*arguments):
        with pytest.raises(SystemExit) as end:
            cli.main([str(argument) for argument in arguments])
        return end.value.code, *capfd.readouterr()

    return call


def test_the_ledger_is_printed_as_text_csv_and_json(run):
    status, out, _ = run("claims")
    assert status == 0 and "slice-doubles-fp16" in out and " not recorded" in out
    _, out, _ = run("claims", "--format", "csv", "--machine", "toy-gpu")
    assert len(list(csv.DictReader(io.StringIO(out)))) == len(claims.all_claims())
    _, out, _ = run("claims", "--format", "json", "--verdict", "holds-in-part")
    assert {entry["verdict"] for entry in json.loads(out)} == {"holds in part"}
    _, out, _ = run("claims", "--format", "json", "--topic", "alignment", "--verdict", "holds")
    assert {entry["topic"] for entry in json.loads(out)} == {"alignment"}
    status, out, _ = run("claims", "--topic", "roofline", "--verdict", "fails")
    assert status == 0 and out == "There is no such claim.\n", "a table of nothing says nothing"


def test_a_verdict_that_differs_from_the_committed_one_is_status_1(run, root):
    status, _, err = run("claims", "--check")
    assert status == 1 and "claims --machine toy-gpu --write" in err
    assert run("claims", "--write")[0] == 0
    status, out, _ = run("claims", "--check")
    assert status == 0 and "on toy-gpu" in out and "not current" not in out
    file = root / "toy-gpu" / ledger.COMMITTED
    file.write_text(json.dumps(json.loads(file.read_text()) | {"slice-doubles-fp16": "fails"}))
    status, out, _ = run("claims", "--check")
    assert status == 1
    assert "toy-gpu: slice-doubles-fp16: was 'fails', is 'holds'." in out
    assert "1 verdict differs from" in out


def test_a_check_says_which_verdicts_rest_on_old_recordings(run, root):
    assert run("claims", "--write")[0] == 0
    (file,) = (root / "toy-gpu" / "tensor_layout.report").glob("*.json")
    data = json.loads(file.read_text())
    data["code"]["hash"] = "f" * 64
    recording.save(data, root)
    status, out, _ = run("claims", "--check")
    count = len(claims.all_claims())
    assert status == 0 and f"1 of {count} rest on recordings that are not current" in out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--verdict", "fail"), "no verdict 'fail'. Did you mean 'fails'"),
        (("--topic", "alignmint"), "no topic 'alignmint'. Did you mean 'alignment'"),
        (("--machine", "toy"), "no machine with recordings 'toy'"),
        (("--check", "--write"), "exclude each other"),
        (("--check", "--verdict", "fails"), "take all claims"),
    ],
)
def test_wrong_options_are_status_2(run, options, says):
    status, _, err = run("claims", *options)
    assert status == 2 and says in err


def test_typed_figures_are_status_1_with_their_places(run, monkeypatch):
    assert run("prose", "ledger.md")[0] == 0
    monkeypatch.setattr(prose, "on_pages", lambda docs, pages: ["a.md:3: the figure"])
    status, out, _ = run("prose")
    assert status == 1 and out.endswith("a.md:3: the figure\n")
    assert run("prose", "nope.md")[0] == 2
