"""How pages are worded: few numbers in a sentence, people's sentences, the field's words."""

import pytest

from anatomy.figures.text import wording
from tests.fakes.sites import CHECKOUT

RATIO = "[[contiguity.bench.matmul.gpu_warm.sliced_offset_view.ratio | speed]]"
VERDICT = "[[contiguity.bench.matmul.gpu_warm.sliced_offset_view.verdict]]"
EXPLAINED = "GEMM, GEMMs\n:   A matrix multiplication.\n"


def kinds(text: str) -> list[tuple[int, str]]:
    """Line and kind of what is wrong."""
    return [(line, kind) for line, kind, _ in wording.problems(text, EXPLAINED)]


def test_three_numbers_in_a_sentence_are_the_most():
    three = f"It takes {RATIO}, {RATIO},\nor [[cited: 3.3 TB/s | a datasheet]]."
    assert kinds(three) == []
    assert kinds(f"x\n\nIt takes {RATIO}, {RATIO}, {RATIO} or\n{RATIO}.") == [(3, wording.NUMBERS)]
    assert kinds(f"{three} And {RATIO}.") == []
    assert kinds("Of 4096 × 4096, 16 tiles, 65504 and 8 rows in fp16, bf16 and tf32.") == []
    assert kinds("From 1.5× to 2×, 3 ms, 40 % and 9 W.") == [(1, wording.NUMBERS)]


LEAD = "\n{ .lead }"


def test_a_pages_answer_has_at_most_three_numbers_in_three_sentences():
    two = f"Yes. It takes {RATIO}, or {RATIO}."
    assert kinds(f"# Why?\n\n{two}{LEAD}\n") == []
    assert kinds(f"# Why?\n\n{two} Then {RATIO}.{LEAD}\n") == []
    # A figure that is cited, given or typed counts as one, and a range as three.
    for fourth in (RATIO, "[[given: 2 % | the rule]]", "[[cited: 3 ms | x]]", "2 ms"):
        assert kinds(f"# Why?\n\n{two}\nIt takes {RATIO} or {fourth}.{LEAD}\n") == [
            (3, wording.LEAD)
        ]
    assert kinds(f"{two} Not {RATIO.replace('speed', 'range')}.{LEAD}\n") == [(1, wording.LEAD)]
    assert kinds(f"One. Two. Three. Four.{LEAD}\n") == [(1, wording.LEAD)]
    assert kinds(f"{two}\nIt takes {RATIO} or {RATIO}.\n\nOne. Two. Three. Four.\n") == []


def test_a_range_shows_three_numbers_and_a_verdict_none():
    ranged = RATIO.replace("speed", "range")
    assert kinds(f"It takes {ranged}.") == []
    assert kinds(f"It takes {ranged}, {RATIO}.") == [(1, wording.NUMBERS)]
    assert kinds(f"It takes {RATIO} ({VERDICT}), {RATIO} ({VERDICT}), {RATIO}.") == []


@pytest.mark.parametrize(
    "hidden",
    [
        "| {} | {} | {} | {} |",
        '??? note "Evidence"\n\n    So {}, {}, {} and {}.\n',
        "<details><summary>x</summary>\nSo {}, {}, {} and {}.\n</details>",
        "```text\n{}, {}, {}, {}\n```",
        "---\ntitle: {} {} {} {}\n---",
    ],
)
def test_tables_folds_fences_and_front_matter_may_hold_more(hidden):
    assert kinds(hidden.format(*[RATIO] * 4)) == []
    assert kinds(hidden.format(*["[[claim:x]]"] * 4)) == []
    after = f"{hidden.format(*[RATIO] * 4)}\n\nSo {RATIO}, {RATIO}, {RATIO} and {RATIO}."
    assert kinds(after) == [(after.count("\n") + 1, wording.NUMBERS)]


def test_a_sentence_of_a_program_stands_in_no_prose():
    for made in ("[[claim:x]]", "[[claim:x | evidence]]", "[[claim:x | condition]]"):
        assert kinds(f"a\n\nSo it is. {made}") == [(3, wording.MACHINE_MADE)]
    assert kinds("So it is: [[claim:x | verdict]].") == []
    assert kinds("`[[claim:x]]` is code.") == []


@pytest.mark.parametrize(
    "said",
    [
        "The product of two matrices.",
        "The host sets the pace here.",
        "Attention written out.",
        "The seed says so.",
        "As in seeds/001.",
    ],
)
def test_words_of_our_own_are_none_of_the_field(said):
    assert kinds(f"x\n\n{said}") == [(3, wording.WORDS)]
    caption = f'```python exec="on"\nprint(show("x", caption="{said}"))\n```'
    assert kinds(caption) == [(2, wording.WORDS)]


def test_names_of_rows_in_a_block_are_no_words_of_ours():
    block = '```python exec="on"\nprint(show({}))\n```'
    for names in ('"the seed"', '"x", op="product 512"', '"x", where={"way": "written out"}'):
        assert kinds(block.format(names)) == []
    assert kinds(block.format('"x", labels={"product": "a matmul"}')) == []
    assert kinds(block.format('"x", labels={"mm": "a product"}')) == [(2, wording.WORDS)]
    assert kinds(block.format('{"a product": dict(op="product")}')) == [(2, wording.WORDS)]


def test_words_of_the_field_and_code_pass():
    assert kinds("A dot product, `product`, production, a random seed.") == []


def test_an_abbreviation_is_in_the_glossary_or_known_to_all():
    assert kinds("A GEMM of two GEMMs on a GPU reaches a TFLOP/s.") == []
    assert kinds("The XYZ.\nAnd `ABC`.") == [(1, wording.ABBREVIATIONS)]


def test_a_page_that_waits_is_counted_until_it_breaks_no_rule(tmp_path, monkeypatch):
    (tmp_path / "a.md").write_text("The seed, the XYZ and the seed.")
    (tmp_path / "b.md").write_text("All is well.")
    monkeypatch.setattr(wording, "_rules", lambda: rules | {"not_yet": ["a.md"]})
    rules = wording.tomllib.loads("known = []") | {"instead": [(wording.re.compile("seed"), "-")]}
    wrong, waiting = wording.on_pages(tmp_path)
    assert wrong == [] and waiting == {"a.md": {wording.WORDS: 2, wording.ABBREVIATIONS: 1}}
    rules["instead"] = []
    (tmp_path / "a.md").write_text("All is well here, too.")
    wrong, _ = wording.on_pages(tmp_path)
    assert wrong == ["a.md: it breaks no rule. Take it off `not_yet` in wording.toml."]


def test_the_pages_that_wait_are_pages():
    waiting = wording._rules()["not_yet"]
    assert len(set(waiting)) == len(waiting)
    assert all((CHECKOUT / "docs" / name).is_file() for name in waiting)
