"""Build the site, or pass the tests, on a machine that has Python 3.11 or later and nothing else.

    python3 make.py site     build the site into site/
    python3 make.py test     lint, build the site from its recordings, and run every test
    python3 make.py check    what an edited page can break: lint, replay, prose, links, claims
    python3 make.py serve    show the site and follow what is edited
    python3 make.py method   whether the measuring room still does what its METHOD.json says
    python3 make.py mutants  whether the tests notice what is put wrong in the core, line by line

The first call makes a virtual environment in .venv and installs the pinned packages into it; later
calls find it there. What follows `--` goes to the step: `python3 make.py test -- -k units`.
Only the standard library is used here, and only syntax that an older Python can read as well, so
that it can say what it needs.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

OLDEST = (3, 11)
KNOWN = ("python3.13", "python3.12", "python3.11", "python3.14")
CHECKOUT = Path(__file__).resolve().parent
VENV = CHECKOUT / ".venv"
STAMP = VENV / "installed"
LOGS = CHECKOUT / ".cache" / "make"
SITE = CHECKOUT / "requirements.txt"
TEST = CHECKOUT / "requirements-test.txt"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
REPLAYED = LOGS / "site"
TAIL = 30  # lines of a step's log that are shown when it fails


def main() -> int:
    """Do what the command line asks for. Returns the exit status."""
    if sys.version_info < OLDEST:
        return newer_python()
    os.chdir(CHECKOUT)
    asked = parsed()
    for folder in (CHECKOUT, CHECKOUT / ".cache", LOGS, VENV, CHECKOUT / "site"):
        if folder.exists() and not os.access(folder, os.W_OK):
            sys.exit(
                f"{folder} can't be written to, and .venv, .cache and site belong in the checkout. "
                "Copy or clone it to a folder that you can write to, and run make.py there."
            )
    started = time.monotonic()
    status = STEPS[asked.what](asked.rest)
    said = "done" if status == 0 else f"failed with status {status}"
    print(f"{asked.what}: {said} after {time.monotonic() - started:.0f} s", file=sys.stderr)
    return status


def parsed() -> argparse.Namespace:
    """The command line; `rest` is what follows `--`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=STEPS)
    own, rest = sys.argv[1:], []
    if "--" in own:
        own, rest = own[: own.index("--")], own[own.index("--") + 1 :]
    asked = parser.parse_args(own)
    asked.rest = rest
    return asked


def site(rest: list[str]) -> int:
    """Build the site; on a GPU host this measures what is not current first."""
    python = environment(SITE)
    status = run("site", [python, "-m", "mkdocs", "build", "--strict", *rest])
    if status == 0:
        print("The site is in site/. To look at it: python3 -m http.server -d site")
    return status


def serve(rest: list[str]) -> int:
    """Show the site on this machine; an edited page shows within seconds."""
    # Of MkDocs' word for it only the speed is true: hooks/events.py says what is to be built anew.
    command = [environment(SITE), "-m", "mkdocs", "serve", "--dirty", *rest]
    return run("serve", command, ANATOMY_MODE="replay")


def test(rest: list[str]) -> int:
    """Lint, build the site from its recordings, and run the tests: all, whatever fails first."""
    python = environment(TEST)
    browser()
    steps = [*lint(python), replay(python)]
    built = {} if steps[-1] else {"BUILT_SITE": str(REPLAYED)}  # the browser's tests open it
    # Last, so that its summary is the last thing a reader of a long log sees.
    command = [python, "-m", "pytest", *side_by_side(), *(rest or ["-q"])]
    steps.append(run("tests", command, **built))
    return max(steps, key=abs)


def check(rest: list[str]) -> int:
    """Say what is wrong with edited pages, in a minute or two: all that `test` would say of them.

    `rest` goes to the build.
    """
    python = environment(TEST)
    steps = [
        *lint(python),
        run("prose", [python, "-m", "anatomy", "prose"]),
        run("claims", [python, "-m", "anatomy", "claims", "--check"]),
        replay(python, *rest),
    ]
    if not steps[-1]:  # without a new site there are only links of an older one
        steps.append(run("links", [python, "-m", "tests.site.links", str(REPLAYED)]))
    return max(steps, key=abs)


def lint(python: str) -> list[int]:
    """The statuses of ruff's two looks at the code."""
    return [
        run("lint", [python, "-m", "ruff", "check", "."]),
        run("format", [python, "-m", "ruff", "format", "--check", "."]),
    ]


def replay(python: str, *options: str) -> int:
    """Build the site from its recordings, beside the one of `make.py site`, drafts included."""
    build = [python, "-m", "mkdocs", "build", "--strict", "--site-dir", str(REPLAYED), *options]
    return run("replay", build, quiet=True, ANATOMY_MODE="replay", ANATOMY_DRAFTS="1")


def side_by_side() -> list[str]:
    """Options that share the tests among two processes, file by file: with the browser and what
    tests start they keep two cores at work, and three load all of the tests once more.

    On a GPU host one process runs them all: what two measure on one GPU disturbs both.
    """
    if has_gpu():
        return []
    # In the order of tests/conftest.py, which begins what takes longest first.
    return ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]


def method(rest: list[str]) -> int:
    """Compare the measuring room with its METHOD.json; `--help` says what else can be done."""
    return run("method", [environment(TEST), "-m", "tests.measure.method.command", *rest])


def mutants(rest: list[str]) -> int:
    """Try the tests on one-line mutants of the core; `--help` says of what, and how many."""
    return run("mutants", [environment(TEST), "-m", "tests.mutants.command", *rest])


STEPS = {
    **{"site": site, "test": test, "check": check, "serve": serve},
    **{"method": method, "mutants": mutants},
}


