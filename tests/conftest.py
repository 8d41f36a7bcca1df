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
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder
