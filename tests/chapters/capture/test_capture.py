"""Graph capture without a GPU: what six ways make of small functions, calls, code, and claims."""

from contextlib import nullcontext

import pytest
import torch

from anatomy.chapters.capture import calculations, capture, figures, requirements
from anatomy.measure import stopwatch
from anatomy.record.showing import using
from anatomy.table.errors import AnatomyError
from tests.chapters.capture import capture_rows
from tests.fakes import synthetic
from tests.fakes.verdicts import words

WAYS = ("eager", "jit.trace", "jit.script", "fx.symbolic_trace", "export", "compile")


# ---- What is measured.


@pytest.mark.parametrize("name", ["if on a tensor", "global that changes", "print"])
def test_each_way_does_to_a_function_what_is_made_up_elsewhere(name):
    """The tests' made-up outcomes are those of the torch that is installed."""
    script = capture.ways()
    found = {way: script.tried(name, way) for way in WAYS}
    assert tuple(each.outcome for each in found.values()) == capture_rows.OUTCOMES[name]
    refused = [each for each in found.values() if each.outcome == "error"]
    assert all(each.stage == "capture" and each.error for each in refused)
    assert found["jit.trace"].deprecated and not found["export"].deprecated


def test_a_function_is_right_only_where_what_it_prints_is_too(monkeypatch):
    script = capture.ways()
    monkeypatch.setitem(script.WAYS, "eager", lambda function, x: lambda x: x.sin().cos())
    assert script.tried("print", "eager").outcome == "print lost"
    monkeypatch.setitem(script.WAYS, "eager", lambda function, x: lambda x: x.sin()[:1].cos())
    assert script.tried("print", "eager").outcome == "wrong answer"


@pytest.mark.parametrize(
    ("ran", "whole", "outcome", "breaks"),
    [
        (1, True, "right", 0),
        (1, False, "graph break", 1),
        (3, False, "graph break", 2),
        (0, False, "left to Python", 0),
    ],
)
def test_a_compiled_function_is_whole_in_pieces_or_not_compiled(
    ran, whole, outcome, breaks, monkeypatch
):
    script = capture.ways()
    monkeypatch.setattr(script, "_pieces", lambda function, x: (ran, whole))
    found = script.tried("list of functions", "compile")
    assert (found.outcome, found.breaks) == (outcome, breaks)


def test_graphs_are_counted_where_they_run():
    def jumps(x):
        y = x.sin()
        return y.cos() if y.sum() > 0 else y

    def leaves(x):
        torch._dynamo.graph_break()
        return x

    script, x = capture.ways(), torch.ones(4)
    assert script._pieces(torch.sin, x) == (1, True)
    assert script._pieces(jumps, x) == (2, False)
    assert script._pieces(leaves, x) == (0, False)


def test_the_catalogue_has_a_row_for_each_function_and_way(monkeypatch):
    script = capture.ways()
    few = {"list of functions": script.FUNCTIONS["list of functions"]}
    monkeypatch.setattr(script, "FUNCTIONS", few)
    table = capture.catalogue("cpu")
    assert list(table.variant) == list(WAYS) and set(table.op) == set(few)
    script_row = table[table.variant == "jit.script"].iloc[0]
    assert script_row.outcome == "error" and "/" not in script_row.error
    assert table[table.variant == "compile"].breaks.tolist() == [0]


def test_calls_of_all_ways_are_timed_and_one_that_refuses_says_why(monkeypatch):
    def refuses(function, x):
        raise TypeError("not on Python 3.14")

    monkeypatch.setitem(capture.ways().WAYS, "jit.script", refuses)
    monkeypatch.setattr(capture, "ELEMENTS", {"small input": 2**10})
    monkeypatch.setattr(stopwatch, "compilations", lambda: 0)
    table = capture.calls("cpu", backend="eager", scale=0.1, iters=2, budget_s=0.2)
    timed = table[table.role != "again"].set_index("variant")
    assert set(timed.index) == set(WAYS)
    assert "not on Python 3.14" in timed.note["jit.script"]
    assert timed.drop("jit.script").median_s.gt(0).all()
    setup_s = timed.setup_s
    assert setup_s["eager"] is None and setup_s.drop(["eager", "jit.script"]).gt(0).all()


def test_what_was_set_up_without_caches_is_what_is_timed(monkeypatch):
    """A way that is forgotten after it was set up would be compiled again, from the cache."""
    seen, compare = [], capture.compare
    noted = {"set up": nullcontext, "timed": compare, "forgotten": lambda where: None}
    watched = {
        said: lambda *a, said=said, act=act, **b: seen.append(said) or act(*a, **b)
        for said, act in noted.items()
    }
    monkeypatch.setattr(capture, "ELEMENTS", {"small input": 2**10})
    monkeypatch.setattr(capture, "without_caches", watched["set up"])
    monkeypatch.setattr(capture, "compare", watched["timed"])
    monkeypatch.setattr(capture.grid, "give_back", watched["forgotten"])
    capture.calls("cpu", backend="eager", scale=0.1, iters=2, budget_s=0.05)
    assert seen == ["set up"] * len(WAYS) + ["timed", "forgotten"]


