"""The commands: every one has help and an example, and leaves with the status it documents."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

import anatomy
from anatomy import cli
from anatomy.cli import measure, targets, text
from anatomy.cli.app import STATUSES, build
from anatomy.record import recorder, recording, signatures
from anatomy.table.errors import AnatomyError, Busy
from tests.record.processes.test_isolation import CHECKOUT

pytestmark = pytest.mark.usefixtures("own_lock")


def commands(group, path=()):
    """Every command of the application with the words that reach it."""
    for name, command in getattr(group, "commands", {}).items():
        if getattr(command, "commands", None):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


ALL = dict(commands(get_command(build())))


@pytest.fixture
def run(toylab, capfd):
    """Run a command in this process: `run("list") -> (status, stdout, stderr)`."""

    def call(*arguments, package=toylab):
        with pytest.raises(SystemExit) as end:
            cli.main([str(argument) for argument in arguments], package)
        return end.value.code, *capfd.readouterr()

    return call


@pytest.fixture
def measured(monkeypatch, toylab):
    """Measure toys in this process, so that a test of printing need not wait for a worker."""
    from anatomy import judge
    from anatomy.machine import host
    from anatomy.record import declare as experiment
    from anatomy.record.processes import worker
    from anatomy.record.provenance import codehash

    def run_here(name, params, *, package, **_):
        full = signatures.signature(name, package).bind(**params)
        rows = worker.rows_of(experiment.load(name, package)(**full), name)
        code = codehash.code_hash(name, full, root=package)
        return {
            "experiment": name,
            "params": full,
            "machine": host.describe("cpu"),
            "software": {"torch": "2.11.0+cu130", "cuda": "13.0"},
            "method": {"start_s": 1.0},
            "conditions": {"before": None, "after": None},
            "noise_floor": judge.noise_floors(rows),
            "rows": rows,
            "warnings": ["The toy is a toy."],
            "code": {"hash": code.hash, "files": code.files, "commit": None, "dirty": None},
            "started_at": "2026-11-21T10:00:00Z",
            "seconds": 3.5,
        }

    monkeypatch.setattr(recorder, "run", run_here)


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_command_and_option_has_help_and_an_example(path):
    command = ALL[path]
    assert command.help, f"{' '.join(path)} is missing its help"
    assert command.epilog.startswith(f"Example: pytorch-gpu-anatomy {' '.join(path)}")
    for option in command.params:
        assert option.help, f"{' '.join(path)} --{option.name} is missing its help"


@pytest.mark.parametrize("name", signatures.experiments())
def test_every_experiment_is_a_command_with_its_own_defaults(name):
    declared = signatures.signature(name)
    reached = [("run", name), ("show", name), (declared.regular,)]
    for path in reached:
        options = {option.name: option for option in ALL[path].params}
        for parameter in declared.parameters:
            assert options[parameter.name].help.startswith(parameter.help[:20])
            if path[0] != "show":
                assert options[parameter.name].default == parameter.default


def test_the_documented_commands_are_there_with_their_flags():
    bench = {option.opts[0] for option in ALL["c01", "contiguity-bench"].params}
    assert {"--device", "--dtype", "--m", "--n", "--k", "--iters", "--format", "--save"} <= bench
    assert ("c01", "tensor-layout") in ALL
    assert {"list", "machine", "record", "check", "export"} <= {path[0] for path in ALL}
    assert "K is the reduction" in ALL["c01", "contiguity-bench"].help


def test_the_help_documents_every_status(run):
    status, out, _ = run("--help")
    assert status == 0
    said = " ".join(out.split())
    assert STATUSES in said
    kinds = {kind.exit_status for kind in AnatomyError.__subclasses__()}
    assert kinds <= {int(number) for number in re.findall(r"(\d+) ", STATUSES)}


def test_the_help_tells_experiments_and_commands_apart(run):
    commands, experiments = run("--help", package=None)[1].split(" Experiments ")
    assert "│ claims " in commands and "│ run " in commands and "│ never-costs " not in commands
    for each in signatures.experiments().values():
        assert f"│ {each.regular} " in experiments


def test_example_lines_can_be_typed_as_they_stand(run, measured):
    for path in (("c01", "toy-bench"), ("run", "toy.fine")):
        example = dict(commands(get_command(build(Path(__file__).parents[1] / "toylab"))))[
            path
        ].epilog
        words = example.removeprefix("Example: pytorch-gpu-anatomy ").split()
        assert run(*words)[0] == 0


def test_several_processes_are_asked_for_and_told(run, tmp_path, monkeypatch, in_this_process):
    monkeypatch.chdir(tmp_path)
    status, out, err = run("run", "toy.thrice", "--log", "log")
    assert status == 0
    assert "3 fresh processes; intervals are the envelope of theirs" in out
    assert "1.012× [1.010, 1.014], slower" in out
    assert all(f"toy.thrice log=log, process {n} of 3" in err for n in (1, 2, 3))
    Path("log").unlink()
    status, out, err = run("run", "toy.thrice", "--log", "log", "--processes", 1)
    assert status == 0 and "fresh process" not in out and "1.011×" in out
    assert "process 1" not in err and len(Path("log").read_text().split()) == 1


@pytest.mark.parametrize("given", ["0", "-1", "three", "1.5"])
def test_processes_that_can_not_be_counted_are_bad_usage(run, given):
    for command in (("run", "toy.fine"), ("c01", "toy-bench"), ("record",)):
        status, out, err = run(*command, "--processes", given)
        assert status == 2 and out == "" and "--processes" in err


def test_list_names_experiment_command_and_page(run):
    status, out, _ = run("list")
    (line,) = [line for line in out.splitlines() if line.startswith("toy.fine ")]
    assert status == 0 and "c01 toy-bench" in line and "benchmarks/toy.md" in line
    assert json.loads(run("list", "--format", "json")[1])[1]["defaults"]["size"] == 4
    assert json.loads(run("list", "--format", "json")[1])[1]["also"][0] == "toy-fine"


def test_text_has_layout_timing_and_notes(run, measured):
    status, out, err = run("c01", "toy-bench", "--slowdown", 1.5)
    assert status == 0
    assert out.splitlines()[0] == "toy.fine device=cpu dtype=fp16 quick=True size=4 slowdown=1.5"
    sliced = out[out.index("[A variant: sliced]") :].splitlines()[:6]
    assert sliced[1:] == [
        "  shape          : (4, 4)",
        "  is_contiguous  : no",
        "  strides        : (4, 1)",
        "  storage_offset : 0",
        "  offset_bytes   : 2  (mod 128 = 2)",
    ]
    assert out.count("[A variant:") == 2  # the control's duplicate lies where the control lies
    timing = out[out.index("=== Matmul timing (A @ B), gpu_warm") :].splitlines()
    assert re.match(r"contiguous +1\.00 ms/iter \[0\.98, 1\.02\] +control", timing[1])
    assert re.match(r"sliced +1\.50 ms/iter .* 1\.50× \[1\.4\d, 1\.5\d\], slower", timing[2])
    assert "not measured: No FP8 here." in timing[4]
    assert "noise floor 0.40%" in timing[5]
    notes = out[out.index("Notes:") :]
    assert "  - matmul, gpu_warm: slower: sliced (1.50× of control).\n" in notes
    assert "The toy is a toy." in notes
    assert "4 s, of which 1 s to start" in err


def test_notes_say_nothing_that_the_rows_do_not(run, measured):
    notes = run("c01", "toy-bench", "--slowdown", 1)[1].split("Notes:")[1]
    assert "sliced (1.00× of control)" in notes and "1.50×" not in notes


def test_json_is_the_recording_itself(run, measured, tmp_path):
    status, out, _ = run("run", "toy.fine", "--size", 8, "--format", "json", "--save", tmp_path)
    (file,) = tmp_path.glob("*/*/*.json")
    said, kept = json.loads(out), json.loads(file.read_text())
    said["columns"].remove("paced_by")  # which follows, and is in no file
    assert {row.pop("paced_by") for row in said["rows"] if "paced_by" in row} <= {None, "GPU"}
    assert status == 0 and said == kept
    found = recording.load(file)
    assert found.params["size"] == 8 and found.warnings == ["The toy is a toy."]


def test_csv_is_tidy(run, measured):
    rows = list(csv.DictReader(io.StringIO(run("run", "toy.fine", "--format", "csv")[1])))
    assert [row["variant"] for row in rows][:2] == ["contiguous", "sliced"]
    assert rows[0]["samples"] == "60" and rows[3]["samples"] == ""  # 60 and nothing, not 60.0
    assert float(rows[1]["median_s"]) == 2e-3
    assert json.loads(rows[0]["params"])["dtype"] == "fp16"
    assert rows[0]["torch"] == "2.11.0+cu130" and rows[0]["recorded_at"] == "2026-11-21T10:00:00Z"


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["run", "toy.fine", "--dtype", "fp8"], 2, "'--dtype': 'fp8' is not one of 'fp16', 'fp32'"),
        (["run", "toy.fine", "--size", "many"], 2, "Invalid value for '--size'"),
        (["run", "toy.fine", "--siez", "4"], 2, "No such option"),
        (
            ["run", "toy.fine", "--device", "gpu"],
            2,
            "error: toy.fine: device='gpu' is not a device",
        ),
        (["run", "toy.fine", "--device", "mps"], 3, "error: device='mps' is not measured here"),
        (["run", "toy.nothing"], 2, "There is no command 'toy.nothing'. "),
        (
            ["run", "toy.fine", "--size", "0"],
            2,
            "error: toy.fine: size=0: it must be a whole number from 1 to 100,000.",
        ),
        (["run", "toy.crashes"], 1, "error: It crashed (SIGSEGV)"),
        (["run", "toy.is_careful"], 4, "error: toy.is_careful needs 1024 TiB on cpu"),
        (["record", "toy.fien"], 2, "Did you mean 'toy.fine'?"),
        (["record", "toy.fine", "--siez", "4"], 2, "Did you mean 'size'?"),
        (["record", "--budget", "-1"], 2, "it must be above 0 seconds"),
        (["run", "toy.fine", "--timeout", "0"], 2, "--timeout 0: it must be above 0 seconds"),
        (["diagnose", "a.py", "--timeout", "-1"], 2, "--timeout -1: it must be above 0 seconds"),
        (["replicate", "a.py", "--timeout", "nan"], 2, "--timeout nan: it must be above 0"),
        (["record", "--prune", "toy.fine"], 2, "give it no PAGE or EXPERIMENT"),
    ],
)
def test_bad_input_is_one_clear_message_and_a_status(run, arguments, status, said):
    got, out, err = run(*arguments)
    assert got == status
    assert out == "" and "Traceback" not in err
    assert said in " ".join(err.replace("│", " ").split())


@pytest.mark.skipif(recorder.host.here() is not None, reason="this host has a GPU")
def test_without_cuda_the_sentence_of_the_documentation_is_printed(run):
    arguments = ("c01", "contiguity-bench", "--format", "json")
    status, out, err = run(*arguments, package=None)
    assert status == 3 and out == ""
    assert "error: CUDA requested but torch.cuda.is_available() is False. This PyTorch" in err


def test_a_second_measurement_at_once_is_refused_with_status_5(run, monkeypatch):
    def busy(*_, **__):
        raise Busy("Process 42 has been measuring.")

    monkeypatch.setattr(recorder, "run", busy)
    assert run("run", "toy.fine")[0] == 5


def test_a_folder_that_can_not_be_written_is_refused_before_measuring(run, monkeypatch, tmp_path):
    def measured(*_, **__):
        raise AssertionError("minutes were spent first")

    monkeypatch.setattr(recorder, "run", measured)
    file = tmp_path / "file"
    file.write_text("not a folder")
    monkeypatch.setattr(recorder.Measurer, "measure", measured)
    monkeypatch.setattr(targets, "collected", lambda only=None: [])

    def refused(folder, wrong):
        monkeypatch.setenv("ANATOMY_RECORDINGS", str(folder))
        for command in (["run", "toy.fine", "--save", folder], ["record", "toy.fine"]):
            status, out, err = run(*command)
            assert (status, out) == (1, "") and f"Nothing can be saved in {folder}: {wrong}" in err

    for folder in (file, file / "inside"):
        refused(folder, "It is a file, or in one")
    refused(tmp_path / ("n" * 300), "File name too long")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    refused(tmp_path / "new" / "folder", "Permission denied")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["file"]


def test_layouts_come_before_the_times_of_the_benchmark(monkeypatch, capfd):
    asked = []

    def measured(experiment, params, options, package, folder=None):
        asked.append((experiment.name, params))
        rows = [{"variant": experiment.name, "strides": [4, 1], "shape": [4, 4], "note": "toy"}]
        data = {"machine": {"slug": "toy"}, "software": {}, "code": {}, "rows": rows}
        more = {"experiment": experiment.name, "params": params, "started_at": "", "warnings": []}
        return recording.Recording(data | more)

    monkeypatch.setattr(measure, "measured", measured)
    with pytest.raises(SystemExit) as end:
        cli.main(["c01", "contiguity-bench", "--m", "64"])
    out = capfd.readouterr().out
    assert end.value.code == 0
    assert [name for name, _ in asked] == ["tensor_layout.report", "contiguity.bench"]
    assert asked[0][1] == {"device": "cuda:0", "dtype": "fp16", "m": 64, "k": 4096}
    assert out.index("[A variant: tensor_layout.report]") > out.index("contiguity.bench device=")


def test_without_torch_a_readers_script_is_refused_with_status_3(run, monkeypatch, tmp_path):
    from anatomy.machine import versions

    (tmp_path / "mine.py").touch()
    monkeypatch.setattr(versions, "torch_build", lambda: versions.Build(versions.NO_TORCH))
    for command in ("diagnose", "replicate"):
        status, out, err = run(command, tmp_path / "mine.py")
        assert status == 3 and out == "" and "Traceback" not in err
        assert err.splitlines()[-1].startswith("error: Measuring needs PyTorch, and none is")


def python(code, **options):
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, **options
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "arguments", [["--help"], ["list"], ["c01", "--help"], ["run", "contiguity.bench", "--help"]]
)
def test_telling_what_there_is_does_not_load_torch(arguments):
    code = (
        "import sys, atexit; from anatomy.cli import main\n"
        "atexit.register(lambda: sys.stderr.write(str('torch' in sys.modules)))\n"
        f"main({arguments!r})"
    )
    assert python(code)[2] == "False"


def test_the_version_is_printed_without_a_command(run):
    status, out, err = run("--version")
    assert (status, out, err) == (0, f"pytorch-gpu-anatomy {anatomy.__version__}\n", "")


def test_no_color_is_honoured_even_in_a_terminal(tmp_path):
    import pty

    def shown(**environment):
        leader, follower = pty.openpty()
        code = "from rich.table import Table; from anatomy.cli.output import show; t = Table('x')\n"
        code += "t.add_row('1'); show(t, '[bold]as it is[/bold]')"
        bare = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=CHECKOUT,
            stdout=follower,
            env=bare | {"TERM": "xterm-256color"} | environment,
            check=True,
        )
        os.close(follower)
        return os.read(leader, 4096).decode()

    assert "\x1b[1m" in shown()
    plain = shown(NO_COLOR="1")
    assert not re.search(r"\x1b\[[\d;]*3\d", plain) and "[bold]as it is[/bold]" in plain


def test_completion_offers_experiments(monkeypatch):
    code = "from anatomy.cli import main; main([])"
    environment = os.environ | {
        "_PYTORCH_GPU_ANATOMY_COMPLETE": "complete_bash",
        "COMP_WORDS": "pytorch-gpu-anatomy run cont",
        "COMP_CWORD": "2",
    }
    _, out, err = python(code, env=environment)
    assert "contiguity.bench" in out.split(), err


@pytest.mark.parametrize("name", ["ladder.autotuned", "ladder.graphs"])
def test_of_rows_of_several_kinds_each_is_printed_in_its_way(name):
    root = CHECKOUT / "recordings"
    found = [each for each in recording.all_recordings(root) if each.experiment == name]
    for each in found:
        printed = text.report(each)
        assert "ms/iter [" in printed and "\n  part " in printed and "[None]" not in printed
    assert found
