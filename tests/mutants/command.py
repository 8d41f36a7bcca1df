"""`python3 make.py mutants`: whether the tests would notice, if a line of the package were wrong.

    make.py mutants                           60 mutants of each room of ROOMS
    make.py mutants -- judge --count 200      of one room; a file, or FILE:LINE, works as well
    make.py mutants -- --count 0 --jobs 16    all there are

Puts one-line mutants into copies of the checkout, one at a time, and runs the tests that reach the
line, cheapest first, until one fails. Says what was found by room, and each mutant that lived. The
exit status is 1 below 95 %. mutmut and cosmic-ray do not serve: mutmut puts a trampoline in the
place of each function, which the tests of code hashes see, and leaves out the constants of modules,
which matter most here; cosmic-ray edits the checkout itself, and runs all tests for every mutant.
"""

import argparse
import contextlib
import itertools
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.mutants import reach
from tests.mutants.mutations import Mutant, mutants
from tests.mutants.reach import CHECKOUT, Reach

ROOMS = ("measure", "judge", "record", "claims")
LEAST = 0.95  # share found, below which the tests are too weak
LIVED = ("lived", "unreached")
SLOW_S = 20  # a slower test is asked only about a line that none quicker reaches
COPIED = ("anatomy", "docs", "hooks", "overrides", "recordings", "snippets", "tests")  # and files
EQUIVALENT = Path(__file__).with_name("equivalent.toml")


def main() -> int:
    """Do what the command line asks for. Returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", default=ROOMS, metavar="ROOM|FILE|FILE:LINE")
    parser.add_argument("--count", type=int, default=60, help="mutants of each; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--tests", nargs="*", default=(), help="ask only these folders or files")
    parser.add_argument("--all", action="store_true", help="say who finds each that is found")
    asked = parser.parse_args()
    try:
        chosen = {what: sample(what, asked.count, asked.seed) for what in asked.what}
    except FileNotFoundError as error:
        parser.error(f"{error.filename} is no file of the package, and no room of it.")
    print(f"seed {asked.seed}, {sum(map(len, chosen.values()))} mutants, {asked.jobs} jobs")
    with copies(asked.jobs) as each:
        known = learn(reach.test_files(asked.tests), each)
        return report(chosen, known, try_all(chosen, known, each, asked.all))


def files(what: str) -> list[str]:
    """The files of a room, or the one that is named."""
    folder = CHECKOUT / "anatomy" / what
    found = sorted(folder.rglob("*.py")) if folder.is_dir() else [CHECKOUT / what]
    return [path.resolve().relative_to(CHECKOUT).as_posix() for path in found]


def sample(what: str, count: int, seed: int) -> list[Mutant]:
    """Mutants of a room or file: of lines drawn at random, of each line one before any has two."""
    name, _, line = what.partition(":")
    by_line: dict = defaultdict(list)
    texts = {file: (CHECKOUT / file).read_text(encoding="utf-8") for file in files(name)}
    same = {(each["file"], each["from"], each["to"]) for each in equivalent()}
    for file, text in texts.items():
        for mutant in mutants(file, text):
            wanted = not line or mutant.line == int(line)
            if wanted and (file, mutant.was, mutant.now) not in same:
                by_line[file, mutant.line].append(mutant)
    random_ = random.Random(f"{seed} {name}")

    def drawn() -> Iterator[Mutant]:
        lines = list(by_line.values())
        for each in lines:
            random_.shuffle(each)
        while any(lines):
            random_.shuffle(lines)
            yield from [each.pop() for each in lines if each]

    programs = (mutant for mutant in drawn() if mutant.is_program(texts[mutant.file]))
    return list(itertools.islice(programs, count or None))


def equivalent() -> list[dict[str, str]]:
    """Mutants that no test can find: what they do is the same."""
    return tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutant", [])


class Copy:
    """A copy of the checkout, and the process that runs tests in it."""

    def __init__(self, folder: Path):
        self.folder = folder / "checkout"
        for name in COPIED:
            shutil.copytree(CHECKOUT / name, self.folder / name)
        for path in CHECKOUT.iterdir():
            if path.is_file() and path.name != ".git":
                shutil.copy2(path, self.folder)
        (self.folder / "sitecustomize.py").write_text(  # starts it in processes of tests as well
            "import os\nif 'COVERAGE_PROCESS_START' in os.environ:\n"
            "    import coverage\n    coverage.process_startup()\n"
        )
        path = [str(self.folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        own = {"PYTHONPATH": os.pathsep.join(path), "PYTHONDONTWRITEBYTECODE": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.mutants.worker"],
            cwd=self.folder,
            env={**os.environ, **own},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, wall_s: float, **what) -> dict:
        """What came of running tests; see `worker.run`."""
        shutil.rmtree(self.folder / ".cache", ignore_errors=True)
        what = {"options": [], "wall_s": wall_s} | what
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit("A process that runs tests has died; see above.")
        return json.loads(line)

    @contextlib.contextmanager
    def edited(self, texts: dict[str, str]) -> Iterator[None]:
        """Other texts in some files, for a while."""
        before = {name: (self.folder / name).read_bytes() for name in texts}
        try:
            for name, text in texts.items():
                (self.folder / name).write_text(text, encoding="utf-8")
            yield
        finally:
            for name, was in before.items():
                (self.folder / name).write_bytes(was)


@contextlib.contextmanager
def copies(count: int) -> Iterator[queue.Queue]:
    """As many copies as there are jobs."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        each: queue.Queue = queue.Queue()
        made = [Copy(Path(folder, str(at))) for at in range(count)]
        for copy in made:
            each.put(copy)
        try:
            yield each
        finally:
            for copy in made:
                copy.process.kill()
                copy.process.communicate()  # and close its pipes


