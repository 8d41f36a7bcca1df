"""`record`, `check`, `show` and `export`: what they ask of the pages, and what they say."""

import csv
import io
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from anatomy import cli
from anatomy.cli import recordings as cli_recordings
from anatomy.cli import targets, text
from anatomy.machine import driver, host
from anatomy.record import reach, recorder, recording, signatures
from anatomy.record.provenance.codehash import SCHEME, code_hash
from anatomy.record.recording import Recording
from anatomy.table import columns
from anatomy.table.errors import RecordingError
from tests.fakes import synthetic
from tests.fakes.later import again
from tests.fakes.toy_recording import made

SLUG = "toy-gpu"


@pytest.fixture
def root(tmp_path, monkeypatch, own_lock):
    """A folder of recordings that the commands use, and pages that show nothing yet."""
    folder = tmp_path / "recordings"
    monkeypatch.setenv("ANATOMY_RECORDINGS", str(folder))
    monkeypatch.setenv("ANATOMY_MACHINE", SLUG)
    shows(monkeypatch)
    return folder


def shows(monkeypatch, *shown):
    """Let the pages show these calls: (experiment, parameters, `page.md:line`)."""
    monkeypatch.setattr(targets, "pages", lambda: ["bench/a.md", "b.md"])

    def collected(only=None):
        return [call for call in shown if only is None or call[2].rpartition(":")[0] in only]

    monkeypatch.setattr(targets, "collected", collected)


@pytest.fixture
def run(toylab, capfd):
    def call(*arguments):
        with pytest.raises(SystemExit) as end:
            cli.main([str(argument) for argument in arguments], toylab)
        return end.value.code, *capfd.readouterr()

    call.package = toylab
    return call


def save(root, toylab, *, slug=SLUG, current=True, **params):
    """Save a recording of toy.fine, made by the code that is there or by other code."""
    from anatomy.record import signatures

    declared = signatures.signature("toy.fine", toylab)
    full = declared.bind(**params)
    code = {
        "hash": code_hash("toy.fine", full, root=toylab).hash if current else "ab" * 32,
        "scheme": SCHEME,
        "files": [],
        "commit": None,
        "dirty": None,
    }
    told = made(experiment="toy.fine", params=full, code=code)
    told["machine"]["slug"] = slug
    return recording.save(told, root, defaults=declared.defaults)


def test_record_measures_what_pages_show_and_says_what_failed(run, root, monkeypatch):
    shows(monkeypatch, ("toy.fine", {"size": 8}, "b.md:3"), ("toy.crashes", {}, "b.md:9"))
    status, out, err = run("record")
    assert status == 1 and out == ""
    files = sorted(file.relative_to(root).as_posix() for file in root.rglob("*.json"))
    cpu = host.cpu_slug()
    assert files == [f"{cpu}/toy.crashes/default.failed.json", f"{cpu}/toy.fine/size=8.json"]
    assert "1 could not be measured:\n  toy.crashes: It crashed (SIGSEGV)" in err
    status, out, err = run("record", "b.md", "--plan")
    assert status == 0 and "1 of 2 to measure" in out
    lines = {line.split()[0]: line for line in out.splitlines() if line.startswith("toy.")}
    assert "missing" in lines["toy.crashes"] and "b.md:9" in lines["toy.crashes"]
    assert "current" in lines["toy.fine"] and " s " in lines["toy.fine"]


def test_record_in_more_processes_than_before_measures_again(run, root, in_this_process):
    mine = ("record", "toy.fine", "--size", "8")
    assert "1 measured" in run(*mine)[2]
    assert "Everything is current" in run(*mine)[2]
    out = run(*mine, "--processes", "2", "--plan")[1]
    assert "It was measured in 1 process, and is to be in 2." in out and "1 of 1 to measure" in out
    err = run(*mine, "--processes", "2")[2]
    assert "toy.fine size=8, process 2 of 2" in err and "1 measured" in err
    (file,) = root.rglob("*.json")
    assert recording.load(file).data["method"]["process"] == "2 fresh processes"
    assert "Everything is current" in run(*mine)[2]