def test_the_code_is_cut_to_the_kernel_and_its_call():
    indented = "\n".join(f"    {line}" for line in capture_rows.CALL.splitlines())
    indented = indented.replace("args.clear()", "args.clear()\n        # Original ATen: [cos]")
    written = f"""# AOT ID
k = async_compile.triton("k", '''
@triton.jit
{capture_rows.KERNEL}
''', device_str='cuda')

class Runner:
{indented}

runner = Runner(partitions=[])
"""
    found = capture.parts(written)
    assert found == {"kernel": capture_rows.KERNEL, "call": capture_rows.CALL}
    with pytest.raises(AnatomyError, match="has no call"):
        capture.parts(written.replace("def call", "def other"))


def test_the_gate_fits_where_the_requirement_says():
    (small, large) = requirements.calls(None, 1.0)
    assert large.op == "large input" and 2**31 < large.bytes < 2**33 > small.bytes
    x = torch.randn(64)
    assert capture.gate(x).shape == x.shape


# ---- What is said.


@pytest.mark.parametrize(
    ("op", "way", "outcome", "trace", "export", "compiled"),
    [
        ("print", 0, "right", "holds", "holds", "holds"),  # as it was
        ("print", 5, "print lost", "holds", "holds", "holds in part"),
        ("if on a shape", 1, "right", "holds in part", "holds", "holds"),
        ("if on a tensor", 4, "wrong answer", "holds", "holds in part", "holds"),
    ],
)
def test_one_other_outcome_turns_its_claim(
    op, way, outcome, trace, export, compiled, tmp_path, monkeypatch
):
    there = list(capture_rows.OUTCOMES[op])
    there[way] = outcome
    monkeypatch.setitem(capture_rows.OUTCOMES, op, tuple(there))
    capture_rows.catalogue(tmp_path)
    names = "trace-bakes-branches", "export-refuses-branches", "compile-is-never-wrong"
    assert words(tmp_path, *names) == [trace, export, compiled]


@pytest.mark.parametrize(("deprecated", "word"), [(True, "holds in part"), (False, "holds")])
def test_a_way_that_is_kept_up_is_an_option(deprecated, word, tmp_path):
    capture_rows.catalogue(tmp_path, deprecated)
    assert words(tmp_path, "jit-is-an-option") == [word]


@pytest.mark.parametrize(("small", "large", "export", "said"), [
    (0.8, 0.25, 1.0, ["holds", "holds", "holds"]),
    (1.4, 0.7, 0.6, ["fails", "fails", "holds in part"]),
])  # fmt: skip
def test_claims_about_calls_follow_their_times(small, large, export, said, tmp_path, monkeypatch):
    monkeypatch.setitem(capture_rows.RATIOS["small input"], "compile", small)
    for way, over in {"export": export, "compile": large}.items():
        monkeypatch.setitem(capture_rows.RATIOS["large input"], way, over)
    capture_rows.calls(tmp_path)
    names = ("small-calls-gain-too", "compiling-halves-a-large-call")
    assert words(tmp_path, *names, "a-graph-alone-saves-nothing") == said


@pytest.mark.parametrize(("more", "word"), [("", "holds"), ("\n    tl.store(t, tmp1)", "fails")])
def test_reads_cosines_and_writes_are_counted_in_the_code(more, word, tmp_path):
    capture_rows.code(tmp_path, capture_rows.KERNEL + more)
    assert words(tmp_path, "two-cosines-are-one-kernel") == [word]


@pytest.mark.parametrize(("setup", "eager", "compiled", "calls"), [(2.0, 1e-3, 2e-4, 2500)])
def test_compiling_has_paid_after_so_many_calls(setup, eager, compiled, calls):
    assert calculations.calls_until_compiling_has_paid(setup, eager, compiled) == calls


# ---- What is shown.


def test_figures_say_what_became_of_each_function(tmp_path):
    capture_rows.catalogue(tmp_path)
    capture_rows.code(tmp_path)
    with using(synthetic.showing(tmp_path)):
        lanes, grid = figures.kept(), figures.outcomes()
        kernel, call = figures.annotated("kernel"), figures.annotated("call")
    assert "jit.trace: what the example did, without the if: wrong answer" in lanes
    assert "export: one graph for every input: the if would need two: error at capture" in lanes
    assert grid.count('class="chip') == 48 and 'title="print lost"' in grid
    assert 'title="error at call: TraceError: a branch on data"' in grid
    assert "A read from memory" in kernel and kernel.count("A cosine of a register") == 2
    assert "A launch." in call and "&nbsp;" in call


def test_what_no_line_has_is_not_explained():
    assert figures.explained("x0 = xindex") == ""
    assert "<code>poi</code>" in figures.explained("def triton_poi_fused_cos_0(in_ptr0):")
