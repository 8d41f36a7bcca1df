"""A reader's script in several processes: what it compares must stay the same, and may not fail."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from anatomy import cli
from anatomy.diagnosis import replicas
from anatomy.record.processes import isolation
from anatomy.table.errors import BadParameter, Busy, MeasurementError
from tests.record.processes.test_isolation import CHECKOUT, gone, numbers

pytestmark = pytest.mark.usefixtures("own_lock", "warm")

# A stand-in for compare, with figures that were told: RATIO in the nth process is 0.001 more.
TOLD = """
import os, sys, pathlib
import pandas as pd
from anatomy.record.processes.handover import hand_over

log = pathlib.Path(__file__).with_suffix(".log")
with log.open("a") as file:
    file.write(f"{os.getpid()}\\n")
NTH = len(log.read_text().split())
TILES = (1.0, 1.001, 0.999, 1.0, 1.002, 0.998)


def compare(ratio, names=("plain", "fused"), op="add", floor=0.002, warnings=()):
    usual = {"op": op, "quantity": "gpu_warm", "device": "cpu", "noise_floor": floor}
    rows = []
    for name, over in zip(names, (None, ratio + 0.001 * NTH)):
        time_s = 1e-4 * (over or 1.0)
        rows.append(usual | {
            "variant": name, "role": "variant" if over else "control",
            "control": names[0] if over else None, "median_s": time_s, "low_s": 0.999 * time_s,
            "high_s": 1.001 * time_s, "blocks_s": [tile * time_s for tile in TILES],
            "ratio": over, "ratio_low": over and over - 1e-3, "ratio_high": over and over + 1e-3,
            "verdict": "undecided" if over else "control", "samples": 60, "note": None,
        })
    hand_over(pd.DataFrame(rows), floor * NTH, warnings)

