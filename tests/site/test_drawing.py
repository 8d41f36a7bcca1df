"""Pages drawn ahead are those drawn one by one; a preview asks only what was edited."""

import subprocess
import sys
import textwrap

from anatomy.site import building, collecting, drawing
from tests.fakes import synthetic
from tests.fakes.sites import CHECKOUT, block

CHART = block('from anatomy.page import show\nprint(show("contiguity.bench", chart="times"))')
TEXT = f"# T\n\n<!--picture 99-->\n\n{CHART}\n{CHART}"


def test_pages_drawn_ahead_are_those_drawn_one_by_one():
    code = f"""
        from pathlib import Path
        from anatomy.site import drawing
        from anatomy.site.building import Building
        drawn = []
        for forks in (True, False):
            drawing._can_fork = lambda: forks
            made = Building(Path({str(synthetic.shared())!r}), {synthetic.MACHINE!r})
            texts = {{f"{{n}}.md": ({TEXT!r}, n) for n in range(5)}}
            made.draw_ahead(texts)
            assert bool(made._ahead._workers) == forks
            drawn.append([made._ahead[name] for name in texts])
            made.stop()
        assert drawn[0] == drawn[1] and len(drawn[0]) == 5
        assert all(each.pictures and not each.wrong for each in drawn[0])
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=CHECKOUT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_pictures_are_put_by_while_markdown_is_read_and_come_back():
    made = building.Building(synthetic.shared(), synthetic.MACHINE)
    made.page("a.md", TEXT, 0)
    printed = made.block("a.md:5") + made.block("a.md:10")
    assert "<svg" not in printed and "<figure" not in printed
    html = made.with_pictures("a.md", printed)
    assert html.count("<svg ") == html.count("</svg>") > 1 and "<!--picture" not in html
    assert made.with_pictures("a.md", "<!--picture 99-->") == ""


def test_what_a_link_may_lead_to_is_left_to_be_found():
    figure = "<figure class='a' data-search-exclude><p{}>x</p><svg id='s'></svg></figure>"
    both = [figure.format(""), figure.format(' id="t"')]
    made = building.Building(synthetic.shared(), synthetic.MACHINE)
    made.page("a.md", block(f"print({both[0]!r})\nprint({both[1]!r})"), 0)
    hidden, told = made.block("a.md:1").splitlines()
    assert hidden == "<!--picture 0-->"
    assert ' id="t"' in told and "<svg" not in told
    assert made.with_pictures("a.md", f"{hidden}\n{told}").splitlines() == both


def prepared(monkeypatch, before=None, **texts) -> building.Building:
    monkeypatch.setenv("ANATOMY_MODE", "replay")
    monkeypatch.setenv("ANATOMY_RECORDINGS", str(synthetic.shared()))
    return building.prepare(
        [(f"{name}.md", text) for name, text in texts.items()],
        addresses={},
        checkout=CHECKOUT,
        shown_machine=synthetic.MACHINE,
        here=lambda: None,
        record=lambda *_: None,
        before=before,
    )


def test_only_an_edited_page_is_asked_again(monkeypatch):
    asked, real = [], collecting.on_page
    monkeypatch.setattr(drawing, "_can_fork", lambda: False)  # `asked` hears of this process alone
    monkeypatch.setattr(collecting, "on_page", lambda *all: asked.append(all[0]) or real(*all))
    first = prepared(monkeypatch, a=TEXT, b=TEXT)
    assert asked == ["a.md", "b.md"] and first.unpublished == {"a.md", "b.md"}
    published = first.published()
    first.unpublished.clear()  # as when the site is written
    second = prepared(monkeypatch, first, a=TEXT, b=TEXT + "\nmore\n")
    assert asked[2:] == ["b.md"] and second.unpublished == {"b.md"}
    assert second.asked == first.asked and second.published() is published
    third = prepared(monkeypatch, second, a=TEXT, b=TEXT)  # the second one failed
    assert third.unpublished == {"b.md"}
    fourth = prepared(monkeypatch, third, a="---\ntitle: New\n---\n" + TEXT, b=TEXT)
    assert fourth.unpublished == {"a.md", "b.md"}, "others may tell its title"