def environment(requirements: Path) -> str:
    """The interpreter of .venv, with the packages of `requirements` in it."""
    wanted = fingerprint(requirements)
    python = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    present = STAMP.read_text(encoding="utf-8").split() if STAMP.is_file() else []
    if not python.exists() or sys.version.split()[0] not in present:
        make_environment()
        present = []
    if wanted not in present:
        pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
        listed = without_torch(requirements) if skips_torch(requirements) else requirements
        print(f"Installing {requirements.name} into .venv; this takes minutes.", file=sys.stderr)
        # The project itself without what it asks for, which the list has with its exact versions.
        steps = (["-r", str(listed)], ["--no-deps", "--editable", "."])
        for name, step in zip(("install", "install-project"), steps, strict=True):
            status = run(name, [*pip, *step], quiet=True)  # no walrus: Python 3.7 must read this
            if status:
                sys.exit(status)
        kept = [sys.version.split()[0], wanted]
        if requirements == TEST:  # which includes the packages of the site
            kept.append(fingerprint(SITE))
        STAMP.write_text(" ".join(kept) + "\n", encoding="utf-8")
    return str(python)


def make_environment() -> None:
    """Make .venv anew; on Debian and its like that may need the package python3-venv first."""
    make = [sys.executable, "-m", "venv", "--clear", str(VENV)]
    try:
        import ensurepip  # noqa: F401 - Debian ships venv without it
    except ImportError:
        version = "python{}.{}-venv".format(*sys.version_info)
        if not apt_get(version):
            sys.exit(f"This Python cannot make virtual environments: install {version}.")
    if run("venv", make, quiet=True):
        sys.exit(1)


def fingerprint(requirements: Path) -> str:
    """What changes when the packages to install do."""
    files = [requirements] if requirements == SITE else [requirements, SITE]
    content = b"".join(file.read_bytes() for file in files)
    skipped = b"without torch" if skips_torch(requirements) else b""
    return hashlib.sha256(content + skipped).hexdigest()[:16]


def skips_torch(requirements: Path) -> bool:
    """Whether to leave torch out: it takes gigabytes, and a site is built from recordings.

    Where there is a GPU, a build measures and needs it; the tests always do.
    """
    return requirements == SITE and not has_gpu()


def has_gpu() -> bool:
    """Whether this machine has an NVIDIA GPU, as far as can be told without any package."""
    return bool(shutil.which("nvidia-smi")) or Path("/proc/driver/nvidia/version").exists()


def without_torch(requirements: Path) -> Path:
    """A copy of a list of requirements that lacks torch."""
    lines = requirements.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not line.startswith(("torch=", "torch>", "torch<"))]
    LOGS.mkdir(parents=True, exist_ok=True)
    copy = LOGS / requirements.name
    copy.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return copy


def browser() -> None:
    """Have a Chromium for the tests that open the built site, from Debian's packages if need be,
    and the font that words in pictures are measured with: in a wider one they would be cut."""
    missing = [] if any(shutil.which(name) for name in BROWSERS) else ["chromium"]
    if missing or not has_font():
        missing.append("fonts-liberation")
    if not missing or apt_get(*missing):
        return
    print(
        "There is no Chromium or no font Liberation Sans here, and they could not be installed. "
        "Tests that open the site in a browser are skipped, or find cut words. Install both.",
        file=sys.stderr,
    )


def has_font() -> bool:
    """Whether pages are shown in the font that they are tested with, as far as can be told."""
    if not shutil.which("fc-match"):
        return True
    found = subprocess.run(["fc-match", "Liberation Sans"], capture_output=True, text=True)
    return "Liberation" in found.stdout


def apt_get(*packages: str) -> bool:
    """Install Debian packages if this machine has apt and lets us; whether it did."""
    if not shutil.which("apt-get"):
        return False
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    sudo = [] if root else ["sudo", "-n"]
    if not root and not shutil.which("sudo"):
        return False
    print(f"Installing {' and '.join(packages)} with apt.", file=sys.stderr)
    apt = [*sudo, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    run("apt-update", [*apt, "update"], quiet=True)
    install = [*apt, "install", "-y", "--no-install-recommends", *packages]
    return run("apt-install", install, quiet=True) == 0


def run(name: str, command: list[str], quiet: bool = False, **variables: str) -> int:
    """Run one step and return its status; a quiet one shows the end of its log if it fails."""
    # Without PYTHONPATH and the like of the caller, which may name another environment.
    bare = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    bare |= {"NO_MKDOCS_2_WARNING": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", **variables}
    print(f"== {name}", file=sys.stderr, flush=True)
    if not quiet:
        return subprocess.run(command, env=bare).returncode
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{name}.log"
    with log.open("wb") as file:
        status = subprocess.run(command, env=bare, stdout=file, stderr=file).returncode
    if status:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL:]
        print("\n".join(lines), file=sys.stderr)
        print(f"{name} failed; all of its output is in {log.relative_to(CHECKOUT)}.")
    return status


def newer_python() -> int:
    """Start again with a newer Python if there is one, else say what is needed."""
    for name in KNOWN:
        found = shutil.which(name)
        if found:
            with contextlib.suppress(OSError):
                works = subprocess.run([found, "--version"], capture_output=True)
                if works.returncode == 0:
                    return subprocess.call([found, *sys.argv])
    print(
        "This needs Python {}.{} or later; {} is {}.{}. Install one and call it by name: "
        "python3.12 make.py ...".format(*OLDEST, sys.executable, *sys.version_info[:2]),
        file=sys.stderr,
    )
    return 2


def open_streams() -> None:
    """Have what goes to a closed stream be lost, where a step would break or write it to a file."""
    for stream in (0, 1, 2):
        try:
            os.fstat(stream)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # gets the lowest number


if __name__ == "__main__":
    open_streams()
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