def test_targets_are_pages_experiments_and_options(monkeypatch, toylab):
    first, second = ("toy.fine", {}, "bench/a.md:1"), ("toy.fine", {"size": 8}, "b.md:2")
    shows(monkeypatch, first, second)
    assert targets.wanted([], toylab) == [first, second]
    assert targets.wanted(["b.md"], toylab) == [second]
    assert targets.wanted(["docs/bench/a.md", "b.md"], toylab) == [first, second]
    assert targets.wanted(["toy.fine"], toylab) == [first, second]
    ((name, params),) = targets.wanted(["toy.prints"], toylab)
    assert (name, params["lines"]) == ("toy.prints", 3)
    options = ["--size", "16", "--dtype=fp32", "--no-quick"]
    ((name, params),) = targets.wanted(["toy.fine", *options], toylab)
    assert (params["size"], params["dtype"], params["quick"]) == (16, "fp32", False)


def test_pages_of_the_checkout_are_collected_by_the_read_half(tmp_path, monkeypatch, toylab):
    (tmp_path / "a.md").write_text("# Nothing is shown here\n")
    monkeypatch.setattr(targets, "docs", lambda: tmp_path)
    assert targets.pages() == ["a.md"]
    assert targets.wanted(["a.md"], toylab) == targets.wanted([], toylab) == []


def test_check_fails_on_each_recording_that_is_not_current(run, root, monkeypatch, toylab):
    gpu = {"device": "cuda:0"}
    shows(monkeypatch, ("toy.fine", gpu, "b.md:3"), ("toy.fine", gpu | {"size": 8}, "b.md:5"))
    save(root, toylab, **gpu)
    save(root, toylab, **gpu, size=8, current=False)
    status, out, _ = run("check")
    assert status == 1
    assert "b.md:5: toy.fine device=cuda:0 size=8: code-changed. The code that measures" in out
    assert "b.md:3" not in out
    assert out.endswith("  pytorch-gpu-anatomy record toy.fine --device cuda:0 --size 8\n")
    save(root, toylab, **gpu, size=8)
    status, out, _ = run("check")
    assert (status, out) == (0, "Every recording that a page shows is there and current.\n")
    for command in (["check"], ["show", "toy.fine"]):
        status, out, err = run(*command, "--machine", "toy-gpo")
        assert status == 2 and out == "" and "Did you mean 'toy-gpu'?" in err
        monkeypatch.setenv("ANATOMY_MACHINE", "toy-gpo")
        assert run(*command) == (status, out, err)


def test_check_says_what_is_wrong_with_a_broken_file(run, root, monkeypatch, toylab):
    shows(monkeypatch, ("toy.fine", {"device": "cuda:0"}, "b.md:3"))
    file = save(root, toylab, device="cuda:0")
    file.write_text(file.read_text().replace('"samples": 240', '"samples": 241'))
    status, out, _ = run("check")
    assert status == 1 and "was changed after it was recorded" in out


def test_prune_deletes_what_no_page_shows(run, root, monkeypatch, toylab):
    shows(monkeypatch, ("toy.fine", {}, "b.md:3"))
    kept, gone = save(root, toylab), save(root, toylab, size=8)
    status, out, _ = run("record", "--prune", "--plan")
    assert status == 0 and gone.exists()
    assert f"would delete {SLUG}/toy.fine/size=8.json" in out
    ceilings = recording.save(
        made(experiment="limits.ceilings", params={"device": "cuda:0"}), root, defaults={}
    )
    broken = save(root, toylab, size=16)
    broken.write_text("{")
    status, out, err = run("record", "--prune")
    assert status == 0 and kept.exists() and not gone.exists()
    assert ceilings.exists(), "every share of a limit needs them"
    assert broken.exists() and "left alone" in err


