"""What several test files need: the toy package, and a place of their own to measure in."""

import gc
import math
import os
import signal
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

# At toy size a second thread waits for the first and spends a core on it; this is read by torch
# when it is imported, here and in every process that a test starts.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# What a shell starts in the background ignores them, and so would all that tests start and end.
signal.signal(signal.SIGINT, signal.default_int_handler)
for each in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(each, signal.SIG_DFL)
# Files that take longest, which two processes are to begin with.
FIRST = ("record/test_experiments", "browser/test_browser", "measure/method/test_edits")
FIRST += ("test_contributing", "chapters/harnesses/test_harnesses", "chapters/ladder/test_fp8")
FIRST += ("measure/method/test_method", "site/test_hooks", "test_house", "test_wheel")
FIRST += ("browser/test_week", "record/processes/test_ranks", "site/test_preview")
FIRST += ("record/test_recorder", "site/test_editions", "browser/test_reflection")
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
MANY = 1000  # tests: some of them compile
LONG_S = 0.2  # what a test that takes as long has loaded is worth putting aside


def pytest_configure(config):
    """The package does not change: its files are read once a process, and who edits them does so on
    a copy."""
    from anatomy.record import signatures

    kept = ExitStack()
    kept.enter_context(signatures.unchanging())
    config.add_cleanup(kept.close)


def pytest_collection_modifyitems(items):
    """Begin with the files that take longest; one of them at the end would be waited for."""

    def place(item) -> int:
        file = item.location[0].removeprefix("tests/").removesuffix(".py")
        return FIRST.index(file) if file in FIRST else len(FIRST)

    items.sort(key=place)


def pytest_collection_finish(session):
    """What is there by now stays, and with it the compiler that many tests use: who looks for what
    is to be freed, as each cell of a grid does, need not look there, which was half of all time."""
    if len(session.items) > MANY:
        import torch

        # With every graph it flushes the caches of the CPU to time the graph's guards, for its log
        # alone.
        torch._C._dynamo.guards.profile_guard_manager = lambda *_: 0.0
        torch.compile(torch.nn.Linear(1, 1), backend="aot_eager")(torch.ones(1)).backward()
        torch.compiler.reset()
    gc.collect()
    gc.freeze()


def pytest_runtest_logreport(report):
    """Nor what a long test has loaded."""
    if report.duration > LONG_S:
        gc.collect()
        gc.freeze()


@pytest.fixture(autouse=True)
def as_it_was():
    """What runs in a test as if the process were its own, such as torchrun, may change them."""
    environment, folder = dict(os.environ), os.getcwd()
    handlers = {each: signal.getsignal(each) for each in ENDING}
    yield
    os.chdir(folder)
    for each, handler in handlers.items():
        if signal.getsignal(each) is not handler:
            signal.signal(each, handler)
    for name in {*environment, *os.environ} - {"PYTEST_CURRENT_TEST"}:
        if name not in environment:
            del os.environ[name]
        elif os.environ.get(name) != environment[name]:
            os.environ[name] = environment[name]


@pytest.fixture(scope="session")
def toylab() -> Path:
    """Folder of the package of toy experiments."""
    return Path(__file__).parent / "toylab"


@pytest.fixture
def own_lock(tmp_path, monkeypatch) -> Path:
    """A temporary folder for this test alone: its measurements can't meet another process's."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("ANATOMY_LOCKS", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


@pytest.fixture(scope="session", autouse=True)
def charts_are_held_against_their_schema():
    """As no build does, for the time it takes."""
    from anatomy.figures.charts import svg

    svg.VALIDATED = True


@pytest.fixture
def time_is_up(monkeypatch) -> Callable[[Callable[[], bool]], None]:
    """Lets the time limits of workers run out as soon as a condition holds, and not before: on a
    busy machine it takes a worker any time to come to the place where it hangs."""
    from anatomy.record.processes import isolation, nursery

    def when(condition: Callable[[], bool]) -> None:
        given_up = time.monotonic() + 300

        def monotonic() -> float:
            return math.inf if condition() or time.monotonic() > given_up else 0.0

        clock = SimpleNamespace(monotonic=monotonic, sleep=time.sleep, time=time.time)
        for module in (isolation, nursery):
            monkeypatch.setattr(module, "time", clock)

    return when


@pytest.fixture
def kernels_on_cpu(monkeypatch):
    """Kernels of ours run on the CPU, as if it had a GPU."""
    from anatomy.parts import cuda_kernels
    from tests.parts import cuda_on_cpu

    monkeypatch.setattr(cuda_kernels, "kernel", cuda_on_cpu.kernel)
    monkeypatch.setattr(cuda_kernels, "why_not", lambda where: None)


@pytest.fixture
def in_this_process(monkeypatch):
    """Experiments run without a process of their own: what the recorder makes of them is asked."""
    from anatomy.record.processes import isolation, worker

    def ask(spec, **how):
        with warnings.catch_warnings(action="ignore"):  # of the toys' columns
            return worker.measure(spec | {"spawned": time.time()})

    monkeypatch.setattr(isolation, "ask", ask)


@pytest.fixture(scope="session")
def _warm():
    from tests.fakes.warm import Warm

    begun = Warm()
    yield begun
    begun.end()


@pytest.fixture
def warm(_warm, monkeypatch):
    """Workers, and scripts of a reader, are forked off a process that has imported what they need,
    which takes a tenth of a start from nothing; `isolation`'s own tests begin from nothing."""
    from anatomy.record.processes import isolation

    monkeypatch.setattr(isolation, "_Launched", _warm.launch)
    monkeypatch.setattr(isolation, "nursery", lambda: _warm)


@pytest.fixture(scope="session", autouse=True)
def commands_are_built_once():
    """For each package, whose commands follow from its sources."""
    from typer import main

    from anatomy.cli import app

    app.build, main.get_command = cache(app.build), cache(main.get_command)