def side_by_side(do: Callable, tasks: Iterable, each: queue.Queue) -> Iterator[tuple]:
    """(task, what came of it), each task in a copy of its own."""

    def one(task):
        copy = each.get()
        try:
            return task, do(copy, task)
        finally:
            each.put(copy)

    with ThreadPoolExecutor(each.qsize()) as pool:
        for done in as_completed([pool.submit(one, task) for task in tasks]):
            yield done.result()


def learn(tests: list[str], each: queue.Queue) -> Reach:
    """What every test file reaches; run anew where the package or the file is another."""
    reach.KEPT.mkdir(parents=True, exist_ok=True)
    kept = {file: reach.kept(file) for file in tests}
    missing = [file for file in tests if not kept[file].exists()]
    if missing:
        print(
            f"{len(missing)} of {len(tests)} test files are run to see what they reach", flush=True
        )
    for file, found in side_by_side(learn_one, missing, each):
        kept[file].write_text(json.dumps(found))
        seconds, failed = sum(found["seconds"].values()), len(found["failed"])
        print(f"  {file}: {seconds:.0f} s, {failed} compare sources or can't run", flush=True)
    return Reach({file: json.loads(path.read_text()) for file, path in kept.items()})


def learn_one(copy: Copy, file: str) -> dict:
    package = sorted((copy.folder / "anatomy").rglob("*.py"))
    texts = {str(path): reach.harmless(path.read_text(encoding="utf-8")) for path in package}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, copy.edited(texts):
        settings, data = Path(folder, "settings"), Path(folder, "data")
        settings.write_text(reach.SETTINGS.format(copy=copy.folder, data=data))
        came = copy.ask(3600, files=[file], coverage=str(settings))
        if not came["seconds"] and not came["lived"]:
            sys.exit(f"{file} does not run, though no mutant is in it:\n{came['log']}")
        return reach.learnt(data, copy.folder, came)


def try_all(chosen: dict, known: Reach, each: queue.Queue, aloud: bool) -> dict[Mutant, str]:
    """What became of each mutant: found by a test, timeout, lived or unreached."""
    tasks = dict.fromkeys(mutant for some in chosen.values() for mutant in some)
    became = {}
    for mutant, end in side_by_side(lambda c, m: try_one(c, m, known), tasks, each):
        became[mutant] = end
        if aloud or end in LIVED:
            print(f"{end}: {mutant}", flush=True)
    return became


def try_one(copy: Copy, mutant: Mutant, known: Reach) -> str:
    """Run the tests that reach a mutant: those of the file's own tests first, then all others."""
    tests = known.tests(mutant.file, mutant.line)
    tests = {name for name in tests if known.seconds[name] <= SLOW_S} or tests
    by_file: dict = defaultdict(list)
    for name in sorted(tests, key=known.seconds.get):
        by_file[name.partition("::")[0]].append(name)
    cost = {file: sum(known.seconds[name] for name in some) for file, some in by_file.items()}
    own = f"test_{Path(mutant.file).stem}.py"
    first = [file for file in by_file if Path(file).name == own]
    rest = sorted(set(by_file) - set(first), key=cost.get)
    text = (copy.folder / mutant.file).read_text(encoding="utf-8")
    with copy.edited({mutant.file: mutant.within(text)}):
        for some in filter(None, (first, rest)):
            came = copy.ask(
                300 + 20 * sum(cost[file] for file in some),  # others may use this machine
                files=some,
                tests={name: known.seconds[name] for file in some for name in by_file[file]},
                known=[name for file in some for name in known.files[file]["seconds"]],
                options=["-x"],
            )
            if not came["lived"]:
                return "timeout" if came["timeout"] else f"found by {came['failed'][:1]}"
    return "lived" if tests else "unreached"


def report(chosen: dict, known: Reach, became: dict[Mutant, str]) -> int:
    """Say by room what was found. Returns the exit status."""
    compare = len(known.failed)
    print(f"{len(known.seconds) - compare} tests of behaviour; {compare} others left out")
    print(f"\n{'':24}  tried  found  of them by time  lived  share")
    ends = {what: [became[mutant] for mutant in some] for what, some in chosen.items()}
    if len(ends) > 1:
        ends["all"] = [end for some in ends.values() for end in some]
    shares = []
    for what, some in ends.items():
        late, lived = some.count("timeout"), sum(end in LIVED for end in some)
        found = len(some) - lived
        shares.append(found / len(some) if some else 1.0)
        print(f"{what:24}{len(some):7}{found:7}{late:17}{lived:7}{shares[-1]:7.1%}")
    lived = sorted((m for m in became if became[m] in LIVED), key=str)
    print("\n".join(["", *(f"{became[m]}: {m}" for m in lived)]))
    return int(min(shares) < LEAST)


if __name__ == "__main__":
    sys.exit(main())
