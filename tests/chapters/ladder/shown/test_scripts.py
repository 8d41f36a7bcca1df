"""The ladder's scripts: what each changes, and what their own tables hold each way against."""

import re
import runpy
from collections import Counter
from pathlib import Path

import pytest

import anatomy
from anatomy.chapters.ladder import rungs
from anatomy.chapters.ladder.shown import changes, scripts
from anatomy.table.errors import BadParameter, UnknownName
from tests.site.test_page import text

FOLDER = Path(__file__).parents[4] / "snippets" / "ladder"
SCRIPTS = (*("0_baseline", "1_cublas", "2_sdpa", "3_compile", "4_transformer_engine", "5_fastest"),)
# Transformer Engine is not installed here.
ALONE = ("0_baseline", "1_cublas", "2_sdpa", "3_compile", "5_fastest")


@pytest.mark.parametrize("rung", ALONE)
def test_a_script_holds_each_way_against_the_limit_of_its_own_number_format(rung, monkeypatch):
    """A loss is a float32 whatever the products are in: by default all would be held against that
    limit, and steps in 16 bits called impossible.
    """
    given = {}
    monkeypatch.setattr(anatomy, "compare", lambda calls, **rest: given.update(rest, calls=calls))
    runpy.run_path(str(FOLDER / f"{rung}.py"), run_name="__main__")
    assert given["flops"] > 0 and given["quantity"] == "step_wall"
    formats = {way.name: way.products for way in rungs.TRAINING if way.rung.script == rung}
    limits = given.get("limit", "matmul fp32")
    for way in given["calls"].keys() & formats:
        limit = limits if isinstance(limits, str) else limits[way]
        assert limit == f"matmul {formats[way]}"
    assert given["calls"].keys() & formats


def test_each_rung_says_which_rung_it_changes():
    told = {rung: scripts.before(rung) for rung in SCRIPTS}
    assert scripts.names() == list(SCRIPTS)
    assert told["0_baseline"] is None
    assert told["2_sdpa"] == "1_cublas" and told["3_compile"] == "2_sdpa"
    assert told["4_transformer_engine"] == told["5_fastest"] == "3_compile"


@pytest.mark.parametrize("rung", SCRIPTS[1:])
def test_a_difference_turns_the_one_script_into_the_other(rung):
    old, new = scripts.code(scripts.before(rung)), scripts.code(rung)
    lines = scripts.difference(scripts.before(rung), rung)
    gone = Counter(line[1:] for line in lines if line.startswith("-"))
    more = Counter(line[1:] for line in lines if line.startswith("+"))
    assert more and Counter(old) - gone + more == Counter(new)
    heads = [line for line in lines if line.startswith("@@")]
    assert heads and all(re.fullmatch(r"@@ [\w ]+ @@", head) for head in heads)


def test_a_change_stands_under_the_name_of_what_it_is_in():
    lines = scripts.difference("1_cublas", "2_sdpa")
    at = next(n for n, line in enumerate(lines) if "scaled_dot_product_attention" in line)
    assert [line for line in lines[:at] if line.startswith("@@")][-1] == "@@ Attention @@"


@pytest.mark.parametrize("rung", SCRIPTS)
def test_what_times_a_script_and_what_marks_it_is_not_its_code(rung):
    code = "\n".join(scripts.code(rung))
    assert "--8<--" not in code and "__main__" not in code and "Run it alone" not in code
    assert code.startswith(("from ", "import ")) and "\n\n\n\n" not in code


def test_a_difference_is_coloured_by_its_signs_and_counts_its_lines():
    html = changes.changes("2_sdpa", caption="One call for `four`.")
    lines = scripts.difference("1_cublas", "2_sdpa")
    gone = sum(line.startswith("-") for line in lines)
    assert f"{gone} lines of 1_cublas.py gone" in text(html) and "One call for four" in text(html)
    assert '<span class="gd">' in html and '<span class="gi">' in html
    assert "scaled_dot_product_attention" in text(html)


def test_a_difference_needs_two_scripts_that_are_there():
    with pytest.raises(BadParameter, match="0_baseline says of no rung"):
        changes.changes("0_baseline")
    with pytest.raises(UnknownName, match=r"no rung '2_spda'.*2_sdpa"):
        changes.changes("2_spda")
    assert "1_cublas.py" in text(changes.changes("0_baseline", since="1_cublas"))
