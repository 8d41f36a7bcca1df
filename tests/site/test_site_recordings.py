"""What a build does with recordings that it can't use, with names nobody recorded, and where it may
write nothing."""

import errno
import json
import shutil
from pathlib import Path

import pytest

from anatomy.record import recording
from anatomy.record.provenance.canonical import content_sha
from anatomy.record.showing import current
from anatomy.site import building, processes
from anatomy.table.errors import AnatomyError, RecordingError, UnknownName
from tests.fakes import synthetic
from tests.fakes.sites import CHECKOUT, Project, block

SHOW = 'from anatomy.page import show\nprint(show("contiguity.bench", op="matmul"))'
FILE = "toy-gpu/contiguity.bench/default.json"


def test_every_file_that_can_not_be_published_is_named_and_ends_the_build(tmp_path):
    root = shutil.copytree(synthetic.shared(), tmp_path / "recordings")
    shown = root / FILE
    data = json.loads(shown.read_text())
    data["machine"]["slug"] = "other-gpu"
    data["content_sha"] = content_sha(data)
    shown.write_text(json.dumps(data))
    other = root / "toy-gpu" / "other.thing" / "default.json"
    other.parent.mkdir()
    other.symlink_to("/etc/passwd")
    project = Project(tmp_path / "project", root)
    project.folder.mkdir()
    built = project.write(index=f"# T\n\n{block(SHOW)}").build()
    assert built.status != 0 and "Traceback" not in built.said
    assert "2 things are wrong" in built.said
    assert (
        f"index.md:5: {FILE} is in the wrong place: its machine.slug is 'other-gpu'" in built.said
    )
    assert "toy-gpu/other.thing/default.json is a link that leads out of the folder" in built.said
    assert not built.site.exists()


def prepared(monkeypatch, shown="toy-gpu", **environment):
    for name in ("ANATOMY_MACHINE", "ANATOMY_RECORDINGS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"ANATOMY_MODE": "replay", **environment}.items():
        monkeypatch.setenv(name, value)
    return building.prepare(
        [("a.md", f"# A\n\n{block(SHOW)}")],
        addresses={},
        checkout=CHECKOUT,
        shown_machine=shown,
        here=lambda: None,
        record=lambda *_: None,
    )


def test_a_machine_or_a_folder_that_is_not_there_is_told(monkeypatch, tmp_path):
    root = str(synthetic.shared())
    assert prepared(monkeypatch, ANATOMY_RECORDINGS=root, ANATOMY_MACHINE="toy-gpu")
    with pytest.raises(UnknownName, match=r"'toy-gpo'\. Did you mean 'toy-gpu'"):
        prepared(monkeypatch, ANATOMY_RECORDINGS=root, shown="toy-gpo")  # as in mkdocs.yml
    with pytest.raises(UnknownName, match=r"'toy-gpo'\. Did you mean 'toy-gpu'"):
        prepared(monkeypatch, ANATOMY_RECORDINGS=root, ANATOMY_MACHINE="toy-gpo")
    with pytest.raises(UnknownName, match=r"'toy-gpo'\. Did you mean 'toy-gpu'"):
        current()  # what a plain Python session shows
    for nowhere in (tmp_path / "nowhere", tmp_path / ("n" * 300)):
        with pytest.raises(RecordingError, match=r"ANATOMY_RECORDINGS=.*: there is no such folder"):
            prepared(monkeypatch, ANATOMY_RECORDINGS=str(nowhere))
    assert recording.machines(Path(root)) == ["toy-gpu"]


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_checkout_that_can_not_be_written_needs_no_lock(tmp_path, monkeypatch, number):
    def refuse(*_, **__):
        raise OSError(number, "refused")

    monkeypatch.setattr(Path, "mkdir", refuse)
    processes.lock(tmp_path).release()
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(AnatomyError, match=r"\.cache/anatomy can't be written: No space left"):
        processes.lock(tmp_path)
