"""`diagnose SCRIPT.py`: a step of a reader's own, and each way in which a script can be wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import anatomy
from anatomy import cli
from anatomy.chapters.bottlenecks import workloads
from anatomy.diagnosis import scripts
from anatomy.table.errors import BadParameter, DeviceError, MeasurementError, UnknownName

pytestmark = pytest.mark.usefixtures("own_lock", "warm")
CHECKOUT = Path(__file__).resolve().parents[2]
STEP = "import torch\nx = torch.randn(32, 32)\n\n\ndef step():\n    return x @ x\n"


@pytest.fixture
def script(tmp_path):
    def write(body, name="mine.py"):
        file = tmp_path / name
        file.write_text(body)
        return file

    return write


@pytest.fixture
def run(capfd):
    """Run a command in this process: `run(...) -> (status, stdout, stderr)`."""

    def call(*arguments):
        with pytest.raises(SystemExit) as end:
            cli.main(["diagnose", *(str(argument) for argument in arguments)])
        return end.value.code, *capfd.readouterr()

    return call


@pytest.fixture
def diagnosed(script, monkeypatch):
    """Diagnose a script in this process, as a fresh one does."""

    def call(body):
        with monkeypatch.context() as process:
            process.setattr(sys, "argv", sys.argv)
            process.setattr(sys, "path", [*sys.path])
            try:
                return scripts._diagnosed(str(script(body)), "step", "cpu", [])
            finally:
                sys.modules.pop("mine", None)

    return call


def test_a_step_is_diagnosed_and_what_the_script_prints_is_apart(run, script):
    file = script(STEP + 'print("hello")\nif __name__ == "__main__":\n    raise SystemExit(7)\n')
    status, out, err = run(file, "--device", "cpu")
    assert status == 0 and out.startswith("step() of mine.py on cpu: ")
    assert "bottleneck: unknown" in out and "can't be told apart there" in out
    assert "hello" in err and "hello" not in out


def test_json_batches_setup_arguments_and_another_name(run, script):
    script("SIDE = 300\n", "beside.py")  # a script may import what lies beside it
    file = script(
        "import sys, torch\nfrom beside import SIDE\nready = []\n"
        "def setup():\n    ready.append(int(sys.argv[1]))\n"
        "def batches():\n    while True:\n"
        "        yield torch.randn(SIDE, SIDE).sort(dim=1).values[: ready[0]]\n"
        "def train(batch, scale=2.0):\n    assert len(batch) == 3\n    return batch * scale\n"
    )
    status, out, _ = run(
        file, "--function", "train", "--device", "cpu", "--format", "json", "--", "3"
    )
    told = json.loads(out)
    assert status == 0 and told["cause"] == "input" and told["script"] == str(file)
    assert told["name"] == "train() of mine.py" and told["evidence"]


def test_a_script_or_a_step_that_is_not_there_is_bad_usage(run, script, tmp_path):
    with pytest.raises(BadParameter, match=r"There is no script .*none\.py\. Name a Python file"):
        scripts.diagnose_script(tmp_path / "none.py", device="cpu")
    assert run(tmp_path / "none.py")[0] == 2
    file = script(STEP.replace("def step", "def steps"))
    with pytest.raises(BadParameter, match=r"no function in .*mine\.py called 'step'.*'steps'"):
        scripts.diagnose_script(file, device="cpu")
    assert run(file, "--device", "cpu")[0] == 2
    with pytest.raises(UnknownName, match="Known: steps"):
        scripts._diagnosed(str(file), "step", "cpu", [])


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ("def step(x): ...", r"step\(\) takes x; it must take nothing, or one batch of a function"),
        ("def step(): ...\ndef batches(): yield 1", r"step\(\) takes nothing; with batches\(\)"),
        ("async def step(): 1 / 0", r"step\(\) of mine.py returned a coroutine, so nothing of it"),
        ("def step():\n    yield 1", r"step\(\) of mine.py returned a generator.*plain function"),
        ("async def step():\n    yield 1", r"returned an async generator"),
        ("def step(): ...\nasync def setup(): ...", r"setup\(\) returned a coroutine"),
        ("def step(a, b): ...\ndef batches(): yield 1", r"step\(\) takes a, b; with batches\(\)"),
    ],
)
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_a_step_that_takes_something_else_is_bad_usage(diagnosed, body, match):
    with pytest.raises(BadParameter, match=match):
        diagnosed(body)


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ('raise KeyError("lost")', r"mine\.py could not be loaded: KeyError: 'lost'"),
        ("def step(:", r"could not be loaded: SyntaxError: "),
        ('def step():\n    raise KeyError("lost")', r"step\(\) of mine\.py failed: KeyError"),
        ("def step(): ...\ndef setup():\n    1 / 0", r"setup\(\) of .* failed: ZeroDivisionError"),
        ("def step(x): ...\ndef batches():\n    return []", "batches ended, and beginning anew"),
    ],
)
def test_a_script_that_fails_is_one_sentence(diagnosed, body, match):
    with pytest.raises(MeasurementError, match=match):
        diagnosed(body)


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ("raise SystemExit(0)", r"ended by itself before its step\(\) could be diagnosed"),
        ("raise SystemExit(3)", r"mine\.py failed\. It left with status 3\."),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", r"It crashed \(SIGSEGV\)"),
    ],
)
def test_a_script_that_ends_its_process_is_one_sentence(script, body, match):
    file = script(body)
    with pytest.raises(MeasurementError, match=match):
        scripts.diagnose_script(file, device="cpu")


def test_the_command_shows_where_it_failed(run, script):
    status, out, err = run(script('def step():\n    raise KeyError("lost")'), "--device", "cpu")
    assert status == 1 and out == ""
    assert "error: step() of mine.py failed: KeyError: 'lost'" in err
    assert "    KeyError: 'lost'" in err and "line 2, in step" in err


def test_a_script_may_have_the_name_of_a_module_and_must_be_python(script):
    named = script(STEP, "random.py")
    found = scripts.diagnose_script(named, device="cpu")
    assert found["diagnosis"]["name"] == "step() of random.py"
    with pytest.raises(BadParameter, match=r"mine\.txt is no Python file"):
        scripts.diagnose_script(script(STEP, "mine.txt"), device="cpu")


def test_classes_of_the_script_can_be_sent_to_a_data_loaders_workers(script):
    file = script(
        "import pickle, torch\nfrom torch.utils.data import DataLoader, Dataset\n"
        "class Numbers(Dataset):\n"
        "    def __len__(self):\n        return 4\n"
        "    def __getitem__(self, index):\n        return torch.full((2,), float(index))\n"
        "def setup():\n    pickle.loads(pickle.dumps(Numbers()))\n"
        "def batches():\n    return iter(DataLoader(Numbers(), 2))\n"
        "def step(batch):\n    assert batch.shape == (2, 2)\n"
    )
    found = scripts.diagnose_script(file, device="cpu")
    assert found["diagnosis"]["cause"] == "input"


def test_a_thread_that_the_script_leaves_is_not_waited_for(script):
    left = "import threading, time\nthreading.Thread(target=time.sleep, args=[600]).start()\n"
    found = scripts.diagnose_script(script(left + STEP), device="cpu", timeout_s=120)
    assert found["diagnosis"]["cause"] == "unknown"


def test_a_script_that_hangs_is_ended(script):
    with pytest.raises(MeasurementError, match="its time limit, and was ended"):
        scripts.diagnose_script(script("import time\ntime.sleep(600)"), device="cpu", timeout_s=1)


def test_devices_that_can_not_be_are_refused_before_the_script_runs(run, script):
    file = script('print("ran")\n' + STEP)
    assert run(file, "--device", "gpu")[0] == 2
    assert run(file, "--device", "mps")[0] == 3
    if not torch.cuda.is_available():
        status, _, err = run(file)
        assert status == DeviceError.exit_status and "ran" not in err
        assert "CUDA requested but" in err


def test_on_a_cpu_the_operators_shares_are_not_taken_for_the_steps(script):
    file = script("import time\n" + STEP.replace("return", "time.sleep(0.001); return"))
    found = scripts.diagnose_script(file, device="cpu")
    assert "longest operators" in found["text"] and "not of the step" in found["text"]


def test_a_notebook_shows_a_diagnosis_of_a_readers_step():
    x = torch.randn(8, 8)
    found = anatomy.diagnose(lambda: x @ x, device="cpu", name="<mine>", block_s=1e-4)
    assert found._repr_html_().startswith("<pre>&lt;mine&gt; on cpu: ")
    with pytest.raises(BadParameter, match="returned a generator"):
        anatomy.diagnose(lambda: (each for each in x), device="cpu")


def test_the_snippet_runs_alone_and_by_the_command(run):
    snippet = CHECKOUT / "snippets" / "diagnose_your_step.py"
    status, out, _ = run(snippet, "--device", "cpu" if not torch.cuda.is_available() else "cuda:0")
    assert status == 0 and "bottleneck: " in out
    environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(
        [sys.executable, snippet], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("step on ") and "try next: " in done.stdout


def test_the_loop_of_the_quick_start_is_the_one_that_its_recording_diagnoses(run):
    snippet = CHECKOUT / "snippets" / "item_in_every_round.py"
    told = snippet.read_text(encoding="utf-8")
    assert f"range({workloads.ROUNDS})" in told and "2**22" in told
    status, out, _ = run(snippet, "--device", "cpu" if not torch.cuda.is_available() else "cuda:0")
    assert status == 0 and "bottleneck: " in out
