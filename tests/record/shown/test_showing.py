"""What a page knows while it is drawn: what it asked for, where it stands, and what went wrong."""

import pytest

from anatomy.record import recording, showing
from anatomy.record.bounded import in_words
from anatomy.record.showing import Asked, PageError, selectors, unique, using
from anatomy.table.errors import AnatomyError, UnknownName
from tests.fakes import synthetic

PAGES = {"index.md": "", "a/b.md": "a/b/", "a/c.md": "a/c/", "d.md": "d.html"}


def test_what_is_shown_is_looked_up_once_in_a_build_and_told_by_page(monkeypatch):
    looks = []
    find = recording.find
    monkeypatch.setattr(recording, "find", lambda *given, **p: looks.append(p) or find(*given, **p))
    first = synthetic.showing(line=3)
    second = synthetic.showing(page="", known=first.known)
    for page in (first, first, second):
        found = page.find("contiguity.bench", m="4096")
        assert found.recording.params["m"] == 4096 and found.freshness.current
    other = first.find("contiguity.bench", m=512)
    assert other.recording is None and other.freshness.state == "missing"
    assert len(looks) == 2 and first.looked_up() == [found, other] and second.looked_up() == [found]
    assert [each.place for each in first.asked] == ["page.md:3"] * 3
    assert [each.place for each in second.asked] == ["here"]
    assert not found.on_cpu and found.command == "pytorch-gpu-anatomy record contiguity.bench"


def test_while_it_collects_a_page_only_notes_what_it_would_show():
    page = synthetic.showing(collecting=True)
    found = page.find("contiguity.bench")
    assert (found.recording, found.freshness.state) == (None, "missing")
    assert page.ceilings is None and page.looked_up() == []
    assert list(dict.fromkeys(each.name for each in page.asked)) == [
        "contiguity.bench",
        "limits.ceilings",
    ]
    drawn = synthetic.showing()
    assert drawn.ceilings.measured and drawn.ceilings is drawn.ceilings
    assert {each.name for each in drawn.asked} == {"limits.ceilings"}


def test_the_names_of_elements_are_unique_on_a_page():
    page = synthetic.showing()
    assert [page.unique(name) for name in "aaba"] == ["a", "a-2", "b", "a-3"]


@pytest.mark.parametrize(
    ("page", "target", "link"),
    [
        ("a/b.md", "c.md", "../c/"),
        ("a/b.md", "c.md#part", "../c/#part"),
        ("a/b.md", "../index.md", "../.."),
        ("a/b.md", "../d.md#x", "../../d.html#x"),
        ("a/b.md", "b.md", "./"),
        ("d.md", "a/b.md", "a/b/"),
        ("index.md", "d.md", "d.html"),
        ("index.md", "", None),
        ("d.md", "b.md", None),
    ],
)
def test_a_page_is_linked_from_where_another_stands(page, target, link):
    here = synthetic.showing(page=page, url=PAGES[page], pages=PAGES)
    if link is None:
        with pytest.raises(UnknownName, match="no page"):
            here.page_link(target)
    else:
        assert here.page_link(target) == link
    assert synthetic.showing().page_link(target) == target, "outside of a build nothing is known"


def test_blocks_print_into_their_page_and_share_variables_by_session(capsys):
    page = synthetic.showing()
    assert page.run("x = 1\nprint(x, __name__)", 3, "one") == "1 __page__\n" and page.line == 3
    assert page.run("x += 1; print(x)", 5, "one") == "2\n"
    assert page.run("import sys; sys.stdout.write('log')", 7) == ""
    assert capsys.readouterr().out == "log"
    assert page.run("x = 1", 7) == ""
    for session in ("", "other"):
        with pytest.raises(PageError, match=r"^page\.md:12: the block failed with NameError: "):
            page.run("\n\n\nprint(x)", 8, session)
    assert page.run("from anatomy.record import showing; print(showing.current().page)", 9) == (
        "page.md\n"
    )


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("1\n2 +\n", "page.md:12: the block failed with SyntaxError: "),
        ("def f():\n    1 / 0\n\nf()", "page.md:12: the block failed with ZeroDivisionError: "),
        ("\nint('a')", "page.md:12: the block failed with ValueError: "),
        ("import json\njson.loads('')", "page.md:12: the block failed with JSONDecodeError: "),
        ("\nraise SystemExit(2)", r"page.md:12: the block ended with SystemExit\(2\); a page"),
        ("eval('1 +')", "page.md:11: the block failed with SyntaxError: "),
    ],
)
def test_a_block_that_fails_is_named_with_its_line(code, said):
    with pytest.raises(PageError, match=f"^{said}"):
        synthetic.showing().run(code, 10)


def test_ctrl_c_is_no_error_of_a_block():
    with pytest.raises(KeyboardInterrupt):
        synthetic.showing().run("raise KeyboardInterrupt", 1)


def test_errors_are_one_sentence():
    assert in_words(AnatomyError("It is so."), "the block") == "It is so."
    assert in_words(KeyError("a\n  b"), "it") == "it failed with KeyError: 'a\\n b'"
    assert in_words(ValueError("a\n  b"), "it") == "it failed with ValueError: a b"


def test_in_a_plain_session_the_checkouts_recordings_are_shown(monkeypatch):
    monkeypatch.setenv("ANATOMY_RECORDINGS", str(synthetic.shared()))
    monkeypatch.setenv("ANATOMY_MACHINE", synthetic.MACHINE)
    now = showing.current()
    assert (now.root, now.machine, now.page) == (synthetic.shared(), synthetic.MACHINE, "")
    with using(synthetic.showing(page="a.md")) as page:
        assert showing.current() is page
    assert showing.current().page == ""
    monkeypatch.setenv("ANATOMY_MACHINE", "toy-gpv")
    with pytest.raises(UnknownName, match="Did you mean 'toy-gpu'"):
        showing.current()


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("extra:\n  machine: some-gpu", "some-gpu"),
        ("extra:\n\tmachine:\tsome.gpu-2 # one\n", "some.gpu-2"),
        ("extra:\n  a: 1\n\n  machine: one\n  machine_b: two\n", "one"),
        ("extra:\n  a: 1\nmachine: one\n", None),
        ("other:\n  machine: one\n", None),
    ],
)
def test_the_sites_settings_name_the_machine_under_extra(tmp_path, monkeypatch, text, slug):
    monkeypatch.delenv("ANATOMY_MACHINE", raising=False)
    (tmp_path / "mkdocs.yml").write_text(text)
    if slug:
        assert showing.shown_machine(tmp_path) == slug
    else:
        with pytest.raises(AnatomyError, match="Nothing says which machine"):
            showing.shown_machine(tmp_path)


def test_selectors_that_an_experiment_has_too_are_parameters_of_it():
    given = {"m": 8}
    assert selectors("alignment.thresholds", given, "matmul", "gpu_warm") == (
        given | {"op": "matmul"}
    )
    assert selectors("alignment.thresholds", given, None, "gpu_warm") == given
    assert selectors("contiguity.bench", given, "matmul", None) == given


def test_of_calls_that_are_alike_the_first_place_stands():
    calls = [Asked("a.b", {"m": 1, "n": 2}, "1"), Asked("a.b", {"n": 2, "m": 1}, "2")]
    calls += [Asked("a.c", {"m": 1, "n": 2}, "3"), Asked("a.b", {"m": 2, "n": 2}, "4")]
    assert [each.place for each in unique(calls)] == ["1", "3", "4"]
