"""What pages say of themselves: a new file is a new page everywhere, and a mistake has its line."""

import re
import socket
import subprocess
import time
import urllib.request
from contextlib import suppress

import pytest

from anatomy.figures.text import frontmatter, listings
from anatomy.table.errors import BadParameter, UnknownName
from tests.fakes import synthetic
from tests.fakes.sites import CHECKOUT, Project

HOME = """\
---
title: A site
nav: Home
section: /
order: 1
---

# A site

[[index: Days / First week]]
"""
DAY = """\
---
title: "Day {day}: what is new?"
nav: "{day}"
section: Days / First week
order: {order}
index:
  day: "[{day}](day_{day}.md)"
  question: What is new, `{day}`, on [another page](../index.md#a-site)?
---

# Day {day}
"""


def day(number: int, order: int = 0) -> str:
    return DAY.format(day=number, order=order or 100 + number)


@pytest.fixture
def project(tmp_path) -> Project:
    return Project(tmp_path, synthetic.shared(), names_pages=False)


def wrong_with(**pages: str) -> list[str]:
    """What a build would say of these pages."""
    texts = {f"{name}.md": text for name, text in pages.items()}
    fronts, wrong = frontmatter.read_all(texts.items())
    if wrong:
        return wrong
    return listings.navigation(texts, fronts)[1] + listings.unlisted(texts, fronts)


def test_a_new_file_is_in_the_navigation_and_in_its_sections_index(project):
    built = project.write(index=HOME, **{"days/day_2": day(2), "days/day_1": day(1)}).build()
    assert built.status == 0, built.said
    home = built.read()
    table = re.search(r"<table>.*?</table>", home, re.DOTALL)[0]
    assert re.findall(r'<a href="days/day_(\d)/">\d</a>', table) == ["1", "2"]
    assert "<th>question</th>" in table and "What is new, <code>2</code>" in table
    assert '<a href="./#a-site">another page</a>' in table
    sidebar = re.search(r'<nav class="md-nav md-nav--primary.*?</nav>\s*</div>', home, re.DOTALL)[0]
    names = re.findall(r'<span class="md-ellipsis">\s*(.*?)\s*<', sidebar)
    assert names == ["Home", "Days", "First week", "1", "2"]
    first = built.read("days/day_1/index.html")
    assert re.search(r'<link rel="prev" href="\.\./\.\./?">', first)
    assert re.search(r'<link rel="next" href="../day_2/">', first)
    assert 'href="/days/day_2/"' in built.read("404.html")
    assert "days/day_2/" in built.read("search/search_index.json")


def test_a_page_that_is_a_draft_takes_its_line_in_a_table_with_it(project):
    table = "\n| if | try |\n| --- | --- |\n| a | b |\n[[advice: Days / First week]]\n\nEnd.\n"
    advised = day(1).replace("index:", 'advice: {if: late, try: "[it](day_1.md)"}\nindex:')
    project.write(index=HOME + table, **{"days/day_1": advised, "days/day_2": day(2)})
    with (project.folder / "mkdocs.yml").open("a", encoding="utf-8") as settings:
        settings.write("draft_docs: |\n  /days/day_1.md\n")
    published = project.build()
    assert published.status == 0, published.said
    assert "<td>late" not in published.read() and "<p>End.</p>" in published.read()
    assert not any("day_1" in name for name in published.files())
    assert "day_1" not in published.read() + published.read("search/search_index.json")
    whole = project.build(ANATOMY_DRAFTS="1")
    assert '<td>late</td>\n<td><a href="days/day_1/">it</a></td>' in whole.read()


def test_a_page_without_its_place_ends_the_build_before_anything_is_written(project):
    built = project.write(index=HOME, other="# Other\n", third=day(3, 1)).build()
    assert built.status != 0 and not built.site.exists()
    assert "other.md:1: the front matter lacks title and section and order" in built.said
    assert "third.md:5: order 1 is that of index.md already; the next free one is 2" in built.said
    assert "Traceback" not in built.said


