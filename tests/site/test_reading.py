"""What a page takes to read: counted from the words in sight, said under the heading."""

import pytest

from anatomy.site import reading

WORDS = "word " * 200
TABS = '<div class="tabbed-set"><div class="tabbed-labels"><label>one</label></div>{}</div>'


@pytest.mark.parametrize(
    ("html", "minutes"),
    [
        ("<p>One word.</p>", 1),
        (f"<p>{WORDS}</p>", 1),
        (f"<p>{WORDS} more</p>", 2),
        (f"<p>{WORDS * 5}</p>", 5),
        (f"<table><tr><td>{WORDS}</td><td>more</td></tr></table>", 2),
        (f"<pre><code>{WORDS}\nmore</code></pre>", 2),
    ],
)
def test_words_code_and_tables_take_one_time(html, minutes):
    assert reading.minutes(html) == minutes


@pytest.mark.parametrize(
    ("html", "words"),
    [
        ("<p>a<br>b <abbr title='c d'>e</abbr>f&amp;g</p><p>h</p>", ["a", "b", "ef&g", "h"]),
        ("<details><summary>a b</summary><p>c</p>d</details>e", ["a", "b", "e"]),
        ("<details open><summary>a</summary><p>b</p></details>c", ["a", "b", "c"]),
        ("<details><details><summary>a</summary></details>b</details><p>c</p>", ["c"]),
        ("<svg><text>a</text></svg><script>b</script><style>c</style><!-- d -->e", ["e"]),
        (
            TABS.format(
                '<div class="tabbed-content"><div class="tabbed-block"><p>a</p></div>'
                '<div class="tabbed-block"><p>b</p></div></div>'
            )
            + "c",
            ["one", "a", "c"],
        ),
    ],
)
def test_what_is_folded_drawn_or_on_another_tab_is_not_read(html, words):
    assert reading.words(html) == words


def test_each_set_of_tabs_counts_one_of_its_own():
    inner = TABS.format(
        '<div class="tabbed-content"><div class="tabbed-block">a</div>'
        '<div class="tabbed-block">b</div></div>'
    )
    outer = (
        f'<div class="tabbed-content"><div class="tabbed-block">{inner}c</div>'
        f'<div class="tabbed-block">{inner}d</div></div>'
    )
    assert reading.words(outer + inner) == ["one", "a", "c", "one", "a"]


def test_the_line_stands_under_the_heading_and_counts_the_page_with_its_figures():
    page = "<h1>A</h1><p>Answer.</p><!--picture 0--><h2>Why?</h2><p>So.</p>"
    whole = page.replace("<!--picture 0-->", f"<figcaption>{WORDS}</figcaption>")
    shown = reading.with_line(page, ["strides", "<views>"], whole)
    line = (
        '<p class="reads" data-search-exclude>2 min · you should know: strides, &lt;views&gt;</p>'
    )
    assert shown == page.replace("</h1>", f"</h1>\n{line}")
    assert reading.with_line("<p>A</p>", ["b"], "").endswith("b</p>\n<p>A</p>")


def test_a_page_that_needs_nothing_stays_as_it_is():
    assert reading.with_line("<h2>A</h2><h2>B</h2>", (), "") == "<h2>A</h2><h2>B</h2>"
