"""Whatever stands in `[[...]]` or behind a fence gives a figure, or one error with its line."""

import os
import re

import markdown_exec
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from markdown import Markdown

from anatomy.figures.text import fences, inline
from anatomy.record import bounded
from anatomy.record.showing import Asked
from anatomy.site.building import Building
from anatomy.site.collecting import on_page
from anatomy.table.errors import AnatomyError
from tests.fakes import synthetic
from tests.fakes.sites import block

# Another is drawn with ANATOMY_TEST_SEED=N; a failure prints the one that it came from.
SEED = int(os.environ.get("ANATOMY_TEST_SEED", "1"))
DRAWN = settings(max_examples=300, deadline=None, database=None, print_blob=True)

PIECES = st.sampled_from(
    [
        *("contiguity.bench", "tensor_layout.report", "(m=512)", "(", ")", "(dtype=fp16, m=4096)"),
        *(".matmul", ".gpu_warm", ".sliced_offset_view", ".contiguous", ".ratio", ".median_s"),
        *(".verdict", ".role=control", '."a.b"', ".'x", "=", ".", " | ", "|", "range", ".2f"),
        *("us.1", "%", ">99", "<9" * 40, "x" * 500, "claim:", "slice-doubles-fp16", "verdict"),
        *("limit:", "matmul fp16", "ridge", "seed:", "fp16-2048.matmul.contiguous", "machine:"),
        *(
            "gpu",
            "cited: 1 s",
            "given:",
            "index: Techniques",
            "advice: Techniques",
            "target:",
            "power",
        ),
        *("when claim:x is holds", "end", "[", "]", "[[", "]]", "`", "```", "<!--", "-->", "\\"),
        *("\n", "\n\n", "    ", "<b>", "&", "\x00", "\x02", "é", "9" * 5000, "{: a=b }"),
    ]
)
ANY = st.lists(PIECES | st.text(max_size=12), max_size=8).map("".join)
OPTIONS = st.sampled_from(
    [
        *("python", ".python", "{.python", "py", "Python", "bash", " ", "  ", "}", "{", "\t", "#x"),
        *(' exec="on"', " exec=on", " exec", ' exec="off"', ' html="1"', " html='1'", ' exec=""'),
        *(' id="a"', ' id="', ' session="s"', ' source="above"', ' source="x"', ' title="a b"'),
        *(' tabs="a|b"', ' result="json"', ' updatetoc="no"', ' linenums="1"', ' hl_lines="a"'),
        *(" idprefix='x'", ' workdir="/"', ' width="9"', ' returncode="x"', "=", '"', "'", ","),
    ]
)
HEADERS = st.lists(OPTIONS | st.text(max_size=6), max_size=7).map("".join)
PLACE = re.compile(r"page\.md:\d+: .")


@pytest.fixture(autouse=True, scope="module")
def never_long():
    """Nothing here may take long, and what does is an error that no test allows."""
    before = bounded.LIMIT_S
    bounded.LIMIT_S = 20.0
    print(f"ANATOMY_TEST_SEED={SEED}")
    yield
    bounded.LIMIT_S = before


def told(wrong: list[str]) -> None:
    for each in wrong:
        assert PLACE.match(each), each
        assert "was stopped" not in each and len(each) < 3000


@seed(SEED)
@DRAWN
@given(body=ANY)
def test_any_reference_is_a_figure_or_an_error_with_its_line(body):
    shown = [Asked("contiguity.bench", {}, "page.md:1")]
    html, wrong = inline.replace(synthetic.showing(shown=shown), f"word [[{body}]] word")
    told(wrong)
    if not wrong and re.fullmatch(r"[\w.:(=),| -]+", body):
        assert "[[" not in html and html != f"word [[{body}]] word"


@seed(SEED)
@DRAWN
@given(body=ANY)
def test_any_page_can_be_asked_what_it_shows(body):
    told(on_page("page.md", f"# T\n\n{body}\n\n[[{body}]]\n\nend\n")[1])


@seed(SEED)
@DRAWN
@given(header=HEADERS)
def test_any_fence_is_run_or_shown_as_code_or_an_error_with_its_line(header):
    header = header.replace("\n", " ").replace("ran", "")  # what the block prints if it is run
    text = f"# T\n\n```{header}\nprint('ra' + 'n')\n```\n"
    building = Building(synthetic.shared(), synthetic.MACHINE)
    marked, wrong = building.page("page.md", text, 0)
    told(wrong)
    if wrong:
        return
    try:
        html = rendered(building, marked)
    except AnatomyError as error:
        told([str(error)])
        return
    executes = [fence for fence in fences.find(text) if fence.executes]
    assert ("ran" in html) == bool(executes), html
    assert not building.page_done(html)


@pytest.mark.parametrize("header", ["}ran", "}", "py*"])
def test_a_fence_whose_language_nobody_can_read_is_an_error(header):
    assert [line for line, _ in fences.problems(f"# T\n\n```{header}\n1\n```\n")] == [3]


def rendered(building: Building, text: str) -> str:
    """The page as Markdown makes it, with its blocks run as the site's hooks do."""

    def run(code, returncode=None, session=None, id=None, **extra):
        return building.block(id)

    def execute(source, language, css_class, options, md, **more):
        return markdown_exec.base_format(language=language, run=run, code=source, md=md, **options)

    fence = {
        "name": "python",
        "class": "python",
        "validator": markdown_exec.validator,
        "format": execute,
    }
    settings = {"pymdownx.superfences": {"custom_fences": [fence]}}
    page = Markdown(
        extensions=["attr_list", "pymdownx.highlight", "pymdownx.superfences", "pymdownx.tabbed"],
        extension_configs=settings | {"pymdownx.tabbed": {"alternate_style": True}},
    )
    return page.convert(text)


def test_the_pages_of_this_test_are_run_as_those_of_the_site():
    made = Building(synthetic.shared(), synthetic.MACHINE)
    text, _ = made.page("page.md", block('print("<b>ran</b>")'), 0)
    assert "<b>ran</b>" in rendered(made, text)
