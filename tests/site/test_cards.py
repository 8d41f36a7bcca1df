"""Written tables: their columns' names, which are those of a card's cells on a phone."""

import markdown

from anatomy.site import cards


def page(text: str) -> str:
    return cards.named(markdown.markdown(text, extensions=["tables"]))


def test_a_wide_table_names_its_columns_but_the_first():
    html = page('| over | "a" & `b` | |\n| --- | --- | --- |\n| x | 1 | 2 |\n')
    assert '<table style="--c2:&quot;\\&quot;a\\&quot; &amp; b&quot;">' in html
    assert "--c1" not in html and "--c3" not in html, (
        "a head is the first, and the last has no name"
    )


def test_a_narrow_table_and_a_figures_stay_as_they_are():
    narrow = "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    assert page(narrow) == markdown.markdown(narrow, extensions=["tables"])
    figure = '<table class="figures"><thead><tr><th>a</th><th>b</th><th>c</th></tr></thead></table>'
    assert cards.named(figure) == figure
