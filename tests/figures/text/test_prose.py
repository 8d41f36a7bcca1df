"""No figure on a page is typed by hand, and no verdict stands without what decides it."""

from pathlib import Path

import pytest

from anatomy.claims import WORDS
from anatomy.figures.text import frontmatter, inline, prose
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


def test_a_verdict_for_which_no_paragraph_is_written_is_told():
    bound = "# T\n\n[[when claim:some-id is holds]]\nSo.\n[[when fails, inconclusive]]\nNot so.\n"
    (told,) = prose.problems("a.md", f"{bound}[[end]]\n")
    assert told.startswith("a.md:3: on another machine some-id may come to holds in part, not ")
    assert told.endswith("[[when holds in part, not measurable here]].")
    rest = "[[when holds in part, not measurable here]]\nWho knows.\n[[end]]\n"
    assert prose.problems("a.md", bound + rest) == []


def test_cited_and_given_figures_say_where_they_are_from():
    page = synthetic.showing()
    html = inline.render(page, "cited: 4.8 TB/s | NVIDIA, H200 datasheet")
    assert 'class="cited"' in html and "NVIDIA, H200 datasheet" in html and "4.8 TB/s" in html
    assert 'title="the budget"' in inline.render(page, "given: 0.3 s | the budget")
    for body in ("cited: 4.8 TB/s", "given: 0.3 s", "cited: | x"):
        with pytest.raises(BadParameter, match="figure has a "):
            inline.render(page, body)


@pytest.mark.parametrize(
    ("sentence", "verdict"),
    [
        ("Not being contiguous costs a product nothing.", "costs a product nothing"),
        ("They are all the same.", "are all the same"),
        ("The slice takes about twice as long.", "takes about twice"),
        ("A half needs half of the time, and the card shows it.", "needs half"),
        ("Mixed precision gains nothing here.", "gains nothing"),
        ("FP8 loses on small models.", "loses"),
        ("The view is not much slower, as expected.", "is not much slower"),
        ("Where the products are small, fp16 is faster.", "is faster"),
        ("On large ones *channels_last* never pays.", "never pays"),
        ("With `amp bf16` the step takes hardly\nless.", "takes hardly less"),
        ("It takes [[given: 0.3 s | the budget]], and is slower on [[machine:gpu]].", "is slower"),
        ("Both are measured.[[a.b.c.ratio]] is one. The other is slower!", "is slower"),
        ("| A | it is faster |\n| B | [[a.b.c.ratio]] |", "is faster"),
        ("- [[a.b.c.ratio]] for one\n- the other is faster", "is faster"),
        (f"[[when claim:a is {', '.join(WORDS)}]]\nSo.\n[[end]]\nIt is faster.", "is faster"),
        ("<!-- given: logic -->\nIt is slower.\n\nThis is faster.", "is faster"),
        ("<!-- to do -->\nIt is faster.", "is faster"),
        ('```python exec="on"\nshow("a.b", caption="The second is faster.")\n```', "is faster"),
        ("---\ndescription: A view is slower.\n---", "is slower"),
    ],
)
def test_a_verdict_that_no_recording_decides_is_found(sentence, verdict):
    ((line, found),) = prose.verdicts(f"# Is it faster?\n\n{sentence}\n")
    assert found == verdict and line >= 3
    (told,) = prose.problems("a.md", sentence)
    assert f": the verdict {verdict!r} rests on no recording." in told
    assert "[[claim:ID | verdict]]" in told and "<!-- given: REASON -->" in told


def test_a_bare_verdict_has_the_line_of_its_sentence():
    assert prose.verdicts("One.\n\nTwo. [[a.b.c.ratio]] is ours.\nThis one\nis slower.\n") == [
        (4, "is slower")
    ]


@pytest.mark.parametrize(
    "text",
    [
        "It is faster: [[a.b.c.ratio | range]].",
        "It is\n[[claim:a | verdict]]: this is slower.",
        "| A | it is faster | [[a.b.c.ratio]] |",
        "[[when claim:a is holds]]\nIt is faster.\n[[when fails, holds in part, inconclusive, not "
        "measurable here]]\nIt is slower.\n[[end]]",
        "## Which one is faster?\n\nAnd where is it slower?",
        'The seed says "a view is always slower" of it, and `it is faster` is code.',
        "If the host is slower, the GPU waits. It waits where a launch takes longer than a kernel.",
        "It can be slower, must not be faster and would hardly take longer. It has to be faster.",
        "A host that is faster queues more than is needed.",
        "Below 1 the view is faster.",
        "The kernels are the same here, <!-- given: both call one library --> and take the same.",
        "<!-- given: predictions -->\n| E1 | it takes twice as long |\n| E2 | it is slower |",
        "[[given: It takes twice as long | it is done two times]].",
        "The same card has twice the memory. Nothing else runs. Take half of it.",
        '```python exec="on"\nshow("a.b", caption="It is faster: [[a.b.c.ratio]].")\n```',
    ],
)
def test_what_is_decided_or_tells_no_result_may_stand(text):
    assert prose.verdicts(text) == []


PAGES = [path.relative_to(DOCS).as_posix() for path in frontmatter.files_in(DOCS)]


@pytest.mark.parametrize("name", PAGES)
def test_our_pages_type_no_figure_and_leave_no_verdict_bare(name):
    assert prose.on_pages(DOCS, [name]) == []
