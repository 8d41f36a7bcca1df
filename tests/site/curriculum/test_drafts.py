"""Drafts: pages that are written and not yet measured, which a site leaves out and names."""

import posixpath
import re

import pytest

from anatomy.cli import targets
from anatomy.figures.text import frontmatter
from tests.fakes import synthetic
from tests.fakes.sites import CHECKOUT, Built, Project
from tests.site import links

LEFT_OUT = "draft_docs: |\n  /curriculum/day_08.md\n  /labs/a.py\n"
LAB = "# ---\n# title: A\n# section: Labs\n# order: 9\n# ---\n\n# %% [markdown]\n# # A\n\n"
UNMEASURED = "written, not yet measured"


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    project = Project(tmp_path_factory.mktemp("drafts"), synthetic.shared(), names_pages=False)
    project.write(
        index="---\nnav: Home\nsection: /\norder: 1\n---\n\n# Home\n\n[[days: week 2]]\n",
        **{"curriculum/day_08": "---\nday: 8\n---\n\n# Eight\n\n## All { data-minutes=150 }\n"},
    )
    (project.folder / "docs" / "labs").mkdir()
    (project.folder / "docs" / "labs" / "a.py").write_text(LAB, encoding="utf-8")
    with (project.folder / "mkdocs.yml").open("a", encoding="utf-8") as settings:
        settings.write(LEFT_OUT)
    return project


def days(built: Built) -> dict[str, str]:
    assert built.status == 0, built.said
    assert links.broken(built.site) == []
    return dict(re.findall(r'<li data-day="(\d+)"[^>]*><span>(.*?)</span><small', built.read()))


def test_a_published_site_leaves_drafts_out_and_says_that_they_are_written(project):
    built = project.build()
    said = days(built)
    assert UNMEASURED in said["8"] and "<a" not in said["8"] and "not written yet" in said["9"]
    assert not any("day_08" in name or "labs/" in name for name in built.files())
    assert "day_08" not in built.read("search/search_index.json")


def test_asked_for_they_are_pages_like_others(project):
    built = project.build(ANATOMY_DRAFTS="1")
    assert '<a href="curriculum/day_08/">' in days(built)["8"] and UNMEASURED not in built.read()
    assert {"curriculum/day_08/index.html", "labs/a/a.ipynb"} <= set(built.files())


def test_the_command_line_knows_the_same_drafts(project, monkeypatch):
    monkeypatch.setattr(targets, "docs", lambda: project.folder / "docs")
    assert targets.drafts() == {"curriculum/day_08.md", "labs/a.py"}
    monkeypatch.undo()
    assert targets.drafts() <= set(targets.pages())


def test_no_page_of_the_site_links_to_a_draft_of_its_own_accord():
    drafts = targets.drafts()
    for page, text in frontmatter.pages_in(CHECKOUT / "docs"):
        for link in re.findall(r"\]\(([^()\s#]+)", text) if page not in drafts else ():
            there = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
            assert there not in drafts, f"{page}: write [[days: day N]] in place of ({link})"
