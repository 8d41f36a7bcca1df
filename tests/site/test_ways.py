"""Ways to write one thing: named over their code where all are code, and tabs else."""

import re

import markdown

from anatomy.site import ways

EXTENSIONS = ["pymdownx.highlight", "pymdownx.superfences", "pymdownx.tabbed"]


def page(*tabs: tuple[str, str]) -> str:
    text = "".join(
        f'=== "{name}"\n\n' + "".join(f"    {line}\n" for line in inside.split("\n")) + "\n"
        for name, inside in tabs
    )
    settings = {"pymdownx.tabbed": {"alternate_style": True}}
    settings["pymdownx.highlight"] = {"pygments_lang_class": True}
    return markdown.markdown(text, extensions=EXTENSIONS, extension_configs=settings)


def code(name: str) -> tuple[str, str]:
    return name, f"```python\nrun({len(name)})\n```\n\n{len(name)} ms"


def test_each_way_is_named_over_its_own_code():
    html = ways.in_sight(page(code("Careless"), code("Careful, and quick")))
    assert 'class="tabbed-set ways tabbed-alternate"' in html
    named = re.findall(
        r'<p class="way"[^>]*>(.*?)</p><div class="language-python highlight">',
        html.replace("\n", ""),
    )
    assert [re.sub("<[^>]*>", "", name) for name in named] == ["Careless", "Careful, and quick"]
    assert re.sub(r'\n<p class="way".*?</p>| ways', "", html) == page(
        code("Careless"), code("Careful, and quick")
    )


def test_other_tabs_stay_tabs():
    figures = page(("width 1024", "A figure."), code("width 2048"))
    many = page(*map(code, "abcd"))
    for html in (figures, many, "<p>No tabs.</p>"):
        assert ways.in_sight(html) == html


def test_tabs_behind_others_are_found():
    figures = page(("width 1024", "A figure."), ("width 2048", "Another."))
    html = ways.in_sight(
        figures + page(code("a"), code("b")) + figures + page(code("c"), code("d"))
    )
    assert html.count("tabbed-set ways") == 2
    assert re.findall(r'<p class="way"[^>]*>(.*?)</p>', html) == ["a", "b", "c", "d"]
