"""No figure on a page is typed by hand; sizes, counts and what says where it is from may stand."""

from pathlib import Path

import pytest

from anatomy.figures.text import inline, prose
from anatomy.table.errors import BadParameter
from tests.fakes import synthetic

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.parametrize(
    "figure",
    [
        *("1.8×", "1.8x", "2x", "3.2 TB/s", "25 ms", "57.6 µs", "10 us", "0.3 s", "812 TFLOP/s"),
        *("43.9 TFLOPS", "40 %", "40%", "1,000 GB/s", "2 to 10 times as", "2-10×", "10–15 µs"),
        *("700 W", "1755 MHz", "1.98 GHz", "41 °C", "3 seconds", "5 times faster"),
        *("3 times slower", "96 %", "195 %"),
    ],
)
def test_a_planted_figure_is_found_with_its_line(figure):
    text = f"---\ntitle: T\n---\n\n# T\n\nIt takes {figure} here.\n"
    assert prose.figures(text) == [(7, figure)]
    (told,) = prose.problems("a.md", text)
    assert told.startswith(f"a.md:7: the figure {figure!r} is typed by hand.")
    assert f"[[cited: {figure} | SOURCE]]" in told


@pytest.mark.parametrize(
    "where",
    [
        "| a | {} |",
        "- a list {}",
        "# A heading of {}",
        "**{}**",
        "> a quote of {}",
        "([{}](a.md))",
        "=== \"tab\"\n\n    indented {}",
        '```python exec="on" html="1"\nshow("a.b", caption="It takes {}.")\n```',
        '    ```python exec="on"\n    show("a.b",\n         caption="It takes {}.")\n    ```',
        "---\ndescription: It takes {}.\n---",
    ],
)  # fmt: skip
def test_it_is_found_wherever_a_reader_sees_it(where):
    assert [figure for _, figure in prose.figures(where.format("1.8×"))] == ["1.8×"]


@pytest.mark.parametrize(
    "text",
    [
        "an fp16 product of 4096 × 4096 matrices, 4 x 16 heads, M x N x K",
        "4096 columns, 16 MiB, 2 bytes, 128-byte lines, sm_90, CUDA 13.0, PyTorch 2.13, H200",
        "with a 95 % interval, or 95% intervals, of 95 % or more",
        "in 2026, step 3, W1 to W10, 12 blocks, 24 or 48",
        "`1.8×` and ``25 ms`` in code, <!-- 25 ms --> in a comment",
        "[[cited: 4.8 TB/s | NVIDIA]] and [[given: 0.3 s | the budget]] and [[a.b.c | us.1]]",
        "[a link](https://example.org/25%20ms/1.8x) and <span title='25 ms'>words</span>",
        "```sh\nsleep 25 ms\n```",
        '```python\nshow("1.8×")\n```',
        "<!-- given: the rules, committed before the run -->\n| a | 25 ms |\n| b | 1 % |\n",
    ],
)
def test_what_is_no_measurement_may_stand(text):
    assert prose.figures(text) == []


def test_one_comment_stands_for_the_block_under_it_and_no_more():
    text = "<!-- given: the rules -->\nWithin 1 %.\nIn 0.3 s.\n\nIt takes 25 ms.\n"
    assert prose.figures(text) == [(5, "25 ms")]
    assert prose.figures("<!-- given: -->\nWithin 1 %.\n") == [(2, "1 %")]


def test_several_on_a_page_are_told_in_order():
    text = "one 1 ms\n\ntwo 2 ms and 3 ms\n"
    assert prose.figures(text) == [(1, "1 ms"), (3, "2 ms"), (3, "3 ms")]


def test_cited_and_given_figures_say_where_they_are_from():
    page = synthetic.showing()
    html = inline.render(page, "cited: 4.8 TB/s | NVIDIA, H200 datasheet")
    assert 'class="cited"' in html and "NVIDIA, H200 datasheet" in html and "4.8 TB/s" in html
    assert 'title="the budget"' in inline.render(page, "given: 0.3 s | the budget")
    for body in ("cited: 4.8 TB/s", "given: 0.3 s", "cited: | x"):
        with pytest.raises(BadParameter, match="figure has a "):
            inline.render(page, body)


PAGES = [path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize("name", PAGES)
def test_no_figure_on_our_pages_is_typed_by_hand(name):
    assert prose.on_pages(DOCS, [name]) == []
