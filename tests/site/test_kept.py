"""What pages came to is kept while nothing that they are made of has changed, and no longer."""

import os
import shutil
from pathlib import Path

import pytest

from anatomy.site.kept import FILE, Kept
from tests.fakes import synthetic
from tests.fakes.sites import Project, block

TEXTS = {"a.md": "# A", "b.md": "# B"}
MADE = {"a.md": "drawn a", "b.md": "drawn b"}


@pytest.fixture
def checkout(tmp_path) -> Path:
    for name in ("anatomy/a.py", "anatomy/words.toml", "docs/a.md", "docs/assets/a.svg",
                 "snippets/s.py", "mkdocs.yml", "recordings/gpu/x/default.json"):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def kept(checkout: Path) -> Kept:
    return Kept(checkout, checkout, checkout / "recordings")


def remembered(checkout: Path, *of) -> Path:
    first = kept(checkout)
    assert first.known(TEXTS, *of) == {}
    first.keep(MADE, TEXTS, *of)
    first.write()
    return checkout / FILE


def test_nothing_changed_and_all_is_known(checkout):
    remembered(checkout, "gpu")
    assert kept(checkout).known(TEXTS, "gpu") == MADE
    assert kept(checkout).known(TEXTS, "another gpu") == {}
    assert kept(checkout).known(TEXTS | {"a.md": "# A "}, "gpu") == {"b.md": "drawn b"}
    assert kept(checkout).known({"b.md": "# A"}, "gpu") == {}  # by its name as well


@pytest.mark.parametrize(
    "name",
    [
        *("anatomy/a.py", "anatomy/words.toml", "docs/assets/a.svg", "snippets/s.py"),
        *("mkdocs.yml", "recordings/gpu/x/default.json"),
    ],
)
@pytest.mark.parametrize("how", ["edited", "removed", "renamed", "added"])
def test_a_file_beside_the_pages_changed_and_nothing_is_known(checkout, name, how):
    remembered(checkout)
    file = checkout / name
    if how == "edited":  # by one byte, at the same moment
        stat = file.stat()
        file.write_text(file.read_text()[:-1] + "!")
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    elif how == "removed":
        file.unlink()
    elif how == "renamed" and file.parent != checkout:
        file.rename(file.with_name(f"other{file.suffix}"))
    elif file.parent != checkout:
        shutil.copy(file, file.with_name(f"other{file.suffix}"))
    else:
        file.write_text("")
    assert kept(checkout).known(TEXTS) == {}


def test_another_page_bytecode_and_the_cache_itself_change_nothing(checkout):
    remembered(checkout)
    for name in ("docs/c.md", "anatomy/__pycache__/a.cpython-311.pyc", ".cache/x", "site/a.html"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("new")
    assert kept(checkout).known(TEXTS) == MADE


def test_a_setting_of_the_project_changes_all(checkout, monkeypatch):
    remembered(checkout)
    monkeypatch.setenv("ANATOMY_MACHINE", "another")
    assert kept(checkout).known(TEXTS) == {}


def test_what_was_edited_while_a_build_was_at_work_is_not_kept(checkout):
    at_work = kept(checkout)
    at_work.keep(MADE, TEXTS)
    (checkout / "snippets/s.py").write_text("edited")
    at_work.write()
    assert not (checkout / FILE).exists()


@pytest.mark.parametrize("cut", [0, 10, 40, -1])
def test_a_file_that_is_not_whole_is_none(checkout, cut):
    file = remembered(checkout)
    file.write_bytes(file.read_bytes()[:cut])
    assert kept(checkout).known(TEXTS) == {}


def test_what_no_build_asks_for_any_more_is_dropped(checkout):
    file = remembered(checkout)
    second = kept(checkout)
    assert second.known({"a.md": "# A"}) == {"a.md": "drawn a"}
    second.write()
    assert kept(checkout).known(TEXTS) == {"a.md": "drawn a"} and file.stat().st_size < 300


def test_a_cache_that_can_not_be_written_costs_nothing_else(checkout):
    (checkout / ".cache").write_text("a file")
    one = kept(checkout)
    one.keep(MADE, TEXTS)
    one.write()
    assert kept(checkout).known(TEXTS) == {}


def test_a_second_build_runs_no_block_and_gives_the_same_bytes(tmp_path):
    ran = tmp_path / "ran"
    code = f"open({str(ran)!r}, 'a').write('x')\nfrom anatomy.page import show\n"
    code += 'print(show("contiguity.bench", op="matmul"))'
    project = Project(tmp_path / "site", synthetic.shared())
    (tmp_path / "site").mkdir()
    pages = {"index": f"# T\n\n{block(code)}", "other": "# O\n\ntext"}
    first = project.write(**pages).build()
    assert first.status == 0, first.said
    files, times = first.files(), len(ran.read_text())
    second = project.build()
    assert second.status == 0 and second.files() == files and len(ran.read_text()) == times
    project.write(**pages | {"other": "# O\n\nedited"}).build()
    assert len(ran.read_text()) == times  # its own page was not edited
    project.write(**pages | {"index": f"# T\n\nedited\n\n{block(code)}"}).build()
    assert len(ran.read_text()) == 2 * times


def test_a_build_in_which_something_is_wrong_keeps_nothing(tmp_path):
    project = Project(tmp_path, synthetic.shared())
    wrong = project.write(index="# T\n\n[[contiguity.bench.matmul.nothing]]\n").build()
    assert wrong.status and not (tmp_path / FILE).exists()
