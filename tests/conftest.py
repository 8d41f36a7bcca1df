"""What several test files need: the toy package, and a place of their own to measure in."""

import tempfile
from pathlib import Path

import pytest


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
def one_operator_of_a_name():
    """Each operator that a ladder script registers is registered once, however often it is loaded.

    A process has one operator of a name. Registering it anew frees the one that compiled code of an
    earlier copy of the script still calls.
    """
    import torch

    register, made = torch.library.custom_op, {}

    def once(name, *given, **options):
        if not name.startswith("ladder::"):
            return register(name, *given, **options)

        def decorated(function):
            if name not in made:
                made[name] = register(name, *given, **options)(function)
            return made[name]

        return decorated

    torch.library.custom_op = once
    yield
    torch.library.custom_op = register
