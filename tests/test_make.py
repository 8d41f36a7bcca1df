"""The script behind the README's commands, as far as it can be tried without a fresh machine."""

import re
import subprocess
import sys
import tomllib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, metadata

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import make
from tests.record.processes.test_isolation import CHECKOUT

README = (CHECKOUT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder in the place of the checkout, with requirements of its own."""
    monkeypatch.setattr(make, "CHECKOUT", tmp_path)
    monkeypatch.setattr(make, "LOGS", tmp_path / "logs")
    for name in ("SITE", "TEST"):
        file = tmp_path / f"{name}.txt"
        file.write_text("# first\ntorch==2.13.0\ntorchao==0.18.0\n")
        monkeypatch.setattr(make, name, file)
    return tmp_path


def test_changed_requirements_are_installed_again(checkout):
    before = make.fingerprint(make.SITE), make.fingerprint(make.TEST)
    make.SITE.write_text("mkdocs==1.6.1\n")
    after = make.fingerprint(make.SITE), make.fingerprint(make.TEST)
    assert before[0] != after[0] and before[1] != after[1]  # the tests need the site's as well


def test_a_site_without_a_gpu_does_not_wait_for_torch(checkout, monkeypatch):
    monkeypatch.setattr(make, "skips_torch", lambda requirements: True)
    copy = make.without_torch(make.SITE)
    assert copy.read_text() == "# first\ntorchao==0.18.0\n"
    monkeypatch.undo()
    assert not make.skips_torch(make.TEST)


def test_a_quiet_step_is_silent_unless_it_fails(checkout, capfd):
    say = [sys.executable, "-c", "import sys; print('noise'); sys.exit(int(sys.argv[1]))"]
    assert make.run("good", [*say, "0"], quiet=True) == 0
    assert "noise" not in "".join(capfd.readouterr())
    assert make.run("bad", [*say, "7"], quiet=True) == 7
    out, err = capfd.readouterr()
    assert "noise" in err and "bad failed; all of its output is in logs/bad.log" in out


def test_a_step_does_not_see_another_environment(checkout, monkeypatch, capfd):
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    make.run("look", [sys.executable, "-c", "import os; print('PYTHONPATH' in os.environ)"])
    assert capfd.readouterr().out == "False\n"


def test_an_older_python_is_told_what_is_needed(checkout, monkeypatch, capfd):
    monkeypatch.setattr(make, "OLDEST", (9, 9))
    monkeypatch.setattr(make, "KNOWN", ())
    assert make.main() == 2
    assert "This needs Python 9.9 or later" in capfd.readouterr().err


@pytest.mark.parametrize("locked", [".", ".cache", "site"])
def test_who_can_not_write_to_the_checkout_is_told_to_copy_it(checkout, monkeypatch, locked):
    """A read-only disk, someone else's checkout, or one in which root built before."""
    (checkout / locked).mkdir(exist_ok=True)
    monkeypatch.setattr(make.os, "access", lambda folder, _: folder != checkout / locked)
    monkeypatch.setattr(sys, "argv", ["make.py", "site"])
    monkeypatch.setattr(make, "environment", lambda requirements: pytest.fail("it went on"))
    with pytest.raises(SystemExit, match=r"can't be written to, .* Copy or clone it ") as end:
        make.main()
    assert end.value.code.startswith(str(checkout / locked)) and "\n" not in end.value.code


@pytest.fixture
def steps(monkeypatch):
    """Stands in for the steps: what each was called with, and the status that each is to have."""
    ran, statuses = {}, {}

    def run(name, command, quiet=False, **variables):
        ran[name] = (command[1:], variables)
        return statuses.get(name, 0)

    monkeypatch.setattr(make, "run", run)
    monkeypatch.setattr(make, "environment", lambda requirements: "python")
    monkeypatch.setattr(make, "browser", lambda: None)
    monkeypatch.setattr(make, "has_gpu", lambda: False)
    return ran, statuses


def test_a_check_of_pages_is_all_of_the_tests_that_pages_can_break(steps):
    ran, statuses = steps
    assert make.check([]) == 0
    assert list(ran) == ["lint", "format", "prose", "claims", "replay", "links"]
    assert ran["replay"][1] == {"ANATOMY_MODE": "replay", "ANATOMY_DRAFTS": "1"}
    ran.clear()
    statuses |= {"prose": 1, "replay": 3}
    assert make.check([]) == 3 and "claims" in ran and "links" not in ran


def test_the_tests_open_the_site_that_was_built_just_before_and_no_older_one(steps):
    ran, statuses = steps
    assert make.test(["tests/x.py"]) == 0
    command, variables = ran["tests"]
    assert command[:4] == ["-m", "pytest", "-n", "2"] and command[-1] == "tests/x.py"
    assert variables == {"BUILT_SITE": str(make.REPLAYED)}
    statuses["replay"] = 1
    assert make.test([]) == 1 and ran["tests"][1] == {}


def test_on_a_gpu_host_no_two_tests_run_at_once(steps, monkeypatch):
    monkeypatch.setattr(make, "has_gpu", lambda: True)
    assert make.test([]) == 0 and steps[0]["tests"][0] == ["-m", "pytest", "-q"]


def test_ci_runs_the_test_command():
    script = (CHECKOUT / ".ci" / "run").read_text()
    (command,) = re.findall(r"^exec (.+)$", script, re.M)
    assert command == "python3 make.py test"
    assert command in README


def test_the_readmes_example_agrees_with_itself_here(monkeypatch, capfd):
    import anatomy
    from anatomy.numerics import agreement

    def compared(variants, *, device):
        first = next(iter(variants.values()))
        return agreement.check(variants, dict.fromkeys(variants, first), None)

    monkeypatch.setattr(anatomy, "compare", compared, raising=False)
    (block,) = re.findall(r"^```python\n(import torch\n.*?)^```", README, re.M | re.S)
    exec(block, {})
    assert "norm, squared" in capfd.readouterr().out


def test_every_package_is_pinned():
    for file in CHECKOUT.glob("requirements*.txt"):
        for line in file.read_text().splitlines():
            if line and not line.startswith(("#", "-r ")):
                assert re.match(r"[\w.-]+==[\w.]+( *;.*)?( *#.*)?$", line), f"{file.name}: {line}"


@pytest.mark.parametrize("python", ["3.11.2", "3.12.0", "3.13.0", "3.14.0"])  # Debian 12's, ...
def test_what_is_pinned_can_be_installed_with_every_python_that_is_promised(python):
    for name in {**pins("requirements.txt"), **pins("requirements-test.txt")}:
        with suppress(PackageNotFoundError):  # on a machine without a GPU, or for one
            assert metadata(name)["Requires-Python"] is None or python in SpecifierSet(
                metadata(name)["Requires-Python"]
            ), name


def pins(name: str) -> dict[str, str]:
    lines = (CHECKOUT / name).read_text().splitlines()
    pairs = (line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    return {package: version.split()[0] for package, version in pairs}


def test_the_extras_have_the_pins_of_the_requirements():
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for extra, file in (("site", "requirements.txt"), ("test", "requirements-test.txt")):
        for requirement in extras[extra]:
            package, _, version = requirement.partition("==")
            assert pins(file).get(package) == version, f"{package} differs in {file}"
    assert {each.partition("==")[0] for each in extras["test"]} == set(
        pins("requirements-test.txt")
    )


def test_what_is_pinned_is_what_the_package_asks_for():
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    for requirement in map(Requirement, project["dependencies"]):
        assert pins("requirements.txt")[requirement.name] in requirement.specifier


def test_help_needs_no_environment():
    command = [sys.executable, str(CHECKOUT / "make.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and "python3 make.py site" in done.stdout


@pytest.mark.parametrize("closed", ["<&- >&-", "2>&-", "<&- >&- 2>&-"])
def test_a_step_has_its_streams_where_make_has_none(closed):
    step = "import os, sys; [os.fstat(n) for n in (0, 1, 2)]; print(1, flush=True); sys.exit(7)"
    run = f"make.run('s', ['python3', '-c', {step!r}])"
    code = f"import make, sys; make.open_streams(); sys.exit({run})"
    command = f'exec "$0" -c "$1" {closed}'
    done = subprocess.run(["sh", "-c", command, sys.executable, code], cwd=CHECKOUT)
    assert done.returncode == 7