def test_a_preview_takes_up_a_new_page_without_being_started_again(project):
    project.write(index=HOME.partition("[[index")[0])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    serve = [*project.command()[:-1], "serve", "--no-strict", "-a", address]
    served = subprocess.Popen(
        serve,
        cwd=project.folder,
        env=project.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def comes(path: str, text: str) -> bool:
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline and served.poll() is None:
            with suppress(OSError), urllib.request.urlopen(f"http://{address}/{path}") as answer:
                if text in answer.read().decode():
                    return True
            time.sleep(0.2)
        return False

    try:
        assert comes("", "A site")
        project.write(new="---\ntitle: One more\nsection: /\norder: 2\n---\n\n# One more\n")
        assert comes("", "One more") and comes("new/", 'rel="prev"')
    finally:
        served.terminate()
        served.wait()


MISTAKES = {
    "a key that is not known": ("nav: Home", "navv: Home", "index.md:3: ", "mean 'nav'"),
    "no YAML": ("nav: Home", "nav: Home: 1", "index.md:3: ", "is not YAML: mapping values"),
    "an order that is none": ("order: 1", "order: first", "index.md:5: ", "whole number from 1"),
    "an order below 1": ("order: 1", "order: 0", "index.md:5: ", "and is 0."),
    "a truth for an order": ("order: 1", "order: yes", "index.md:5: ", "and is True."),
    "a number for a text": ("nav: Home", "nav: 3", "index.md:3: ", "put it in quotes"),
    "no list": ("nav: Home", "hide: toc", "index.md:3: ", "must be a list"),
    "a section without a name": ("section: /", "section: A //B", "index.md:4: ", "without a name"),
    "no section": ("section: /\n", "", "index.md:1: ", "lacks section,"),
    "no order": ("order: 1\n", "", "index.md:1: ", "lacks order,"),
    "a figure in a cell": (
        "nav: Home",
        'index: {a: "[[limit:copy]]"}',
        "index.md:3: ",
        "figures belong on the page itself",
    ),
    "a technique that is a text": (
        "nav: Home",
        "techniques: [a]",
        "index.md:3: ",
        "`key: value`",
    ),
    "a technique's mistyped key": (
        "nav: Home",
        "techniques: [{nam: a}]",
        "index.md:3: ",
        "mean 'name'",
    ),
    "a line of no index": ("nav: Home", "index: {a: b}", "index.md:1: ", "[[index: /]], which is"),
    "a bar in a cell": ("nav: Home", "index: {a: b|c}", "index.md:3: ", "a bar or a second line"),
    "no techniques": ("nav: Home", "techniques: []", "index.md:3: ", "a list of techniques"),
    "half a technique": (
        "nav: Home",
        "techniques: [{name: a, reads: [b.c], memory: d}]",
        "index.md:3: ",
        "number 1 lacks variants",
    ),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_told_with_its_line(what):
    right, mistaken, place, says = MISTAKES[what]
    assert wrong_with(index=HOME, day=day(1)) == []
    (told,) = wrong_with(index=HOME.replace(right, mistaken), day=day(1))
    assert told.startswith(place) and says in told


def test_front_matter_that_is_a_list_is_refused():
    with pytest.raises(BadParameter, match=r"a.md:1: .* must be lines `key: value`"):
        frontmatter.read("a.md", "---\n- a\n---\n")


def test_a_page_without_front_matter_says_nothing():
    assert frontmatter.read("a.md", "# A\n\n---\n\norder: 1\n\n---\n") == frontmatter.Front()


def test_sections_stand_where_the_first_of_their_pages_does():
    pages = {
        f"{name}.md": f"---\ntitle: {name}\nsection: {section}\norder: {order}\n---\n"
        for name, section, order in (
            ("late", "A / B", 9),
            ("early", "A / B", 2),
            ("direct", "A", 5),
            ("top", "/", 3),
            ("other", "C", 1),
        )
    }
    fronts, _ = frontmatter.read_all(pages.items())
    found, wrong = listings.navigation(pages, fronts)
    assert not wrong and found == [
        {"C": [{"other": "other.md"}]},
        {"A": [{"B": [{"early": "early.md"}, {"late": "late.md"}]}, {"direct": "direct.md"}]},
        {"top": "top.md"},
    ]


def showing(**pages: str):
    texts = {f"{name}.md": text for name, text in pages.items()}
    return synthetic.showing(fronts=frontmatter.read_all(texts.items())[0])


def test_a_list_that_is_asked_for_and_empty_is_an_error():
    with pytest.raises(UnknownName, match="Did you mean 'Days / First week'"):
        listings.index(showing(a=day(1)), "Days / First weak", "")
    with pytest.raises(BadParameter, match="has no parts"):
        listings.index(showing(a=day(1)), "Days / First week", "short")


def test_lines_of_one_index_have_the_same_columns():
    odd = day(2).replace("  question:", "  asks:")
    with pytest.raises(BadParameter, match=r"b.md gives day, asks .* before it day, question"):
        listings.index(showing(a=day(1), b=odd), "Days / First week", "")


@pytest.mark.parametrize(
    ("right", "mistaken", "says"),
    [
        ("channels_last.network", "channels_last.netwrok", "Did you mean 'channels_last.network'"),
        ("channels_last.network", "channels_last.network.x", "is no call of an experiment"),
        ("channels-last-is-faster", "channels-first", "no claim 'channels-first'"),
        ("total_peak_bytes", "peak", "no column of memory 'peak'"),
    ],
)
def test_a_technique_that_names_what_is_not_there_is_told_with_its_page(right, mistaken, says):
    from anatomy import page
    from anatomy.record.showing import using

    name = "axioms/channels-last.md"
    text = (CHECKOUT / "docs" / name).read_text()
    front = frontmatter.read(name, text.replace(right, mistaken))
    with (
        using(synthetic.showing(fronts={name: front}, collecting=True)),
        pytest.raises(BadParameter, match=rf"{name}: .*'channels_last': .*{re.escape(says)}"),
    ):
        page.techniques()


def test_a_page_of_several_machines_is_in_the_menu_only_where_there_are_several():
    pages = {"a.md": "---\ntitle: A\nsection: /\norder: 1\nseveral: true\n---\n"}
    fronts, wrong = frontmatter.read_all(pages.items())
    assert not wrong
    assert listings.navigation(pages, fronts, machines=1) == ([], [])
    assert listings.navigation(pages, fronts, machines=2) == ([{"A": "a.md"}], [])
