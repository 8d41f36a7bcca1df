"""Labs as files of MkDocs: pages that mkdocs-jupyter makes of notebooks, which our runner executed.

What mkdocs-jupyter would add of its own, 590 kB of CSS, is left out by the templates beside this.
"""

import logging
from hashlib import sha256
from pathlib import Path

from mkdocs.structure.files import File, InclusionLevel

PLUGIN = "mkdocs-jupyter"
FOLDER, ENDING = "labs", ".py"  # as `anatomy.figures.text.labs` has them
TEMPLATES = Path(__file__).resolve().parent / "notebooks"
NOTEBOOKS = Path(".cache") / "anatomy" / "labs"  # of a project


class Lab(File):
    """A lab, whose page is made of a notebook that is written when its turn comes."""

    to_run = ""  # the notebook that its readers open

    @classmethod
    def of(cls, name, config, inclusion=InclusionLevel.UNDEFINED):
        """A lab by its name in the site's sources."""
        path = _project(config) / NOTEBOOKS / Path(name).with_suffix(".ipynb")
        return cls.generated(config, name, abs_src_path=str(path), inclusion=inclusion)

    def is_documentation_page(self):
        """It is one, though not of Markdown."""
        return True

    @property
    def notebook(self):
        """The name of the file that its readers download, beside the page."""
        return f"{self.name}.ipynb"

    def write(self, executed, to_run):
        """Have a page made of the executed notebook, and the other one published."""
        self.to_run = to_run
        _write(Path(self.abs_src_path), executed)

    def publish(self):
        """Write the notebook that its readers open."""
        _write(Path(self.abs_dest_path).with_name(self.notebook), self.to_run)


def among(files, config):
    """The labs among files of docs/, by the file."""
    if PLUGIN not in config.plugins:
        return {}
    found = [file for file in files if Path(file.src_uri).match(f"{FOLDER}/*{ENDING}")]
    return {
        file: Lab.of(file.src_uri, config, file.inclusion)
        for file in found
        if not isinstance(file, Lab)
    }


def prepare(config):
    """Have mkdocs-jupyter use our templates, and keep its pages by them as well."""
    if PLUGIN not in config.plugins:
        return
    from mkdocs_jupyter.config import settings

    settings.templates_dir = str(TEMPLATES)
    used = b"".join(path.read_bytes() for path in sorted(TEMPLATES.rglob("*.j2")))
    kept = _project(config) / NOTEBOOKS / sha256(used).hexdigest()[:12]
    config.plugins[PLUGIN].config["cache_dir"] = str(kept)
    for name in ("plugins.mkdocs_jupyter", PLUGIN):
        logging.getLogger(f"mkdocs.{name}").setLevel(logging.WARNING)


def _project(config):
    return Path(config.config_file_path).parent


def _write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
