"""Runs tests in a copy of the checkout, each time in a fork of a process that has torch already.

Started as `python -m tests.mutants.worker` in the copy; reads requests and writes answers, a line
of JSON each. A fork imports the package anew, with whatever stands in the copy's files by then.
"""

import contextlib
import gc
import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from functools import _lru_cache_wrapper
from pathlib import Path

import pytest

HEAVY = ("torch", "numpy", "pandas", "hypothesis", "altair", "rich", "typer", "coverage")
# A test ends, and its mutant is found, once it takes so many times its processor time, and a while.
SLOWER, SPARE_S = 10, 20
LARGEST = 16 << 30  # bytes of memory; a mutant may well ask for more


class Watched:
    """A pytest plugin: which tests run, what each costs, and what it reaches, if that is asked."""

    def __init__(self, wanted: dict[str, float] | None, known: list[str], counting=None):
        self.wanted, self.known, self.counting = wanted, set(known), counting
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.errors = False

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        """Keep the tests that are wanted, in their order; one that no list knows is run as well:
        its parameters are the mutant's."""
        if self.wanted is not None:
            place = {name: at for at, name in enumerate(self.wanted)}
            items[:] = [i for i in items if i.nodeid in place or i.nodeid not in self.known]
            items.sort(key=lambda item: place.get(item.nodeid, len(place)))

    def reaching(self, context: str) -> None:
        """What is reached from now on, in this process and in those it starts, counts for this."""
        os.environ["MUTANTS_CONTEXT"] = context
        if self.counting:
            self.counting.switch_context(context)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        if self.counting:  # or only the first who asks would reach what is remembered
            for each in gc.get_objects():
                if isinstance(each, _lru_cache_wrapper) and "anatomy" in str(each.__module__):
                    each.cache_clear()
        self.reaching(item.nodeid)
        began = os.times()
        if self.wanted is not None:  # a loop without end is not to spend what all tests may
            most = SLOWER * self.wanted.get(item.nodeid, 1) + SPARE_S
            limit = int(began.user + began.system + most)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = sum(os.times()[:4]) - sum(began[:4])
            self.reaching("")

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        """What is made for many tests is reached by all of the file."""
        if fixturedef.scope == "function":
            return (yield)
        before = os.environ.get("MUTANTS_CONTEXT", "")
        self.reaching("file")
        try:
            return (yield)
        finally:
            self.reaching(before)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report):
        self.errors |= report.failed


def run(asked: dict, answer: Path) -> None:
    """Run tests in this process and write what came of it."""
    counting = None
    if asked.get("coverage"):
        import coverage

        os.environ["COVERAGE_PROCESS_START"] = asked["coverage"]
        counting = coverage.Coverage(config_file=asked["coverage"])
        counting.start()
    watched = Watched(asked.get("tests"), asked.get("known", []), counting)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *asked["options"]]
    status = pytest.main([*options, *asked["files"]], plugins=[watched])
    if counting:
        counting.stop()
        counting.save()
    lived = status in (0, 5) and not watched.errors
    told = {"lived": lived, "failed": watched.failed, "seconds": watched.seconds}
    answer.write_text(json.dumps(told))


def fork(asked: dict) -> dict:
    """What came of a request: `lived`, or `timeout`, or the tests that failed."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        answer, log = Path(folder, "answer"), Path(folder, "log")
        child = os.fork()
        if not child:
            try:
                os.setsid()
                os.environ["TMPDIR"] = folder
                tempfile.tempdir = None
                file = os.open(log, os.O_CREAT | os.O_WRONLY)
                for descriptor in (1, 2):
                    os.dup2(file, descriptor)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                resource.setrlimit(resource.RLIMIT_DATA, (LARGEST, LARGEST))
                run(asked, answer)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()  # what pytest said is the log
                os._exit(0)
        status = waited(child, asked["wall_s"])
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what its tests left
        late = status is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU)
        came = {"lived": False, "timeout": late, "failed": [], "seconds": {}}
        came["log"] = f"{log.read_text(errors='replace')[-3000:]}\nIts wait status: {status}."
        return came | (json.loads(answer.read_text()) if answer.exists() else {})


def waited(child: int, seconds: float) -> int | None:
    """The status of a process; None if it took too long and was ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def main() -> None:
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="")
    for name in HEAVY:
        importlib.import_module(name)
    gc.freeze()
    for line in sys.stdin:
        print(json.dumps(fork(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
