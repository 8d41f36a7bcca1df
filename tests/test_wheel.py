"""The installed command, away from any checkout: it measures, prints, and saves where told."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from anatomy.record import recording, signatures
from tests.record.processes.test_isolation import CHECKOUT

PACKAGING = ("pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Folder of the commands of an environment in which the project's wheel is installed."""
    pytest.importorskip("setuptools", reason="what builds the wheel is not installed here")
    folder = tmp_path_factory.mktemp("wheel")
    # A copy, because setuptools writes into the folder that it builds from.
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(CHECKOUT / "anatomy", folder / "source" / "anatomy", ignore=ignored)
    # A chapter needs no __init__.py: neither for its modules nor for its columns.
    (folder / "source" / "anatomy" / "chapters" / "never" / "__init__.py").unlink(missing_ok=True)
    for name in PACKAGING:
        shutil.copy(CHECKOUT / name, folder / "source" / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", folder]
    call([*pip, *build, folder / "source"])
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", symlinks=True)
    python = folder / "venv" / "bin" / "python"
    call([*pip, "--python", python, "install", "--no-deps", "--no-index", wheel])
    # What the project needs is taken from the environment of this test, not installed again.
    purelib = subprocess.check_output(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
    ).strip()
    (Path(purelib) / "needs.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python.parent


def call(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def run(installed, folder, *arguments):
    names = ("PYTHONPATH", "ANATOMY_RECORDINGS", "ANATOMY_MACHINE")
    bare = {key: value for key, value in os.environ.items() if key not in names}
    command = [str(installed / "pytorch-gpu-anatomy"), *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=bare)
    return done.returncode, done.stdout, done.stderr


def test_the_package_is_the_installed_one(installed, tmp_path):
    code = "import anatomy; print(anatomy.__file__)"
    where = subprocess.check_output([installed / "python", "-c", code], cwd=tmp_path, text=True)
    assert Path(where).is_relative_to(installed.parent)


def test_every_experiment_and_data_file_came_along(installed, tmp_path):
    status, out, err = run(installed, tmp_path, "list")
    assert status == 0, err
    assert all(name in out for name in signatures.experiments())
    package = next(installed.parent.glob("lib/*/site-packages/anatomy"))
    inside = {path.relative_to(CHECKOUT / "anatomy") for path in data_files(CHECKOUT / "anatomy")}
    assert inside and inside == {path.relative_to(package) for path in data_files(package)}


def data_files(package: Path) -> list[Path]:
    found = (path for path in package.rglob("*") if path.is_file())
    return [path for path in found if path.suffix not in (".py", ".pyc")]


def test_it_measures_prints_and_saves(installed, tmp_path, own_lock):
    (tmp_path / "torch.py").write_text("raise SystemExit('the wrong torch')")  # must not matter
    toy = ("c01", "tensor-layout", "--device", "cpu", "--m", 8, "--k", 8)
    status, out, err = run(installed, tmp_path, *toy, "--save", tmp_path / "mine")
    assert status == 0, err
    assert "[A variant: transposed_view]" in out and "strides        : (1, 8)" in out
    (file,) = (tmp_path / "mine").rglob("*.json")
    found = recording.load(file)
    assert found.experiment == "tensor_layout.report" and found.data["code"]["commit"] is None


def test_an_experiment_that_runs_a_script_of_the_checkout_says_so(installed, tmp_path, own_lock):
    for command in (["ladder", "--device", "cpu"], ["c01", "alignment-check", "--device", "cpu"]):
        status, out, err = run(installed, tmp_path, *command)
        assert status == 1 and out == ""
        assert "belongs to the project's checkout and is not here" in err.splitlines()[-1]


def test_commands_that_need_recordings_say_where_to_name_them(installed, tmp_path):
    for command in (["export"], ["record", "tensor_layout.report"], ["check"]):
        status, out, err = run(installed, tmp_path, *command)
        assert status == 1 and out == ""
        assert err.startswith("error: ") and err.count("\n") == 1
