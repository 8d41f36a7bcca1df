"""Graph capture without a GPU: what six ways make of small functions, calls, code, and claims."""

from contextlib import nullcontext
from unittest import mock

import pytest
import torch

from anatomy.chapters.capture import calculations, capture, figures, requirements
from anatomy.measure import stopwatch
from anatomy.record import recording
from anatomy.record.showing import using
from anatomy.table.errors import AnatomyError
from tests.chapters.capture import capture_rows
from tests.chapters.capture.capture_rows import CALL, KERNEL, WAYS
from tests.fakes import synthetic
from tests.fakes.sites import recorded
from tests.fakes.verdicts import words

script = capture.ways()


def test_the_catalogue_says_what_each_way_does_to_a_function(tmp_path):
    """What tests make up elsewhere and day 12 tells is so with this torch, and as recorded."""
    columns = ["op", "variant", "outcome", "failed_at"]
    made_up = recording.load(capture_rows.catalogue(tmp_path)).table[columns]
    here = capture.catalogue("cpu")
    for table in (here, *(found.table for found in recorded("capture.catalogue"))):
        assert table[columns].fillna("").equals(made_up.fillna("")), table[columns].to_string()
    assert not here.error.str.contains("/").any()
    assert set(here.variant[here.deprecated]) == {"jit.trace", "jit.script"}
    traced = torch.jit.trace(script.FUNCTIONS["if on a tensor"], torch.ones(2))
    assert "mul" in traced.code and "sum" not in traced.code, "nothing needs it"


@pytest.mark.parametrize(("end", "outcome"), [(None, "print lost"), (1, "wrong answer")])
def test_a_function_is_right_only_where_what_it_prints_is_too(end, outcome, monkeypatch):
    monkeypatch.setitem(script.WAYS, "eager", lambda function, x: lambda x: x.sin()[:end].cos())
    assert script.tried("print", "eager").outcome == outcome


def test_a_compiled_function_is_whole_in_pieces_or_not_compiled(monkeypatch):
    functions = {
        torch.sin: ("right", 0),
        lambda x: x.cos() if x.sum() > 0 else x: ("graph break", 1),
        lambda x: (x.sin(), torch._dynamo.graph_break())[0]: ("graph break", 1),
        lambda x: (x.sum().item() * x).sum().item() * x: ("graph break", 2),
        lambda x: torch._dynamo.graph_break() or x: ("left to Python", 0),
    }
    for function, said in functions.items():
        monkeypatch.setitem(script.FUNCTIONS, "print", function)
        found = script.tried("print", "compile")
        assert (found.outcome, found.breaks) == said


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(requirements, "ELEMENTS", {"small input": 2**10})
    monkeypatch.setattr(stopwatch, "compilations", lambda: 0)
    return {"device": "cpu", "backend": "eager", "iters": 2, "budget_s": 0.05}


def test_calls_of_all_ways_are_timed_and_one_that_refuses_says_why(small, monkeypatch):
    refuses = mock.Mock(side_effect=TypeError("not on Python 3.14"))
    monkeypatch.setitem(script.WAYS, "jit.script", refuses)
    table = capture.calls(**small, scale=0.1)
    timed = table[table.role != "again"].set_index("variant")
    assert set(timed.index) == set(WAYS) and "not on Python 3.14" in timed.note["jit.script"]
    assert timed.median_s.drop("jit.script").gt(0).all()
    assert list(timed.index[~timed.setup_s.gt(0)]) == ["eager", "jit.script"]


def test_what_was_set_up_without_caches_is_what_is_timed(small, monkeypatch):
    """A way that is forgotten after it was set up would be compiled again, from the cache."""
    seen = mock.Mock()
    seen.configure_mock(**{"set_up.side_effect": nullcontext, "timed.side_effect": capture.compare})
    monkeypatch.setattr(capture, "without_caches", seen.set_up)
    monkeypatch.setattr(capture, "compare", seen.timed)
    monkeypatch.setattr(capture.grid, "give_back", seen.forgotten)
    capture.calls(**small)
    assert [name for name, *_ in seen.mock_calls] == ["set_up"] * len(WAYS) + ["timed", "forgotten"]


