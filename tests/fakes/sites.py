"""Small MkDocs projects for tests: the site's own settings, with other pages and recordings."""

import multiprocessing
import os
import sys
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree

from anatomy.record import recording
from tests.fakes import synthetic

CHECKOUT = Path(__file__).resolve().parents[2]
SETTINGS = """\
INHERIT: {checkout}/mkdocs.yml
docs_dir: docs
site_dir: site
theme:
  custom_dir: {checkout}/overrides
hooks: [{checkout}/hooks/events.py]
watch: []
{nav}
extra:
  machine: {machine}
  machines: [{machines}]
"""


def recorded(name: str) -> list[recording.Recording]:
    """The recordings of an experiment in this checkout, of each machine that has one."""
    root = CHECKOUT / "recordings"
    found = (recording.find(root, machine, name) for machine in recording.machines(root))
    return list(filter(None, found))


# A build is forked off a process that has imported what builds do and has built nothing: to import
# takes longer than to build a page.
WARM = multiprocessing.get_context("forkserver")
IMPORTED = (__name__, "anatomy.page", "anatomy.site.building", "anatomy.figures.charts.svg")
IMPORTED += ("mkdocs.__main__", "mkdocs.commands.build", "material.plugins.search.plugin")
IMPORTED += ("markdown_exec", "pymdownx.snippets")
WARM.set_forkserver_preload([*IMPORTED])


@dataclass
class Built:
    """What a build left: its status, all that it said, and the folder of the site."""

    status: int
    said: str
    site: Path

    def read(self, path: str = "index.html") -> str:
        """A file of the site."""
        return (self.site / path).read_text(encoding="utf-8")

    def files(self) -> dict[str, bytes]:
        """Every file of the site."""
        return {
            path.relative_to(self.site).as_posix(): path.read_bytes()
            for path in sorted(self.site.rglob("*"))
            if path.is_file()
        }


@dataclass
class Project:
    """A MkDocs project in a temporary folder, shown with the recordings in `recordings`.

    Its settings name the pages it has, so that they need no front matter, unless told otherwise.
    """

    folder: Path
    recordings: Path
    machine: str = synthetic.MACHINE
    names_pages: bool = True
    machines: tuple[str, ...] = ()  # published beside it

    def write(self, **pages: str) -> "Project":
        """Write pages (`index` for index.md), and the settings."""
        docs = self.folder / "docs"
        if not docs.exists():
            copytree(CHECKOUT / "docs" / "assets", docs / "assets")
        for name, text in pages.items():
            (docs / f"{name}.md").parent.mkdir(exist_ok=True)
            (docs / f"{name}.md").write_text(text, encoding="utf-8")
        named = ["nav:", *(f"  - {page.name}" for page in sorted(docs.glob("*.md")))]
        return self._settle(named if self.names_pages else [])

    def copy_site(self) -> "Project":
        """Take the pages of the site itself, and what they quote, with its own navigation."""
        for name in ("docs", "snippets", "anatomy/chapters", "anatomy/parts"):
            copytree(CHECKOUT / name, self.folder / name)
        return self._settle([])

    def _settle(self, nav: list[str]) -> "Project":
        shown = {"machine": self.machine, "machines": ", ".join(self.machines)}
        settings = SETTINGS.format(checkout=CHECKOUT, nav="\n".join(nav), **shown)
        (self.folder / "mkdocs.yml").write_text(settings, encoding="utf-8")
        return self

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a build of this project: it replays unless told otherwise."""
        plain = {k: v for k, v in os.environ.items() if not k.startswith("ANATOMY_")}
        return plain | {
            "ANATOMY_MODE": "replay",
            "ANATOMY_RECORDINGS": str(self.recordings),
            "NO_MKDOCS_2_WARNING": "1",
            "PYTHONWARNINGS": "ignore",
            **more,
        }

    def command(self, *options: str) -> list[str]:
        """The command that builds it."""
        return [sys.executable, "-m", "mkdocs", "build", *options]

    def build(self, *options: str, **environment: str) -> Built:
        """Build it in a process of its own, strictly unless options say otherwise."""
        with tempfile.NamedTemporaryFile() as said:
            given = (said.name, self.folder, self.environment(**environment))
            process = WARM.Process(target=_build, args=(*given, *(options or ("--strict",))))
            process.start()
            process.join(400)  # on two cores that draw every chart for the first time
            process.kill()
            process.join()
            return Built(process.exitcode, Path(said.name).read_text(), self.folder / "site")


def _build(said: str, folder: Path, environment: Mapping[str, str], *options: str) -> None:
    """`python -m mkdocs build`, with all that it prints in a file."""
    with open(said, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path.insert(0, "")
    warnings.simplefilter("ignore")
    from mkdocs.__main__ import cli

    cli(["build", *options])


def block(code: str, options: str = 'exec="on" html="1"') -> str:
    """An executed block of a page."""
    return f"```python {options}\n{code}\n```\n"