"""


@pytest.fixture
def script(tmp_path):
    def write(body, name="mine.py"):
        file = tmp_path / name
        file.write_text(TOLD + body)
        return file

    return write


@pytest.fixture
def run(capfd):
    """Run a command in this process: `run("replicate", ...) -> (status, stdout, stderr)`."""

    def call(*arguments):
        with pytest.raises(SystemExit) as end:
            cli.main(["replicate", *(str(argument) for argument in arguments)])
        return end.value.code, *capfd.readouterr()

    return call


def test_comparisons_of_all_processes_become_one_each(script):
    file = script('compare(1.010, warnings=["Hot."])\ncompare(1.5, ("a", "b"), op="mul")')
    numbers_told = []
    found = replicas.replicate(file, processes=3, tell=numbers_told.append)
    assert numbers_told == [1, 2, 3]
    assert len(set(file.with_suffix(".log").read_text().split())) == 3  # all fresh
    first, second = found
    fused = first["rows"][1]
    assert fused["run_ratios"] == pytest.approx([1.011, 1.012, 1.013])
    assert (fused["runs"], fused["verdict"]) == (3, "slower")
    assert first["noise_floor"] == pytest.approx(0.006) and first["warnings"] == ["Hot."]
    assert [row["variant"] for row in second["rows"]] == ["a", "b"]


def test_arguments_reach_the_script_and_the_folder_stays(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = script("compare(float(sys.argv[1]), (sys.argv[2], os.getcwd()))")
    (found,) = replicas.replicate(file, ["2.0", "--x"], processes=1)
    assert [row["variant"] for row in found["rows"]] == ["--x", str(tmp_path)]
    assert found["rows"][1]["ratio"] == 2.001 and "runs" not in found["rows"][1]


def test_only_the_first_process_is_heard(script):
    heard = []
    file = script('compare(1.5)\nprint("process", NTH)\nprint("oh", file=sys.stderr)')
    replicas.replicate(file, processes=2, heard=heard.append)
    assert sorted(heard) == ["oh", "process 1"]


def test_a_script_that_is_not_there_is_bad_usage(tmp_path):
    for missing in (tmp_path / "none.py", tmp_path):
        with pytest.raises(BadParameter, match=f"There is no script {missing}"):
            replicas.replicate(missing, processes=2)
    with pytest.raises(BadParameter, match="0 processes measure nothing"):
        replicas.replicate(Path(__file__), processes=0)


def test_a_script_that_fails_shows_its_last_lines(script):
    file = script('compare(1.5)\nprint("before")\nif NTH == 2:\n    raise KeyError("lost")')
    with pytest.raises(MeasurementError) as caught:
        replicas.replicate(file, processes=3)
    assert str(caught.value) == f"{file} in process 2 of 3 failed. It left with status 1."
    assert caught.value.output.splitlines()[0] == "before"
    assert caught.value.output.endswith("KeyError: 'lost'")
    assert len(file.with_suffix(".log").read_text().split()) == 2  # none is begun after it


def test_a_script_that_crashes_or_hangs_is_one_sentence(script, tmp_path, time_is_up):
    crashing = script("import signal\nos.kill(os.getpid(), signal.SIGSEGV)", "crashing.py")
    with pytest.raises(MeasurementError, match=r"process 1 of 2 failed. It crashed \(SIGSEGV\)"):
        replicas.replicate(crashing, processes=2)
    asleep = tmp_path / "asleep"
    body = f'print("asleep")\nopen({str(asleep)!r}, "w").close()\nimport time\ntime.sleep(600)'
    hanging = script(body, "hanging.py")
    time_is_up(asleep.exists)
    with pytest.raises(MeasurementError, match="its time limit, and was ended") as caught:
        replicas.replicate(hanging, processes=2, timeout_s=3)
    assert caught.value.output == "asleep"


def test_a_script_that_never_compares_is_told_so_after_one_process(script):
    file = script('print("nothing")')
    with pytest.raises(MeasurementError, match=r"mine\.py never called compare, so there"):
        replicas.replicate(file, processes=5)
    assert len(file.with_suffix(".log").read_text().split()) == 1


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ("if NTH == 1: compare(1.5)", "process 2 of 3 made 1 comparison, and the first made 2"),
        ("if NTH < 3: compare(1.5)", "process 3 of 3 made 1 comparison, and the first made 2"),
        ("if NTH == 3: compare(1.5)", "process 3 of 3 made 2 comparisons, and the first made 1"),
        ("compare(1.5, ('a', f'b{NTH}'))", "In comparison 2 .* variants 'a', 'b2', .* 'a', 'b1'"),
        ("compare(1.5, op=f'op{NTH}')", "In comparison 2 .* operation 'op2', .* had 'op1'"),
    ],
)
def test_processes_that_compare_other_things_are_refused(script, body, match):
    with pytest.raises(MeasurementError, match=match):
        replicas.replicate(script(f"compare(1.2)\n{body}"), processes=3)


def test_two_measurements_at_once_are_refused(script):
    with isolation.only_recorder(), pytest.raises(Busy):
        replicas.replicate(script("compare(1.5)"), processes=1)


def test_the_command_prints_what_was_merged(run, script):
    file = script('compare(1.010, warnings=["Hot."])\nprint("noise of mine")')
    status, out, err = run(file, "-n", 3)
    assert status == 0
    assert out.startswith(f"{file}\n3 fresh processes; intervals are the envelope of theirs")
    assert "=== add timing, gpu_warm" in out and "1.012× [1.010, 1.014] of plain, slower" in out
    assert "each process: fused 1.011×, 1.012×, 1.013×" in out and "warning: Hot." in out
    assert "noise of mine" not in out and err.count("noise of mine") == 1
    assert "[3/3]" in err and f"{file}: process 3 of 3 is done" in err


def test_six_processes_are_told_apart_from_an_envelope(run, script):
    out = run(script("compare(1.010)"), "-n", 6)[1]
    assert "6 fresh processes; intervals are those of the processes' medians" in out


def test_json_and_csv_have_every_row(run, script):
    file = script('compare(1.010)\ncompare(1.5, ("a", "b"))')
    told = json.loads(run(file, "-n", 2, "--format", "json")[1])
    assert (told["script"], told["processes"]) == (str(file), 2)
    assert [len(each["rows"]) for each in told["comparisons"]] == [2, 2]
    file.with_suffix(".log").unlink()
    rows = list(csv.DictReader(io.StringIO(run(file, "-n", 2, "--format", "csv")[1])))
    assert [(row["comparison"], row["variant"]) for row in rows] == [
        ("1", "plain"), ("1", "fused"), ("2", "a"), ("2", "b"),
    ]  # fmt: skip
    assert json.loads(rows[3]["run_ratios"]) == pytest.approx([1.501, 1.502])


def test_arguments_after_two_dashes_are_the_scripts(run, script):
    out = run(script('compare(1.5, ("a", sys.argv[1] + sys.argv[2]))'), "-n", 1, "--", "-n", "7")[1]
    assert "-n7" in out and "\none fresh process\n" in out


def test_failures_leave_with_a_status_and_the_last_words(run, script, tmp_path):
    assert run(tmp_path / "none.py")[0] == 2
    status, out, err = run(script('raise KeyError("lost")'), "-n", 2)
    assert status == 1 and out == "" and "    KeyError: 'lost'" in err
    assert run(script("compare(1.5)"), "-n", 0)[0] == 2
    assert run(script("compare(1.5)"), "-n", "many")[0] == 2


def test_ctrl_c_ends_the_script_and_its_children(tmp_path):
    pids = tmp_path / "pids"
    script = tmp_path / "mine.py"
    script.write_text(
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\ntime.sleep(600)\n"
    )
    command = subprocess.Popen(
        [sys.executable, "-m", "anatomy", "replicate", str(script)],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ,
        text=True,
    )
    mine, child = numbers(pids)
    time.sleep(0.2)
    command.send_signal(signal.SIGINT)
    command.communicate(timeout=120)
    assert command.returncode == 130 and gone(mine) and gone(child)


def test_a_script_with_compare_itself(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text(
        "import torch\nfrom anatomy import compare\nx = torch.randn(64, 64)\n"
        "found = compare({'sum': x.sum, 'twice': lambda: (x.sum() + x.sum()) / 2}, device='cpu',\n"
        "    quantity='gpu_warm', settle_cap_s=0, budget_s=0.3, profile=False, op='sum')\n"
    )
    (found,) = replicas.replicate(script, processes=2)
    assert [row["variant"] for row in found["rows"]] == ["sum", "twice", "sum (again)"]
    for row in found["rows"]:
        assert row["runs"] == 2 and sum(row["run_blocks"]) == len(row["blocks_s"])
    assert found["rows"][1]["verdict"] in ("slower", "undecided")


def test_a_thread_that_the_script_leaves_is_not_waited_for(script):
    left = "import threading, time\nthreading.Thread(target=time.sleep, args=[600]).start()\n"
    (found,) = replicas.replicate(script(left + "compare(1.1)"), processes=1, timeout_s=300)
    assert found["rows"]
    with pytest.raises(MeasurementError, match="left with status 1"):
        replicas.replicate(script(left + "1 / 0"), processes=1, timeout_s=300)


def test_a_thread_that_is_still_to_compare_is_waited_for(script):
    later = "import threading, time\ndef run():\n    time.sleep(0.3)\n    compare(1.1)\n"
    later += "threading.Thread(target=run).start()\n"
    assert len(replicas.replicate(script(later), processes=1, timeout_s=300)) == 1