def test_the_code_is_cut_to_the_kernel_and_its_call():
    call = CALL.replace("\n", "\n    ").replace(":\n", ":\n        # Of: [cos]\n", 1)
    written = [f"k = async_compile.triton('''\n@triton.jit\n{KERNEL}\n''', device_str='cuda')"]
    written += [f"class Runner:\n    {call}\n\nrunner = Runner(partitions=[])"]
    assert capture.parts(written) == {"kernel": KERNEL, "call": CALL}
    with pytest.raises(AnatomyError, match="has no call"):
        capture.parts(written[:1])


@pytest.mark.parametrize(
    ("op", "way", "outcome", "turned"),
    [
        ("print", 5, "print lost", "compile-is-never-wrong"),
        ("if on a shape", 1, "right", "trace-bakes-branches"),
        ("if on a tensor", 4, "wrong answer", "export-refuses-branches"),
    ],
)
def test_one_other_outcome_turns_its_claim_alone(op, way, outcome, turned, tmp_path, monkeypatch):
    there = capture_rows.OUTCOMES[op]
    monkeypatch.setitem(capture_rows.OUTCOMES, op, (*there[:way], outcome, *there[way + 1 :]))
    capture_rows.catalogue(tmp_path)
    names = {"trace-bakes-branches", "export-refuses-branches", "compile-is-never-wrong"} - {turned}
    assert words(tmp_path, turned, *names) == ["holds in part", "holds", "holds"]


@pytest.mark.parametrize(("deprecated", "word"), [(True, "holds in part"), (False, "holds")])
def test_a_way_that_is_kept_up_is_an_option(deprecated, word, tmp_path):
    capture_rows.catalogue(tmp_path, deprecated)
    assert words(tmp_path, "jit-is-an-option") == [word]


def test_claims_about_calls_follow_their_times(tmp_path, monkeypatch):
    names = "small-calls-gain-too", "compiling-halves-a-large-call", "a-graph-alone-saves-nothing"
    capture_rows.calls(tmp_path)
    assert words(tmp_path, *names) == ["holds", "holds", "holds"]
    for op, export, compiled in (("small input", 9e-5, 4.2e-5), ("large input", 5.4e-4, 6.3e-4)):
        times = (*capture_rows.TIMES[op][:4], export, compiled)
        monkeypatch.setitem(capture_rows.TIMES, op, times)
    capture_rows.calls(tmp_path)
    assert words(tmp_path, *names) == ["fails", "fails", "holds in part"]


@pytest.mark.parametrize(("more", "word"), [("", "holds"), ("\n    tl.store(t, tmp1)", "fails")])
def test_reads_cosines_and_writes_are_counted_in_the_code(more, word, tmp_path):
    capture_rows.code(tmp_path, KERNEL + more)
    assert words(tmp_path, "two-cosines-are-one-kernel") == [word]


def test_compiling_has_paid_after_so_many_calls():
    assert calculations.calls_until_compiling_has_paid(2.0, 1e-3, 2e-4) == 2500


def test_figures_say_what_became_of_each_function(tmp_path):
    capture_rows.catalogue(tmp_path)
    capture_rows.code(tmp_path)
    with using(synthetic.showing(tmp_path)):
        lanes, grid = figures.kept(), figures.outcomes()
        kernel, call = figures.annotated("kernel"), figures.annotated("call")
    assert "jit.trace: what made the result, without the if: wrong answer" in lanes
    assert "export: one graph for every input: the if would need two: error at capture" in lanes
    # On a desk and on a phone: eager and the script keep all, the trace one piece, compile all.
    assert lanes.count(">x - 1<") == 2 * 3 and lanes.count(">x * 2<") == 2 * 4
    assert lanes.count(">x.sum() &gt; 0<") == 2 * 3
    assert grid.count('class="chip') == 48 and 'title="print lost"' in grid
    assert 'title="error at call: TraceError: a branch"' in grid
    assert "A read from memory" in kernel and kernel.count("A cosine of a register") == 2
    assert "A launch." in call and "&nbsp;" in call and "<code>poi</code>" in kernel
    assert figures.explained("x0 = xindex") == ""
