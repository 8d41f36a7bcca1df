"""A link that leads nowhere is found, whoever wrote it, and told with its page."""

import pytest

from tests.site import links

HOME = """<h1 id="top">Home</h1><img src="a%20b.png"><a title="a > b" href="two/#caf%C3%A9">two</a>
<a href='https://example.org/nothing'>elsewhere</a> <a href="data.json#/rows">rows</a>
<a href="#top">here</a> <a href="mailto:a@b.c">letter</a>"""
TWO = '<p id="café">Two</p><a href="..">home</a><a href="/two/index.html">here</a>'


@pytest.fixture
def site(tmp_path):
    (tmp_path / "two").mkdir()
    (tmp_path / "index.html").write_text(HOME, encoding="utf-8")
    (tmp_path / "two" / "index.html").write_text(TWO, encoding="utf-8")
    (tmp_path / "a b.png").touch()
    (tmp_path / "data.json").touch()
    return tmp_path


def test_links_within_a_site_and_to_other_hosts_are_no_trouble(site):
    assert links.broken(site) == []


@pytest.mark.parametrize(
    ("link", "what"),
    [
        ("three/", "no file"),
        ("../data.jsn", "no file"),
        ("/two/three.html", "no file"),
        ("#cafe", "no place"),
        ("../?q=1#Top", "no place"),
    ],
)
def test_one_that_leads_nowhere_is_told_with_its_page(site, link, what):
    (site / "two" / "index.html").write_text(f'{TWO}<a class="x" href="{link}">', encoding="utf-8")
    (told,) = links.broken(site)
    assert told.startswith(f"two/index.html: {link} leads to {what}")


def test_a_picture_that_is_missing_is_told_too(site):
    (site / "a b.png").unlink()
    assert links.broken(site) == ["index.html: a%20b.png leads to no file of the site."]