def test_a_plan_without_a_gpu_tells_how_the_machine_of_the_site_stands(
    run, root, monkeypatch, toylab
):
    shows(monkeypatch, ("toy.fine", {"device": "cuda:0"}, "b.md:3"))
    monkeypatch.setattr(host, "here", lambda: None)
    assert "1 of 1 to measure" in run("record", "--plan")[1]
    save(root, toylab, device="cuda:0")
    assert "0 of 1 to measure" in run("record", "--plan")[1]


@pytest.mark.parametrize("given", ["0", "two", "-1"])
def test_a_number_of_gpus_that_is_none_is_refused_by_a_plan_too(run, root, monkeypatch, given):
    shows(monkeypatch, ("toy.fine", {"size": 8}, "b.md:3"))
    status, out, err = run("record", "--plan", "--gpus", given)
    assert (status, out) == (2, "") and "it must be a number from 1 on, or all" in err


def test_a_plan_tells_what_this_card_takes_and_leaves_out(root, monkeypatch, capsys):
    size = driver.Size(8 * 2**30, (7, 5), 4 * 2**20)
    monkeypatch.setattr(host, "first_card", lambda: size)
    on = cli_recordings._capacity(host, root, None)
    items = recorder.plan([("graph_capture.map", {}), ("limits.floors", {})], root, None)
    cli_recordings._print_plan(items, 2, 90.0, on)
    out = capsys.readouterr().out
    lines = {line.split()[0]: line for line in out.splitlines() if line}
    assert "16.0 GiB; leaves out 13 of 13" in lines["graph_capture.map"]
    assert "513 MiB" in lines["limits.floors"] and "about 90.0 s" in out
    told = "graph_capture.map, pointwise 1024: not supported on sm_75: bf16 products need sm_80"
    assert told in out


def test_show_prints_a_recorded_table(run, root, toylab):
    save(root, toylab, size=8)
    status, out, _ = run("show", "toy.fine", "--size", 8)
    assert status == 0
    assert out.startswith("toy.fine device=cpu dtype=fp16 quick=True size=8 slowdown=2.0\n")
    assert "NVIDIA H200, torch 2.11.0+cu130, CUDA 13.0, driver 580.159.03, 2026-11-21T" in out
    assert "33 µs [32, 34]" in out and "FP8 needs sm_89." in out
    assert "The clock fell by 3 % (power cap)." in out
    assert json.loads(run("show", "toy.fine", "--size", 8, "--format", "json")[1])["rows"]


def test_a_table_too_wide_goes_on_below_and_what_all_rows_share_is_said_once(monkeypatch):
    found = [
        {"op": "sum", "quantity": "gpu_warm", "variant": name, "median_s": 1e-6 * size, "m": 64}
        | {"dtype": name, "note": f"{name} has much to say of itself"}
        for name, size in (("fp16", 2), ("fp32", 4))
    ]
    for width, parts in ((200, 1), (40, 2)):
        monkeypatch.setattr(text, "terminal_width", lambda width=width: width)
        made = text.tables(SimpleNamespace(rows=found))
        assert len(made) == parts
        assert all([*each.columns[0].cells] == ["fp16", "fp32"] for each in made)
        heads = [column.header for each in made for column in each.columns]
        assert "m" not in heads and len(heads) == 3 + parts  # the first column leads each part
        assert made[-1].caption == "In each row: m 64."
        assert not any(each.caption for each in made[:-1])


def test_show_says_what_is_recorded_instead(run, root, toylab):
    save(root, toylab, size=8)
    status, out, err = run("show", "toy.fine", "--size", 16)
    assert status == 1 and out == ""
    assert "There is no recording of toy.fine size=16 on toy-gpu. Recorded with: size=8." in err
    assert "Measure it: pytorch-gpu-anatomy record toy.fine --size 16\n" in err


def test_show_of_an_unknown_machine_names_the_known_ones(run, root, toylab):
    save(root, toylab)
    status, _, err = run("show", "toy.fine", "--machine", "toy-gpo")
    assert status == 2 and "Did you mean 'toy-gpu'?" in err


