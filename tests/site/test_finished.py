"""What a page's HTML becomes at last: cards on a phone, and ways to write one thing in sight."""

import re

import markdown

from anatomy.site import cards, ways

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


# Written tables: their columns' names, which are those of a card's cells on a phone


def table(text: str) -> str:
    return cards.named(markdown.markdown(text, extensions=["tables"]))


def test_a_wide_table_names_its_columns_but_the_first():
    html = table('| over | "a" & `b` | |\n| --- | --- | --- |\n| x | 1 | 2 |\n')
    assert '<table style="--c2:&quot;\\&quot;a\\&quot; &amp; b&quot;">' in html
    assert "--c1" not in html and "--c3" not in html, (
        "a head is the first, and the last has no name"
    )


def test_a_narrow_table_and_a_figures_stay_as_they_are():
    narrow = "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    assert table(narrow) == markdown.markdown(narrow, extensions=["tables"])
    figure = '<table class="figures"><thead><tr><th>a</th><th>b</th><th>c</th></tr></thead></table>'
    assert cards.named(figure) == figure


def test_a_table_that_is_read_across_stays_a_table():
    wide = "| a | b | c |\n| --- | --- | --- |\n| 1 | 2 | 3 |\n"
    abreast = f'<div class="abreast">\n{markdown.markdown(wide, extensions=["tables"])}</div>'
    assert cards.named(abreast) == abreast
    assert "--c2" not in cards.named(abreast) and "style" in table(wide.replace("b", "bcd"))
