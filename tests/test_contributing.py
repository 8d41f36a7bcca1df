"""CONTRIBUTING.md's recipe for a chapter, followed to the letter in a copy of the project."""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

from anatomy.claims import WORDS
from anatomy.figures.text import frontmatter, listings

CHECKOUT = Path(__file__).resolve().parents[1]
GUIDE = (CHECKOUT / "CONTRIBUTING.md").read_text(encoding="utf-8")
# "`anatomy/chapters/row_sums/claims.py` asks ...:", and the block below it.
FILE = re.compile(
    r"^`(?P<path>[\w/-]+\.(?:py|md|toml))` [^\n]*(?:\n[^\n]+)*:\n\n"
    r"(?P<fence>`{3,})\w+\n(?P<text>.*?)^(?P=fence)\n",
    re.MULTILINE | re.DOTALL,
)
COMMANDS = re.compile(r"^Then record it, test it, and look:\n\n```sh\n(.*?)```", re.M | re.S)
MOST_FILES, MOST_LINES = 4, 100
COPIED = ("anatomy", "hooks", "overrides", "snippets", "tests", "docs/assets")
# Pages that the copy's site has beside the new one: the fewer, the sooner it is built.
HOME = "---\ntitle: Home\nsection: /\norder: 1\n---\n\n# Home\n"
SECTION = (
    "---\ntitle: All\nsection: Techniques\norder: 201\n---\n\n# All\n\n[[index: Techniques]]\n"
)
# Tests that ask something of every experiment, every file or every command.
OF_EVERYTHING = (
    "tests/test_house.py",
    "tests/cli/test_cli.py",
    "tests/parts/test_demands.py",
    "tests/record/test_experiments.py",
    "tests/record/declared/test_signatures.py",
)


@dataclass
class Copy:
    """A copy of the project in which the recipe's files were written and its commands typed."""

    folder: Path
    files: dict[str, str]
    before: str = ""  # the new page, before its recording was made
    page: str = ""  # and after it

    def run(self, *command: str) -> str:
        """What a command prints that must succeed."""
        own = ("ANATOMY_", "PYTEST_", "PYTHONPATH")
        plain = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        more = {"PYTHONPATH": str(self.folder), "NO_MKDOCS_2_WARNING": "1", "NO_COLOR": "1"}
        more |= {"ANATOMY_MODE": "replay", "ANATOMY_LOCKS": str(self.folder.parent)}
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=self.folder,
            env=plain | more,
            capture_output=True,
            text=True,
            timeout=300,  # where many tests share two cores
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def built(self) -> str:
        """The new page of the site as it is now."""
        assert typed()["python3"] == ["make.py", "serve"]  # which builds as this does
        self.run("mkdocs", "build", "--strict", "-q")
        return self.read("axioms/row-sums/index.html")

    def read(self, path: str) -> str:
        """A file of the site."""
        return (self.folder / "site" / path).read_text(encoding="utf-8")

    def claims(self) -> list[dict]:
        """The ledger's rows."""
        return json.loads(self.run("anatomy", "claims", "--format", "json"))


def typed() -> dict[str, list[str]]:
    """The commands of the recipe, by program; what serves a page only builds it here."""
    lines = [shlex.split(line, comments=True) for line in COMMANDS.search(GUIDE)[1].splitlines()]
    return {words[0]: words[1:] for words in lines}


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Copy:
    """The copy with the chapter in it, recorded."""
    folder = tmp_path_factory.mktemp("contributing") / "project"
    for name in COPIED:
        copytree(CHECKOUT / name, folder / name, ignore=ignore_patterns("__pycache__"))
    for name in ("mkdocs.yml", "pyproject.toml"):
        (folder / name).write_text((CHECKOUT / name).read_text())
    (folder / "recordings").mkdir()
    (folder / "docs" / "index.md").write_text(HOME)
    (folder / "docs" / "axioms.md").write_text(SECTION)
    files = recipe()
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    made = Copy(folder, files)
    made.before = made.built()
    made.run("anatomy", *typed()["pytorch-gpu-anatomy"])
    made.page = made.built()
    return made


def recipe() -> dict[str, str]:
    """The recipe's files: path, and text."""
    return {found["path"]: found["text"] for found in FILE.finditer(GUIDE)}


def test_a_chapter_is_few_new_files_with_few_lines():
    files = recipe()
    assert {Path(path).parts[0] for path in files} == {"anatomy", "docs", "tests"}
    assert not [path for path in files if (CHECKOUT / path).exists()]
    assert len(files) <= MOST_FILES
    assert sum(len(text.splitlines()) for text in files.values()) <= MOST_LINES


def test_its_page_finds_a_place_among_the_pages_that_are_there():
    pages = dict(frontmatter.pages_in(CHECKOUT / "docs"))
    pages |= {path.removeprefix("docs/"): text for path, text in recipe().items() if ".md" in path}
    fronts, wrong = frontmatter.read_all(pages.items())
    assert not wrong + listings.navigation(pages, fronts)[1] + listings.unlisted(pages, fronts)


def test_before_it_is_recorded_the_page_shows_a_gap_and_how_to_fill_it(copy):
    assert "row_sums.bench" in copy.before and "Record it:" in copy.before
    assert "pytorch-gpu-anatomy record row_sums.bench" in copy.before
    assert "not recorded" in copy.before, "the claim's word"


def test_its_own_test_passes_and_what_is_asked_of_everything_holds_for_it(copy):
    (chapter,) = typed()["pytest"]
    name = Path(chapter).name
    said = copy.run("pytest", "-q", "-p", "no:cacheprovider", chapter, *OF_EVERYTHING, "-k", name)
    assert int(re.search(r"(\d+) passed", said)[1]) > 20
    copy.run("ruff", "check", "--no-cache", *(path for path in copy.files if ".py" in path))
    copy.run("ruff", "format", "--no-cache", "--check", *copy.files)


def test_its_recording_belongs_to_the_cpu(copy):
    (file,) = copy.folder.glob("recordings/*/*/*.json")
    machine, experiment = file.parts[-3:-1]
    assert machine.startswith("cpu-") and experiment == "row_sums.bench"


def test_the_page_shows_its_table_chart_number_and_verdict(copy):
    (row,) = (row for row in copy.claims() if row["claim"] == "sums-over-rows-want-rows")
    assert row["verdict"] in WORDS and row["evidence"].startswith("By columns: ")
    page = copy.page
    assert '<table class="figures" ' in page and "<code>by rows (again)</code>" in page
    assert re.search(r'<div class="chart" role="img"[^>]*><svg', page)
    assert re.search(r'it takes <span class="measured" tabindex="0" title="[^"]*">[\d.]+×', page)
    claimed = page.partition('<table class="figures claims" ')[2].partition("</table>")[0]
    assert "the seed says" not in claimed
    assert row["statement"] in claimed and row["verdict"] in claimed
    assert "Record it:" not in page


def test_the_page_is_in_the_navigation_and_in_its_sections_table(copy):
    home, section = copy.read("index.html"), copy.read("axioms/index.html")
    navigation = home.partition('<nav class="md-nav md-nav--primary')[2].partition(
        "</nav>\n  </div"
    )[0]
    assert 'href="axioms/row-sums/"' in navigation and "Sums over rows" in navigation
    assert '<a href="row-sums/">Sums over rows</a>' in section.partition("<article")[2]
