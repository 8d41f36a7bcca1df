"""Fences: what is executed, on which line, and what would have been swallowed in silence."""

import pytest

from anatomy.figures.text import fences


def page(header: str, code: str = "print(1)") -> str:
    return f"# Title\n\n```{header}\n{code}\n```\n"


def told(text: str) -> str:
    return " | ".join(f"{line}: {what}" for line, what in fences.problems(text))


def test_a_block_is_found_with_its_line_options_and_code():
    (fence,) = fences.find(page('python exec="on" html="1" session="a b"', "x = 1\nprint(x)"))
    assert (fence.line, fence.end, fence.language) == (3, 6, "python")
    assert fence.options == {"exec": "on", "html": "1", "session": "a b"}
    assert fence.code == "x = 1\nprint(x)"
    assert fence.executes and not fence.problems


def test_an_indented_block_loses_its_own_indentation_only():
    text = '=== "Tab"\n\n    ```python exec="on"\n    if x:\n        print(x)\n    ```\n'
    (fence,) = fences.find(text)
    assert fence.code == "if x:\n    print(x)"
    assert fence.line == 3


def test_a_fence_in_a_longer_fence_is_that_ones_text():
    text = '````md\n```python exec=on\nprint(1)\n```\n````\n\n~~~python exec="on"\n1\n~~~\n'
    assert [fence.language for fence in fences.find(text)] == ["md", "python"]
    assert not fences.problems(text)


@pytest.mark.parametrize("header", ['python exec="off"', "python", 'python title="exec"', ""])
def test_a_block_that_does_not_ask_for_it_is_not_executed(header):
    (fence,) = fences.find(page(header))
    assert not fence.executes and not fence.problems


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ("python exec=on", 'exec=on must be quoted: exec="on"'),
        ('python exec="on" html=1', 'html=1 must be quoted: html="1"'),
        ('python exce="on" html="1"', "no option 'exce'. Did you mean exec?"),
        ('python exec="on" htlm="1"', "no option 'htlm'. Did you mean html?"),
        ('python exec="onn"', "exec='onn' must be one of on, off"),
        ('python exec="on" source="abvoe"', "source='abvoe' must be one of above"),
        ('python html="1"', "the option html does nothing without exec"),
        ('bash exec="on"', "only python blocks are executed, and this one is 'bash'"),
        ('exec="on"', "only python blocks are executed"),
        ('python exec="on" exec="on"', "exec is given twice"),
        ('python exec="on', "can't be read as options|must be quoted"),
        ("{.python exec=on}", 'exec=on must be quoted: exec="on"'),
        ('{.python exec="on" html="1"}', "options without braces"),
        (' {.python exec="on"}', "options without braces"),
        ('python {exec="on"}', "options without braces"),
    ],
)
def test_what_the_extensions_would_swallow_is_a_problem_with_its_line(header, says):
    found = told(page(header))
    assert found.startswith("3: ")
    assert any(part in found for part in says.split("|")), found


def test_a_snippet_in_an_executed_block_is_refused():
    assert "may not include a snippet" in told(page('python exec="on"', '--8<-- "x.py"'))
    assert not told(page("python", '--8<-- "x.py"'))


def test_a_fence_that_is_never_closed_is_a_problem():
    assert told("text\n\n```python\nprint(1)\n") == "3: the fence is never closed."


def test_two_blocks_of_one_page_may_not_share_an_id():
    text = page('python exec="on" id="a"') + page('python exec="on" id="a"')
    assert told(text) == '8: id="a" is taken by the block at line 3 of this page.'


def test_each_executed_block_gets_its_place_as_id_and_keeps_its_prefix():
    text = page('python exec="on" id="mine"') + page('python exec="on"') + page("python")
    lines = fences.with_places(text, "a/b.md", offset=10).split("\n")
    assert lines[2] == '```python exec="on" id="a/b.md:13" idprefix="mine-"'
    assert lines[7] == '```python exec="on" id="a/b.md:18" idprefix="block-2-"'
    assert lines[12] == "```python"


def test_the_badge_follows_the_first_figure_and_its_tabs():
    page = '# T\n\nLead.\n\n=== "a"\n\n    ```python exec="on" id="x"\n    print()\n    ```\n\n'
    page += '=== "b"\n\n    Other.\n\nThen.\n\n## S\n'
    assert page.split("\n")[fences.first_figure(page, {"x": "<!--picture 0-->"})] == "Then."
    assert fences.first_figure(page, {"x": "<p>no figure</p>"}) is None
    assert fences.first_figure(page.replace("Lead.", "## S"), {"x": "<figure>"}) is None


def test_a_badge_on_few_marked_figures_stands_below_the_first_of_them():
    page = '```python exec="on" id="x"\n```\n\n## S\n\n??? note "F"\n\n'
    page += '    ```python exec="on" id="y"\n    ```\n\n    More.\n\nThen.\n'
    printed = {"x": "<figure>", "y": "<!--picture 0-->"}
    assert page.split("\n")[fences.first_figure(page, printed, {"y"})] == "Then."
    assert fences.first_figure(page, printed, set()) is None