def test_export_is_one_tidy_table_of_every_row(run, root, toylab):
    save(root, toylab)
    save(root, toylab, size=8)
    save(root, toylab, slug="other-gpu")
    status, out, _ = run("export", "--machine", SLUG)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert status == 0 and len(rows) == 4
    leading = "machine experiment params variant op quantity median_s low_s high_s samples torch"
    assert list(rows[0])[:12] == [*leading.split(), "recorded_at"]
    assert {row["machine"] for row in rows} == {SLUG}
    assert {json.loads(row["params"])["size"] for row in rows} == {4, 8}
    assert rows[0]["samples"] == "240" and json.loads(rows[0]["shape"]) == [4096, 4096]
    everything = json.loads(run("export", "--format", "json")[1])
    only = json.loads(run("export", "--experiment", "toy.fine", "--format", "json")[1])
    assert only == [each for each in everything if each["experiment"] == "toy.fine"] != []
    status, _, err = run("export", "--experiment", "toy.fien")
    assert status == 2 and "Did you mean 'toy.fine'?" in err
    assert len(everything) == 6 and everything[1]["median_s"] is None


def test_a_broken_recording_is_one_message(run, root, toylab):
    file = save(root, toylab)
    file.write_text(file.read_text()[:100])
    for command in (["export"], ["show", "toy.fine"]):
        status, out, err = run(*command)
        assert status == 1 and out == "" and err.count("\n") == 1
        assert "breaks off" in err and "Make it anew" in err


def test_what_would_steer_a_terminal_or_a_spreadsheet_is_only_text(run, root, toylab):
    steers, computes = "\x1b[2J\x9b\u202e", "=1+1"

    said = {"op": steers, "note": steers, computes: "@SUM(A1)", "own": "-2 \u2212 3"}
    file = save(root, toylab)
    data = json.loads(file.read_text())
    data["rows"] = [data["rows"][0] | said]
    data["warnings"] = [steers]
    recording.save(data, root, defaults=data["params"])
    for command in (["show", "toy.fine"], ["show", "toy.fine", "--format", "csv"], ["export"]):
        status, out, err = run(*command)
        assert status == 0 and not set(steers[:1] + steers[4:]) & set(out + err)
        assert r"\x1b[2J\x9b\u202e" in out
    header, row = csv.reader(io.StringIO(out))
    cells = dict(zip(header, row, strict=True))
    assert cells["'=1+1"] == "'@SUM(A1)" and cells["own"] == "'-2 \u2212 3"
    assert float(cells["median_s"]) > 0 and "=1+1" not in cells


def test_without_recordings_the_commands_say_so(run, root):
    for command in (["export"], ["show", "toy.fine"]):
        status, _, err = run(*command)
        assert status == 1 and "There are no recordings yet" in err


