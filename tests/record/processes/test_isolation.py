"""A worker may print, crash, hang or be killed: each is one sentence and costs nobody else."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from anatomy.record.processes import isolation
from anatomy.table.errors import Busy, MeasurementError, OutOfMemory

CHECKOUT = Path(__file__).resolve().parents[3]


def ask(toylab, name, *, timeout_s=300, **params):
    spec = {
        "experiment": name,
        "params": {"device": "cpu"} | params,
        "package": str(toylab),
        "allow_foreign": False,
    }
    return isolation.ask(spec, timeout_s=timeout_s)


def gone(pid: int, within_s: float = 60.0) -> bool:
    """Whether a process ends in time; one that nobody has reaped yet counts as ended."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


def numbers(file: Path, within_s: float = 120.0) -> list[int]:
    """The process numbers that `toy.hangs` writes down, once they are there."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if file.exists() and len(told := file.read_text().split()) == 2:
            return [int(pid) for pid in told]
        time.sleep(0.02)
    raise AssertionError("toy.hangs never started")


def test_what_an_experiment_prints_does_not_reach_its_result(toylab, capfd):
    found = ask(toylab, "toy.prints", lines=5000)
    assert [row["variant"] for row in found["rows"]][:2] == ["contiguous", "sliced"]
    assert found["method"]["start_s"] > 0
    assert capfd.readouterr() == ("", "")


def test_a_result_is_not_kept_waiting_by_what_its_process_would_do_at_its_end(toylab):
    assert ask(toylab, "toy.lingers", timeout_s=120)["rows"]


def test_a_crash_is_named_with_the_last_words(toylab):
    with pytest.raises(MeasurementError, match=r"crashed \(SIGSEGV\)") as caught:
        ask(toylab, "toy.crashes")
    assert caught.value.output == "last words"


def test_being_killed_is_taken_for_a_lack_of_memory(toylab):
    with pytest.raises(OutOfMemory, match="the host's memory runs out"):
        ask(toylab, "toy.is_killed")


def test_an_allocation_that_fails_has_the_status_of_memory(toylab):
    with pytest.raises(OutOfMemory, match=r"ran out of memory when it asked for 131072 TiB"):
        ask(toylab, "toy.is_greedy")


def test_a_bug_names_its_place_in_the_experiment(toylab):
    with pytest.raises(MeasurementError, match=r"ZeroDivisionError.*\(toy\.py:\d+\)") as caught:
        ask(toylab, "toy.has_a_bug")
    assert "Traceback" in caught.value.output


def written(file: Path, words: int) -> bool:
    """Whether a file has so many words by now."""
    return file.exists() and len(file.read_text().split()) == words


def test_a_time_limit_ends_the_worker_and_its_children(toylab, tmp_path, time_is_up):
    file = tmp_path / "pids"
    time_is_up(lambda: written(file, 2))
    with pytest.raises(isolation.TimeLimit, match="It ran for 5 s, its time limit"):
        ask(toylab, "toy.hangs", timeout_s=5, pids=str(file))
    assert all(gone(pid) for pid in numbers(file))


def test_no_worker_outlives_a_recorder_that_was_killed(toylab, tmp_path, own_lock):
    file = tmp_path / "pids"
    code = (
        "from pathlib import Path; from anatomy.record import recorder; "
        f"recorder.run('toy.hangs', {{'pids': {str(file)!r}}}, package=Path({str(toylab)!r}), "
        "timeout_s=100)"
    )
    recorder = subprocess.Popen([sys.executable, "-c", code], cwd=CHECKOUT)
    worker, child = numbers(file)
    recorder.send_signal(signal.SIGKILL)
    recorder.wait()
    assert gone(worker) and gone(child)


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        *(("diagnose", kind) for kind in ("SIGHUP", "SIGTERM", "SIGINT", "SIGQUIT", "SIGKILL")),
        ("replicate", "SIGKILL"),
    ],
)
def test_no_script_outlives_the_command_that_runs_it(own_lock, tmp_path, command, kind):
    file, script = tmp_path / "pids", tmp_path / "endless.py"
    script.write_text(
        "import os, signal, subprocess, sys, time\n"
        "for each in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):\n"
        "    signal.signal(each, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'while True: pass'])\n"
        f"open({str(file)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "while True: time.sleep(1)\n"
    )
    device = ["--device", "cpu"] if command == "diagnose" else []
    words = [sys.executable, "-m", "anatomy", command, str(script), *device]
    with subprocess.Popen(words, cwd=CHECKOUT, stderr=subprocess.PIPE, text=True) as reader:
        pids = numbers(file)
        reader.send_signal(getattr(signal, kind))
        said = reader.stderr.read()
    assert all(gone(pid) for pid in pids)
    assert "Traceback" not in said
    ended = {"SIGINT": (130, "Interrupted. "), "SIGTERM": (143, "Ended by SIGTERM. ")}
    ended["SIGHUP"] = (129, "Ended by SIGHUP. ")
    if kind in ended:
        status, words = ended[kind]
        assert reader.returncode == status and said.splitlines()[-1].startswith(words)


def test_a_script_may_wait_for_all_its_children(tmp_path):
    script = tmp_path / "waits.py"
    script.write_text(
        "import os, subprocess, sys\nassert sys.stdin.read() == ''\n"
        "subprocess.Popen([sys.executable, '-c', ''])\nos.wait()\n"
        "try:\n    os.wait()\nexcept ChildProcessError:\n    print('alone')\n"
    )
    heard = []
    with isolation.script_run(
        [str(script)], name="it", variable="NONE", timeout_s=300, heard=heard.append
    ):
        pass
    assert heard == ["alone"]


def scripted(tmp_path, text, **options):
    """What a script leaves in the file that it is told of, and what was heard of it."""
    script, heard = tmp_path / "script.py", []
    script.write_text(f"import os, sys\nfile = os.environ['FILE']\n{text}\n")
    how = {"name": "The script", "variable": "FILE", "heard": heard.append} | options
    with isolation.script_run([str(script), "-x"], **how) as file:
        return (file.read_text() if file.exists() else None), heard


def test_a_script_is_run_with_its_arguments_and_heard_line_by_line(tmp_path):
    text = (
        "print(sys.argv[1:], 'x' * 501)\nsys.stderr.write('two  \\n')\nopen(file, 'w').write('a')"
    )
    assert scripted(tmp_path, text) == ("a", [f"['-x'] {'x' * 501}", "two"])
    assert scripted(tmp_path, "", heard=None, timeout_s=300) == (None, [])


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files can't be listed here")
def test_a_script_that_has_ended_leaves_no_file_open(tmp_path):
    before = os.listdir("/proc/self/fd")
    scripted(tmp_path, "")
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_where_processes_have_no_groups_the_system_ends_the_whole_tree(tmp_path, monkeypatch):
    asked, begin = [], subprocess.Popen

    def taskkill(words, **how):
        asked.append(words)
        os.kill(int(words[-1]), signal.SIGKILL)

    def apart(words, **how):  # or a shell that is begun by mistake would end these tests
        assert words[0] == sys.executable and how["start_new_session"] is False
        return begin(words, **how | {"start_new_session": True})

    monkeypatch.setattr(isolation, "POSIX", False)
    monkeypatch.setattr(subprocess, "run", taskkill)
    monkeypatch.setattr(subprocess, "Popen", apart)
    text = "assert sys.stdin.read() == ''\nopen(file, 'w').write(str(os.getpid()))"
    assert int(scripted(tmp_path, text)[0]) and asked == [], "it had ended"
    with pytest.raises(isolation.TimeLimit):
        scripted(tmp_path, "import time\ntime.sleep(40)", timeout_s=1)
    ((*words, number),) = asked
    assert words == ["taskkill", "/F", "/T", "/PID"] and gone(int(number))


def test_where_all_is_ended_who_waits_leaves_and_nobody_begins(tmp_path):
    endless, began = "print(1, flush=True)\nimport time\ntime.sleep(40)", time.monotonic()
    try:
        for heard in (lambda line: isolation.end_all(), None):  # that ends the first, and stays
            with pytest.raises(KeyboardInterrupt):
                scripted(tmp_path, endless, heard=heard)
    finally:
        isolation._ending.clear()
    assert time.monotonic() - began < 35


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("sys.exit(3)", "The script failed. It left with status 3."),
        ("os.kill(os.getpid(), 15)", r"The script failed. It crashed \(SIGTERM\), and its process"),
    ],
)
def test_a_script_that_fails_is_named_with_its_last_fifteen_lines(tmp_path, end, said):
    lines = [f"{n} " + "x" * 600 for n in range(20)]
    with pytest.raises(MeasurementError, match=f"^{said}") as caught:
        scripted(tmp_path, f"print(*{lines!r}, sep='\\n', flush=True)\n{end}")
    assert caught.value.output.splitlines() == [line[:500] for line in lines[5:]]


@pytest.mark.parametrize(("program", "status"), [("true", 0), ("false", 1)])
def test_a_worker_that_ends_without_a_result_says_its_status(monkeypatch, program, status):
    monkeypatch.setattr(sys, "executable", shutil.which(program))
    with pytest.raises(MeasurementError, match=rf"ended with status {status} and left no result"):
        isolation.ask({}, timeout_s=300)


def test_a_worker_has_the_environment_that_it_is_given_and_finds_this_checkout(monkeypatch):
    asked = {}

    def run(words, *, env, **_):
        asked.update(env)
        raise OSError("enough")

    monkeypatch.setattr(subprocess, "Popen", run)
    monkeypatch.setenv("PYTHONPATH", "mine")
    with pytest.raises(OSError, match="enough"):
        isolation.ask({}, timeout_s=1, environment={"ANATOMY_RECORDINGS": "there"})
    assert asked["ANATOMY_RECORDINGS"] == "there" and asked["PATH"] == os.environ["PATH"]
    assert asked["PYTHONPATH"] == f"{CHECKOUT}{os.pathsep}mine"


def test_who_measures_is_written_down_for_this_user_alone_and_removed(own_lock):
    folder = own_lock / f"pytorch-gpu-anatomy-{os.getuid()}"
    with isolation.only_recorder():
        assert folder.stat().st_mode & 0o777 == 0o700
        told = json.loads((folder / "measuring.json").read_text())
        assert told["pid"] == os.getpid() and re.fullmatch(r"\d\d:\d\d:\d\d", told["since"])
        for content in ("{", "[]", "{}"):
            (folder / "measuring.json").write_text(content)
            with (
                pytest.raises(Busy, match=r"^Another process is measuring on this machine\. Two"),
                isolation.only_recorder(),
            ):
                pass
        (folder / "measuring.json").unlink()
    assert [file.name for file in folder.iterdir()] == ["measuring.lock"]


@pytest.mark.parametrize(("told", "name"), [({"USERNAME": "ada"}, "ada"), ({}, "user")])
def test_where_users_have_no_number_their_name_keeps_them_apart(own_lock, monkeypatch, told, name):
    monkeypatch.delattr(os, "getuid")
    monkeypatch.delenv("USERNAME", raising=False)
    for each in told.items():
        monkeypatch.setenv(*each)
    with isolation.only_recorder():
        assert (own_lock / f"pytorch-gpu-anatomy-{name}" / "measuring.json").is_file()


def test_a_full_disk_keeps_nobody_from_measuring(own_lock, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", refuse)
    with isolation.only_recorder():
        pass


def test_what_was_left_is_removed_after_a_minute_if_nobody_holds_it(own_lock):
    young, old, foreign = (own_lock / name for name in ("anatomy-1", "anatomy-2", "other-3"))
    for folder, age in ((young, 20), (old, 60.5), (foreign, 600)):
        folder.mkdir()
        (folder / "held").write_text("")
        os.utime(folder, (1, time.time() - age))
    with isolation.temporary_folder():
        assert young.exists() and foreign.exists() and not old.exists()


def test_two_recorders_at_once_are_refused_with_the_number_of_the_first(own_lock):
    code = (
        "import sys; from anatomy.record.processes import isolation\n"
        "with isolation.only_recorder(): print('in', flush=True); sys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], cwd=CHECKOUT, **pipes) as first:
        assert first.stdout.readline() == b"in\n"
        with (
            pytest.raises(Busy, match=rf"^Process {first.pid} has been measuring .* since \d\d:"),
            isolation.only_recorder(),
        ):
            pass
        first.stdin.close()
    with isolation.only_recorder():
        pass  # it is free again


def test_a_folder_for_temporary_files_of_ones_own_is_no_way_around_the_other(
    own_lock, tmp_path, monkeypatch
):
    with isolation.only_recorder():
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr(tempfile, "tempdir", None)
        with pytest.raises(Busy), isolation.only_recorder():
            pass
    monkeypatch.delenv("ANATOMY_LOCKS")
    monkeypatch.setattr(isolation, "LOCKS", str(tmp_path / "everybody"))
    with isolation.only_recorder():  # no such folder: the one for temporary files has to do
        assert list(tmp_path.glob("pytorch-gpu-anatomy-*"))


def test_what_a_killed_process_left_is_removed_by_the_next(own_lock):
    code = (
        "import sys; from anatomy.record.processes import isolation\n"
        "with isolation.temporary_folder() as folder: print(folder, flush=True); sys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], cwd=CHECKOUT, **pipes) as first:
        folder = Path(first.stdout.readline().strip())
        foreign = own_lock / "anatomy-of-somebody"
        foreign.mkdir()
        for each in (folder, foreign):
            os.utime(each, (1, 1))
        with isolation.temporary_folder():
            assert folder.exists(), "its process lives"
        first.kill()
        first.wait()
        os.utime(folder, (1, 1))
        with isolation.temporary_folder() as mine:
            assert not folder.exists() and foreign.exists()
        assert not Path(mine).exists()


@pytest.mark.parametrize(("place", "name"), [(Path, "mkdir"), (tempfile, "mkdtemp")])
def test_a_full_disk_is_said_before_anything_is_started(own_lock, monkeypatch, toylab, place, name):
    def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(place, name, refuse)
    said = r"temporary files can't be used: No space left on device\. Make room"
    with pytest.raises(MeasurementError, match=said), isolation.only_recorder():
        ask(toylab, "toy.fine")
