"""A page's blocks end in time, can't end the build, and are run or told; each with its line."""

import subprocess
import sys
import textwrap
import time

import pytest

from anatomy.figures.text import inline, values
from anatomy.record import bounded, signatures
from anatomy.record.showing import PageError
from anatomy.site.building import Building
from anatomy.site.collecting import on_page
from anatomy.table.errors import BadParameter, UnknownName
from tests.fakes import synthetic
from tests.fakes.sites import CHECKOUT, block

BENCH = "contiguity.bench.matmul.gpu_warm"


@pytest.fixture
def soon(monkeypatch):
    monkeypatch.setenv(bounded.VARIABLE, "0.2")


def building() -> Building:
    return Building(synthetic.shared(), synthetic.MACHINE)


STOPPED = "it was stopped after 0.2 s. Pages only show what is recorded"
BLOCKS = {
    "a loop": ("while True:\n    pass", STOPPED),
    "a loop that goes on after errors": (
        "while True:\n    try:\n        sum(range(99))\n    except Exception:\n        pass",
        STOPPED,
    ),
    "a sleep": ("import time\ntime.sleep(1e6)", STOPPED),
    "an end of the process": ("import os\nos._exit(0)", "it called os._exit(0)"),
    "no Exception": ("raise GeneratorExit", "the block failed with GeneratorExit"),
    "one of its own": ("class E(BaseException): pass\nraise E(1)", "the block failed with E: 1"),
}


@pytest.mark.parametrize("what", BLOCKS)
def test_a_block_that_would_hang_or_end_the_build_is_named_before_anything_is_drawn(soon, what):
    code, says = BLOCKS[what]
    _, wrong = on_page("bad.md", f"# T\n\n{block(code)}")
    assert len(wrong) == 1 and says in wrong[0]
    place, line, _ = wrong[0].split(":", 2)
    assert place == "bad.md" and 4 <= int(line) <= 8


def test_code_that_catches_it_is_stopped_again(soon, monkeypatch):
    monkeypatch.setattr(bounded, "AGAIN_S", 0.5)
    caught = []
    with pytest.raises(bounded.PageStopped), bounded.bounded():
        while True:
            try:
                while True:
                    pass
            except bounded.PageStopped:
                caught.append(time.monotonic())
                if len(caught) > 1:
                    raise
    assert 0.2 < caught[1] - caught[0] < 60


def test_the_limit_can_be_raised_and_is_checked(monkeypatch):
    assert bounded.limit_s() == bounded.LIMIT_S
    monkeypatch.setenv(bounded.VARIABLE, "900")
    assert bounded.limit_s() == 900
    for given in ("soon", "0", "-1", "nan", "1e9"):
        monkeypatch.setenv(bounded.VARIABLE, given)
        with pytest.raises(BadParameter, match=r"must be a number of seconds, such as 600"):
            bounded.limit_s()


