"""Small MkDocs projects for tests: the site's own settings, with other pages and recordings."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree

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
        done = subprocess.run(
            self.command(*(options or ("--strict",))),
            cwd=self.folder,
            env=self.environment(**environment),
            capture_output=True,
            text=True,
            timeout=400,  # on two cores that draw every chart for the first time
        )
        return Built(done.returncode, done.stdout + done.stderr, self.folder / "site")


def block(code: str, options: str = 'exec="on" html="1"') -> str:
    """An executed block of a page."""
    return f"```python {options}\n{code}\n```\n"
