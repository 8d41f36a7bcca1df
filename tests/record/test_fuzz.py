"""Recordings that a generator damaged, through every way in: each is refused with one sentence that
names the file, or is as good as any. Never a traceback, never a wait.

The damage is the same in every run; FUZZ_EXAMPLES=5000 in the environment tries more of it.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from copy import deepcopy
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anatomy.cli import recordings as commands
from anatomy.cli.output import say_data, tidy
from anatomy.record import loading, recording, signatures
from anatomy.record.provenance.canonical import content_sha
from anatomy.table.errors import RecordingError
from tests.fakes import synthetic
from tests.fakes.sites import CHECKOUT, Project, block
from tests.fakes.toy_recording import DEFAULTS, made

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", 150))
FUZZ = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,  # the machine may be busy; `at_once` bounds a wait
    suppress_health_check=list(HealthCheck),
)
FUZZED_BUILDS = settings(FUZZ, max_examples=3)
LONGEST_WAIT_S = 120
KILLS = 20 if os.environ.get("THOROUGH") else 8
NAMES = ("contiguity.bench", "limits.ceilings", "tensor_layout.report")
EXPERIMENT = NAMES[0]


@cache
def content(name: str) -> str:
    """The text of a small good recording: of a comparison its first rows, up to `again`."""
    file = synthetic.shared() / f"toy-gpu/{name}/default.json"
    data = json.loads(loading.published(file))
    last = next((i for i, row in enumerate(data["rows"]) if row.get("role") == "again"), 3)
    data["rows"] = data["rows"][: last + 1]
    return json.dumps(data | {"content_sha": content_sha(data)})


def places(value, path=()):
    """The path to every value in a recording, but of each list of numbers only the first two."""
    yield path
    if isinstance(value, dict):
        for name in value:
            yield from places(value[name], (*path, name))
    elif isinstance(value, list):
        for index in range(min(len(value), 2 if path[-1:] != ("rows",) else 9)):
            yield from places(value[index], (*path, index))


ODD = st.one_of(
    st.sampled_from([None, True, False, 0, -1, 1, "", "\x1b[2J", "=1", "default", [], {}]),
    st.sampled_from([{"$text": []}, {"$text": "x"}, [[]], [None], ["a", 1], {"a": None}]),
    st.sampled_from([1e-300, -1e-300, 1e99, 1e308, 10**30, 10**400, float("inf"), float("nan")]),
    st.sampled_from([5e-324, 1e-100, "nan", "2026-13-01", "toy-gpu", "control", "again", "a\nb"]),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
)


@st.composite
def damaged(draw) -> tuple[str, bytes]:
    """An experiment, and the bytes of its recording with up to three things changed."""
    name = draw(st.sampled_from(NAMES))
    if draw(st.integers(0, 4)) == 0:
        return name, _scratched(draw, content(name).encode())
    data = json.loads(content(name))
    for _ in range(draw(st.integers(1, 3))):
        *above, last = draw(st.sampled_from([path for path in places(data) if path][::-1]))
        holder = data
        for step in above:
            holder = holder[step]
        match draw(st.sampled_from(["value", "value", "value", "lost", "renamed", "deep", "more"])):
            case "value":
                holder[last] = deepcopy(draw(ODD))
            case "lost":
                del holder[last]
            case "renamed" if isinstance(holder, dict):
                holder[draw(st.text(max_size=4))] = holder.pop(last)
            case "deep":
                for _ in range(draw(st.sampled_from([1, 2, 40]))):
                    holder[last] = [holder[last]]
            case "more" if isinstance(holder, list):
                holder += [holder[last]] * draw(st.integers(1, 20))
    if isinstance(data, dict) and draw(st.integers(0, 5)):
        if "columns" in data and isinstance(rows := data.get("rows"), list) and draw(st.booleans()):
            data["columns"] = sorted(
                {name for row in rows if isinstance(row, dict) for name in row}
            )
        with contextlib.suppress(ValueError, TypeError):
            data["content_sha"] = content_sha(data)
    return name, json.dumps(data).encode()


def _scratched(draw, text: bytes) -> bytes:
    at = draw(st.integers(0, len(text) - 1))
    new = draw(st.binary(max_size=6))
    match draw(st.sampled_from(["cut", "put", "over", "twice"])):
        case "cut":
            return text[:at] + new
        case "put":
            return text[:at] + new + text[at:]
        case "over":
            return text[:at] + new + text[at + len(new) :]
        case _:
            return text[:at] + text[at : at + 50] + text[at:]


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz") / "recordings"
    for name in NAMES:
        (folder / f"toy-gpu/{name}").mkdir(parents=True)
        (folder / f"toy-gpu/{name}/default.json").write_text(content(name))
    return folder


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """End what waits."""

    def late(*_):
        raise AssertionError(f"it took more than {LONGEST_WAIT_S} s")

    before = signal.signal(signal.SIGALRM, late)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def outcome(call, *given) -> str:
    """What the refusal says, or nothing; every other error is a fault."""
    signal.alarm(LONGEST_WAIT_S)
    try:
        call(*given)
    except RecordingError as error:
        return str(error)
    finally:
        signal.alarm(0)
    return ""


@FUZZ
@given(damaged())
def test_damage_is_refused_by_name_or_does_not_matter(root, monkeypatch, capfd, what):
    name, raw = what
    place = f"toy-gpu/{name}/default.json"
    file = root / place
    before = file.read_bytes()
    monkeypatch.setenv("ANATOMY_RECORDINGS", str(root))
    monkeypatch.setenv("ANATOMY_MACHINE", "toy-gpu")
    declared = signatures.signature(name)
    file.write_bytes(raw)

    def exported():
        found = [recording.load(file)]
        say_data(tidy(found), "csv")
        say_data(tidy(found), "json")

    try:
        loaded = outcome(recording.load, file)
        assert outcome(loading.published, file) == loaded
        said = [loaded, outcome(exported)]
        if not loaded and recording.load(file).params == declared.bind():
            said += [
                outcome(commands._show, declared, {}, {"machine": None, "format": each})
                for each in ("text", "json", "csv")
            ]
    finally:
        file.write_bytes(before)
    assert all(each == "" or place in each for each in said), said
    assert not any("\n" in each or str(root) in each for each in said), said
    assert not loaded or "pytorch-gpu-anatomy record " in loaded
    assert "\x1b" not in capfd.readouterr().out


@FUZZED_BUILDS
@given(damaged())
def test_a_strict_build_names_the_file_or_passes(tmp_path_factory, what):
    name, raw = what
    folder = tmp_path_factory.mktemp("build")
    for each in NAMES:
        (folder / f"recordings/toy-gpu/{each}").mkdir(parents=True)
        (folder / f"recordings/toy-gpu/{each}/default.json").write_text(content(each))
    file = folder / f"recordings/toy-gpu/{name}/default.json"
    file.write_bytes(raw)
    wrong = outcome(loading.published, file)
    shown = block(f"from anatomy.page import show\nprint(show({EXPERIMENT!r}))")
    built = Project(folder, folder / "recordings").write(index=f"# T\n\n{shown}").build()
    assert "Traceback" not in built.said
    if wrong:
        assert built.status != 0 and wrong in built.said


SAVING = """
import sys
from anatomy.record import recording
from tests.fakes.toy_recording import DEFAULTS, made
print("begun", flush=True)
for seconds in range(1, 10**6):
    recording.save(made(seconds=seconds / 8), sys.argv[1], defaults=DEFAULTS)
"""


@pytest.mark.skipif(os.name != "posix", reason="kill -9")
def test_a_kill_at_any_moment_leaves_every_finished_recording_whole(tmp_path):
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    moments = random.Random(seed)
    kept = recording.save(made(params=DEFAULTS), tmp_path, defaults=DEFAULTS)
    for _ in range(KILLS):
        command = [sys.executable, "-c", SAVING, str(tmp_path)]
        with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE) as saving:
            assert saving.stdout.readline() == b"begun\n"
            time.sleep(moments.uniform(0, 0.2))
            saving.kill()
        assert kept in [each.path for each in recording.all_recordings(tmp_path)]
    for left in tmp_path.rglob(".*.tmp"):
        os.utime(left, (1, 1))
    recording.make_ready(tmp_path)
    assert {file.suffix for file in tmp_path.rglob("*") if file.is_file()} == {".json"}
    assert kept.is_file()