def test_code_that_never_comes_back_is_ended_with_the_name_of_its_block(tmp_path):
    code = textwrap.dedent(
        """
        from anatomy.record import bounded
        from anatomy.site.collecting import on_page
        bounded.AGAIN_S = bounded.GRACE_S = 0.2
        on_page("bad.md", '```python exec="on"\\nsum(range(10**12))\\n```\\n')
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=CHECKOUT,
        env={"PYTHONPATH": str(CHECKOUT), bounded.VARIABLE: "0.2", "PATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode != 0 and "bad.md:1" in done.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[ never", "[[: no ]] closes it. Write \\[[ for two plain brackets."),
        ("[[ and [[ " * 2000, "[[: no ]] closes it"),
        ("[claim:slice-doubles-fp16]", "a reference stands in two brackets: [[claim:slice"),
        (f"[{BENCH}.contiguous.ratio]", f"in two brackets: [[{BENCH}.contiguous.ratio]]"),
        (f"[[{BENCH}.contiguous.ratio | >999999999]]", "numbers of two digits at most"),
        ("[[limit:matmul fp16 | .999999999f]]", "numbers of two digits at most"),
        ("[[machine:gpus]]", "no field of the machine 'gpus'. Did you mean 'gpu'"),
        ("[[no.such.ratio]]", "The nearest of "),
    ],
)
def test_what_would_be_published_as_text_or_never_end_is_one_error_with_its_line(text, says):
    _, wrong = inline.replace(synthetic.showing(page="bad.md"), f"# T\n\n{text}\n")
    assert len(set(wrong)) == 1 and wrong[0].startswith("bad.md:3: ") and says in wrong[0]
    assert len(wrong[0]) < 600


@pytest.mark.parametrize(
    "text",
    [
        "[x](y.md)",
        "[a: b]",
        "[see 1.2]",
        "[x]: y",
        "![limit:copy](i.png)",
        "\\[claim:x]",
        "[1.5 (2)]",
    ],
)
def test_ordinary_brackets_stay(text):
    assert inline.replace(synthetic.showing(), text) == (text, [])


def test_a_reference_that_breaks_is_an_error_of_its_page(monkeypatch):
    monkeypatch.setattr(values.units, "format_value", lambda *given: 1 / 0)
    _, wrong = inline.replace(synthetic.showing(), f"[[{BENCH}.sliced_offset_view.ratio | .2f]]")
    assert len(wrong) == 1
    assert wrong[0].startswith("page.md:1: ") and "failed with ZeroDivisionError" in wrong[0]


def test_a_page_of_facts_alone_has_the_machines_from_its_ceilings():
    assert inline.replace(synthetic.showing(), "[[machine:gpu]]") == ("Toy GPU", [])


def begun(text: str) -> tuple[Building, str, list[str]]:
    made = building()
    return made, *made.page("a.md", text, 0)


def test_a_block_that_prints_nothing_is_an_error_unless_others_use_it_or_its_source_is_shown():
    _, _, wrong = begun(block("x = 1"))
    assert len(wrong) == 1 and wrong[0].startswith("a.md:1: the block prints nothing")
    made, _, wrong = begun(
        block("x = 1", 'exec="on" session="s"') + block("x", 'exec="on" source="above" session="s"')
    )
    assert not wrong and made.block("a.md:1") == made.block("a.md:4") == ""
    made, _, wrong = begun(block("print()"))  # as where nothing is recorded yet
    assert not wrong and made.block("a.md:1") == "\n"


@pytest.mark.parametrize(
    "code", ["import anatomy; print(anatomy)", "print(__import__('os').getcwd())"]
)
def test_a_path_of_the_builders_machine_is_not_published(code, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    made, _, wrong = begun(block(code))
    assert len(wrong) == 1 and made.block("a.md:1") == ""
    assert wrong[0].startswith("a.md:1: the block prints a path of this machine")
    assert str(signatures.PACKAGE.parent) != str(tmp_path)


def test_a_block_that_markdown_does_not_run_is_told():
    made, marked, wrong = begun(block("print(1)") + block("print(2)"))
    assert not wrong and made.block("a.md:1") == "1\n"
    assert made.page_done("") == [
        "a.md:4: the block was not run: Markdown takes it for ordinary text here."
    ]
    assert made.block("a.md:4") == "2\n"
    assert not made.page_done("<p>1</p>") and len(made.page_done(marked)) == 2
    with pytest.raises(PageError, match=r"^a\.md: a block that is printed can't be executed"):
        made.block("")


LEAVES = {
    "another program takes its place": (
        "import os\nos.execv('/bin/true', ['true'])",
        "it ended the process that ran it, with status 0; a page may not end a build.",
    ),
    "killed": (
        "import os\nos.kill(os.getpid(), 9)",
        "with signal 9; a page may not end a build. The system may have had no memory left.",
    ),
    "_exit by another name": ("import posix\nposix._exit(0)", "with status 0; a page may not"),
    "it never comes back to Python": (
        "sum(range(10**12))",
        "s. Pages only show what is recorded",
    ),
}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere pages are drawn in one process")
@pytest.mark.parametrize("what", LEAVES)
def test_a_block_that_ends_its_process_is_named_and_other_pages_go_on(what):
    code, says = LEAVES[what]
    asked = f"""
        from anatomy.record import bounded
        from anatomy.site import collecting
        bounded.GRACE_S = 0.5
        good = {block("from anatomy.page import show; show('contiguity.bench')")!r}
        bad = {block(code)!r}
        texts = {{"a.md": good, "bad.md": "# T\\n\\n" + bad, "c.md": good, "d.md": bad}}
        asked, wrong = collecting.on_pages(texts, {{}})
        print([name in asked and len(asked[name]) > 0 for name in texts], *wrong, sep="\\n")
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(asked)],
        cwd=CHECKOUT,
        env={"PYTHONPATH": str(CHECKOUT), bounded.VARIABLE: "0.5", "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    shown, *wrong = done.stdout.splitlines()
    assert shown == "[True, False, True, False]" and len(wrong) == 2, done.stderr
    assert wrong[0].startswith("bad.md:3: it ") and says in wrong[0]
    assert wrong[1].startswith("d.md:1: it ") and says in wrong[1]


def test_of_many_names_the_nearest_are_told():
    many = [f"topic.name_{n}" for n in range(99)]
    said = str(UnknownName("experiment", "topic.nmae_1" + "x" * 9999, many))
    assert "The nearest of 99: topic.name_1" in said and len(said) < 500
    assert "Known: a, b." in str(UnknownName("thing", "zzz", ["b", "a"]))