def test_outside_a_checkout_the_commands_say_that_it_is_none(run, tmp_path, monkeypatch, own_lock):
    for name in ("ANATOMY_RECORDINGS", "ANATOMY_MACHINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(signatures, "PACKAGE", tmp_path / "site-packages" / "anatomy")
    for command in ("check", "export", "claims"):
        status, out, err = run(command)
        assert status == 1 and out == ""
        assert "This is no checkout" in err and "--save" not in err
    monkeypatch.setenv("ANATOMY_RECORDINGS", str(tmp_path))
    monkeypatch.setenv("ANATOMY_MACHINE", SLUG)
    for command in (("check",), ("record", "--plan")):  # nothing to show is not all well
        status, out, err = run(*command)
        assert status == 1 and out == "" and "There are no pages here" in err
    status, _, err = run("claims")
    assert status == 1 and f"no recordings to judge by in {tmp_path}. Make some" in err
    assert targets.wanted(["toy.fine"], run.package)[0][0] == "toy.fine"


def test_machine_outside_a_checkout_names_a_command_that_works_there(run, tmp_path, monkeypatch):
    monkeypatch.delenv("ANATOMY_RECORDINGS", raising=False)
    monkeypatch.chdir(tmp_path)

    def outside():
        raise RecordingError("This is no checkout.")

    monkeypatch.setattr(recording, "default_root", outside)
    out = run("machine", "--device", "cpu")[1]
    assert "pytorch-gpu-anatomy limits --save recordings --device cpu" in out


def test_machine_shows_what_was_detected(run, root):
    status, out, _ = run("machine", "--device", "cpu")
    assert status == 0 and host.cpu_slug() in out and "No limits are known" in out
    told = json.loads(run("machine", "--device", "cpu", "--format", "json")[1])
    assert told["machine"]["slug"] == host.cpu_slug() and told["limits"] == []


def test_limits_stand_beside_what_the_maker_states(tmp_path, monkeypatch):
    from anatomy.cli import ceilings

    monkeypatch.setenv("ANATOMY_RECORDINGS", str(tmp_path))
    row = {"op": "copy", "variant": "64 MiB", "limit": "copy", "bytes": 4e9, "median_s": 1e-3}
    told = made(experiment="limits.ceilings", params={"device": "cuda:0"}, rows=[row])
    recording.save(told, tmp_path, defaults={"device": "cuda:0"})
    found = {each["limit"]: each for each in ceilings.compared("nvidia-h200", "NVIDIA H200")}
    assert found["copy"]["measured"] == 4e12 and found["copy"]["datasheet"] == 4.8e12
    assert found["matmul fp16"]["measured"] is None
    assert found["matmul fp16"]["datasheet"] > 9e14
    quick = Recording(told | {"params": {"device": "cuda:0", "scale": 0.01}})
    said = [each for each in ceilings.report(quick) if isinstance(each, str)]
    assert any("A quick look: at scale 0.01 these are no limits of the machine" in s for s in said)


def test_export_says_what_each_column_means(run):
    status, out, _ = run("export", "--columns")
    lines = out.splitlines()
    assert status == 0 and lines[0].split() == ["column", "of", "unit", "meaning"]
    assert any(line.split()[:2] == ["median_s", "s"] for line in lines)
    as_data = json.loads(run("export", "--columns", "--format", "json")[1])
    told = {each["column"]: each for each in as_data if not each["experiments"]}
    assert told["ratio"]["interval"] == "ratio_low, ratio_high" and told["ratio"]["judged"]
    assert all(each["meaning"] for each in as_data)
    mine = run("export", "--columns", "--experiment", "toy.fine", "--format", "json")[1]
    assert all(each["topic"] in ("", "toy") for each in json.loads(mine))
    header, *rows = run("export", "--columns", "--format", "csv")[1].splitlines()
    assert header.split(",") == list(as_data[0]) and len(rows) == len(as_data)


def test_every_exported_column_is_documented(run, monkeypatch):
    monkeypatch.setenv("ANATOMY_RECORDINGS", str(Path(__file__).parents[2] / "recordings"))
    exported = run("export")[1].partition("\n")[0].split(",")
    assert set(exported) <= {column.name for column in columns.declared()}


def test_again_goes_with_nothing_that_measures_or_deletes_otherwise(run):
    for other in ("--remeasure", "--prune"):
        status, _, err = run("record", "--again", other)
        assert status == 2 and "leave one out" in err


def test_occasions_are_counted_and_their_reach_is_written(run, tmp_path, monkeypatch):
    root = shutil.copytree(synthetic.shared(), tmp_path / "recordings")
    monkeypatch.setenv("ANATOMY_RECORDINGS", str(root))
    told = ("occasions", "--machine", synthetic.MACHINE)
    assert "has a second occasion: pytorch-gpu-anatomy record --again" in run(*told)[1]
    again(root / synthetic.MACHINE / "contiguity.bench" / "default.json", lambda row: 1.1)
    status, out, _ = run(*told, "--write")
    assert status == 0 and f"{synthetic.MACHINE}/{reach.FILE}" in out
    assert "GPU" in out and "turned round" in out
    assert set(reach.read(root, synthetic.MACHINE)) == {"GPU"}
