"""What a page takes to read: counted from its words and code, said under the first screen."""

import pytest

from anatomy.site import reading

WORDS = "word " * 220


@pytest.mark.parametrize(
    ("html", "minutes"),
    [
        ("<p>One word.</p>", 1),
        (f"<p>{WORDS}</p>", 1),
        (f"<p>{WORDS} more</p>", 2),
        (f"<p>{WORDS * 5}</p>", 5),
        ("<pre><code>" + "x = 1\n" * 60 + "</code></pre>", 2),
    ],
)
def test_words_and_lines_of_code_take_time(html, minutes):
    assert reading.minutes(html) == minutes


@pytest.mark.parametrize("element", ["figure", "table", "details", "aside"])
def test_what_is_looked_at_or_folded_is_not_read(element):
    page = f'<p>{WORDS}</p><{element} class="x">{WORDS * 9}</{element}><!-- {WORDS} -->'
    assert reading.minutes(page) == 1


def test_the_line_stands_under_the_heading():
    page = "<h1>A</h1><p>Answer.</p><h2>Why?</h2><p>So.</p>"
    shown = reading.with_line(page, ["strides", "<views>"])
    line = (
        '<p class="reads" data-search-exclude>1 min · you should know: strides, &lt;views&gt;</p>'
    )
    assert shown == page.replace("</h1>", f"</h1>\n{line}")
    assert reading.with_line("<p>A</p>", ["b"]).endswith("b</p>\n<p>A</p>")


def test_a_page_that_needs_nothing_stays_as_it_is():
    assert reading.with_line("<h2>A</h2><h2>B</h2>", ()) == "<h2>A</h2><h2>B</h2>"
