"""Words of the field: read from one page, explained where a section first uses them."""

import re

import pytest

from anatomy.figures.text import glossary
from anatomy.figures.text.glossary import Glossary
from anatomy.table.errors import AnatomyError
from tests.fakes.sites import CHECKOUT

TEXT = """# Glossary

GEMM, GEMMs
:   General [matrix](x.md) multiplication, A is `M × K`. Second sentence.

warp, warps
:   A group of 32 threads
    that run together.
"""
GEMM = '<abbr title="General matrix multiplication, A is M × K." tabindex="0">GEMM</abbr>'


def test_a_term_has_its_variants_and_its_first_sentence():
    gemm, warp = glossary.terms(TEXT)
    assert gemm.names == ("GEMM", "GEMMs") and gemm.tooltip.endswith("A is M × K.")
    assert warp.definition == "A group of 32 threads that run together."
    page = glossary.with_anchors(TEXT)
    assert '<dfn id="term-warp">warp</dfn>\n:   A group' in page and "warps" not in page


def test_all_words_stand_by_letter_over_the_first_section():
    text = "Words.\n\n## GPU\n\nwarp\n:   Threads.\n\n`wide`\n:   A mark.\n\nA/A\n:   Noise.\n"
    wanted = (
        '<b>A</b>&nbsp;<a href="#term-a-a">A/A</a></span> <span><b>W</b>&nbsp;<a href="#term-warp">'
    )
    assert wanted in glossary.with_anchors(text).partition("## GPU")[0]
    assert '<a href="#term-wide">wide</a></span></p>' in glossary.with_anchors(text)
    assert "letters" not in glossary.with_anchors(TEXT)  # without sections it has no place


def test_a_definition_links_to_other_terms_once_and_to_no_word_of_how_we_measure():
    text = "## GPU\n\nwarp, warps\n:   A wide warp of GEMMs, [a GEMM](x.md), `GEMM`, GEMM.\n\n"
    text += "GEMM, GEMMs\n:   A matmul.\n\n## How this site measures\n\n`wide`\n:   Of a warp.\n"
    shown = glossary.with_anchors(text)
    assert ":   A wide warp of [GEMMs](#term-gemm), [a GEMM](x.md), `GEMM`, GEMM.\n" in shown
    assert ":   Of a [warp](#term-warp).\n" in shown


def test_a_word_that_is_explained_twice_is_an_error():
    with pytest.raises(AnatomyError, match="'warps' is explained twice"):
        glossary.terms(TEXT + "\nlane, warps\n:   One thread.\n")


def test_the_first_use_in_each_section_is_explained_and_no_other():
    html = "<p>A GEMM, a GEMM.</p><h2>GEMM?</h2><p>A GEMM and two GEMMs.</p>"
    shown = Glossary(TEXT).explained(html)
    assert shown == f"<p>A {GEMM}, a GEMM.</p><h2>GEMM?</h2><p>A {GEMM} and two GEMMs.</p>"


@pytest.mark.parametrize(
    "html",
    [
        "<h3>GEMM</h3>",
        "<pre><code>GEMM</code></pre>",
        '<a href="x">the <em>GEMM</em></a>',
        '<figure class="shown"><p>GEMM</p></figure>',
        '<table class="figures"><tr><td>GEMM</td></tr></table>',
        '<ol class="days"><li><span>GEMM</span></li></ol>',
        '<span class="measured" title="a > GEMM">GEMM</span>',
        '<p class="GEMM">x<!-- GEMM --></p>',
        "<p>sub-GEMM, GEMM/s, GEMMX, gemm</p>",
    ],
)
def test_headings_code_links_figures_and_parts_of_words_stay_as_they_are(html):
    assert Glossary(TEXT).explained(html) == html


def test_what_follows_something_left_alone_is_explained_again():
    html = "<p><code>GEMM</code><br>GEMM</p>"
    assert Glossary(TEXT).explained(html) == f"<p><code>GEMM</code><br>{GEMM}</p>"


def test_a_word_in_lower_case_may_begin_a_sentence():
    assert ">Warps</abbr> run" in Glossary(TEXT).explained("<p>Warps run.</p>")


def test_without_a_glossary_nothing_is_explained():
    assert Glossary("").explained("<p>GEMM</p>") == "<p>GEMM</p>"


def test_the_sites_own_glossary_is_short_and_plain():
    terms = glossary.terms((CHECKOUT / "docs" / glossary.PAGE).read_text(encoding="utf-8"))
    names = {name for term in terms for name in term.names}
    assert {"warp", "occupancy", "FSDP", "GEMM", "roofline", "A/A"} <= names
    for term in terms:
        assert len(term.tooltip) <= 220 and term.definition.endswith("."), term.name
        assert len(re.findall(r"[.!?](?:\s|$)", term.definition)) <= 3, term.name
    assert len({term.anchor for term in terms}) == len(terms)
