"""torch.compile: verdicts that follow the rows, and what the experiments do where things fail."""

import runpy
from pathlib import Path

import pandas as pd
import pytest
import torch

from anatomy import claims
from anatomy.chapters.compilation import chains, compilation, requirements, shapes
from anatomy.chapters.compilation.claims import LAYER
from anatomy.claims.pace import GPU, HOST, UNKNOWN, pace
from anatomy.parts import compiled, sizes
from anatomy.table.errors import BadParameter, MeasurementError
from tests.chapters.compilation import compilation_rows
from tests.claims.test_claims import edited, verdict
from tests.fakes import synthetic

CPU = torch.device("cpu")
FEW, WRITTEN = LAYER.values()
SNIPPET = Path(__file__).parents[3] / "snippets" / "graph_break_check.py"
NEEDED = {
    "compile-is-faster": claims.IN_PART,
    "compile-always": claims.INCONCLUSIVE,  # what is near 1 is open
    "compile-memory-neutral": claims.IN_PART,
    "reduce-overhead-for-training": claims.INCONCLUSIVE,
    "max-autotune-for-inference": claims.NOT_MEASURABLE,
    "graph-breaks-kill": claims.IN_PART,
    "fullgraph-detects-breaks": claims.IN_PART,
    "causes-of-graph-breaks": claims.HOLDS,
    "print-breaks-graphs": claims.HOLDS,
    "compiling-takes-minutes": claims.HOLDS,
    "shapes-recompile": claims.IN_PART,
    "compile-doubles-training": claims.FAILS,
}


@pytest.fixture
def root(tmp_path):
    """Recordings of every experiment on the page."""
    for task in ("training", "inference"):
        synthetic.MAKERS["compilation.map"](tmp_path, task=task)
    for name in ("layers", "breaks", "recompiles", "detection", "modes"):
        synthetic.MAKERS[f"compilation.{name}"](tmp_path)
    return tmp_path


def change(root, name: str, edit) -> None:
    """Change the rows of every recording of one experiment."""
    folder = root / synthetic.MACHINE / name
    for file in sorted(folder.glob("*.json")):
        others = [each for each in folder.glob("*.json") if each != file]
        for each in others:
            each.rename(each.with_suffix(".aside"))
        edited(root, name, edit)
        for each in others:
            each.with_suffix(".aside").rename(each)


@pytest.mark.parametrize(("name", "word"), NEEDED.items())
def test_verdicts_follow_from_the_recordings(name, word, root):
    found = verdict(name, root=root)
    assert found.word == word, found.evidence


@pytest.mark.parametrize("name", NEEDED)
def test_without_its_recordings_a_claim_has_no_verdict(name, tmp_path):
    assert verdict(name, root=tmp_path).word == claims.NOT_RECORDED


def ratios(factor: float, way: str = "compiled", **more):
    """An edit that sets every ratio of a way; its verdict too."""

    def edit(row):
        if row["variant"] == way:
            row |= {"ratio": factor, "ratio_low": 0.995 * factor, "ratio_high": 1.005 * factor}
            row |= {"verdict": "faster" if factor < 1 else "slower", "noise_floor": 0.001} | more

    return edit


@pytest.mark.parametrize(
    ("name", "edit", "word"),
    [
        ("compile-is-faster", ratios(0.6), claims.HOLDS),
        ("compile-is-faster", ratios(0.95), claims.FAILS),
        ("compile-is-faster", ratios(1 / 1.2), claims.INCONCLUSIVE),
        ("compile-doubles-training", ratios(0.5), claims.HOLDS),
        ("compile-doubles-training", ratios(0.5, noise_floor=0.2), claims.INCONCLUSIVE),
        ("compile-always", ratios(0.99), claims.HOLDS),
        ("compile-always", ratios(1.1), claims.FAILS),
        ("compile-always", ratios(0.99, verdict="undecided"), claims.INCONCLUSIVE),
    ],
)
def test_a_verdict_on_speed_flips_with_the_rows(name, edit, word, root):
    for each in ("map", "layers"):
        change(root, f"compilation.{each}", edit)
    found = verdict(name, root=root)
    assert found.word == word, found.evidence


def test_memory_is_the_same_within_a_twentieth_and_graphs_count_what_is_reserved(root):
    found = verdict("compile-memory-neutral", root=root)
    assert found.condition.startswith("for compiled"), found.condition

    def level(row):
        row["reserved_bytes"] = 2**35

    change(root, "compilation.map", level)
    assert verdict("compile-memory-neutral", root=root).word == claims.HOLDS

    def more(row):
        row["peak_bytes"] = (11 if row["variant"] == "compiled" else 10) * 2**26
        row["reserved_bytes"] = 2**24  # less than a segment: says nothing

    change(root, "compilation.map", more)
    found = verdict("compile-memory-neutral", root=root)
    assert found.word == claims.FAILS and "Undecided: 6 of 18 cases" in found.evidence


def test_on_a_machine_without_an_account_of_memory_it_says_so(root):
    change(root, "compilation.map", lambda row: row.update(peak_bytes=None, reserved_bytes=None))
    found = verdict("compile-memory-neutral", root=root)
    assert found.word == claims.NOT_MEASURABLE and "allocator" in found.evidence


def test_reduce_overhead_is_held_against_the_default_mode(root, monkeypatch):
    some = verdict("reduce-overhead-for-training", root=root)
    assert some.word == claims.INCONCLUSIVE, "one of three cells can't be told apart"
    for ratio, word in ((0.3, claims.HOLDS), (0.7, claims.FAILS)):
        both = {"compiled": dict.fromkeys((256, 4096), 0.6)}
        both["reduce-overhead"] = dict.fromkeys((256, 4096), ratio)
        monkeypatch.setattr(compilation_rows, "RATIO", both)
        compilation_rows.cells(root)
        found = verdict("reduce-overhead-for-training", root=root)
        assert found.word == word and "triton.cudagraphs=True" in found.evidence


def test_cells_that_could_not_be_measured_are_counted_apart(root):
    def refuse(row):
        if row["variant"] == "compiled" and row["tokens"] == 4096:
            row |= dict.fromkeys(("median_s", "ratio", "ratio_low", "ratio_high", "verdict"))
            row |= {"low_s": None, "high_s": None, "note": "too large for this card"}

    change(root, "compilation.map", refuse)
    change(root, "compilation.layers", ratios(0.6))
    found = verdict("compile-is-faster", root=root)
    assert found.word == claims.HOLDS and "too large for this card" in found.evidence
    # No default mode in that cell, so nothing to hold reduce-overhead against.
    assert verdict("reduce-overhead-for-training", root=root).word == claims.HOLDS


def test_cells_are_told_apart_by_who_sets_the_pace_and_by_the_layer(root):
    def waits(row):
        asked, ran = (0.9, 0.5) if row.get("tokens") == 256 else (0.0, 0.95)
        row["enqueue_s"] = row["median_s"] * asked
        row["busy_s"] = row.get("busy_s") and row["median_s"] * ran

    assert f"{GPU}: " in verdict("compile-is-faster", root=root).evidence  # kernels fill its rows
    change(root, "compilation.map", waits)
    change(root, "compilation.layers", ratios(1.0, verdict="slower"))
    change(root, "compilation.layers", lambda row: row.update(enqueue_s=1e-9, busy_s=1e-3))
    found = [verdict(name, root=root) for name in ("compile-is-faster", "compile-always")]
    assert {each.condition for each in found} == {f"{HOST}, 6 of 17 cases"}
    gpu, host = verdict("compile-is-faster", root=root).evidence.split(f"{HOST}: ")
    assert f"{GPU}: {FEW}" in gpu and f"in 8 cells, {WRITTEN} 1.00× in 3 cells" in gpu
    assert FEW in host and "in 6 cells" in host and WRITTEN not in host

    def wait_too(row):
        late = {"enqueue_s": 0.9 * row["median_s"], "busy_s": 0.5 * row["median_s"]}
        row |= late if row["layer"] == "written out" else {}

    change(root, "compilation.layers", wait_too)
    assert verdict("compile-always", root=root).condition == f"for {FEW} {HOST}, 6 of 17 cases"
    said = verdict("reduce-overhead-for-training", root=root).evidence
    assert all(f"{task} {GPU}: " in said for task in ("In inference", "in training"))


def test_whoever_needs_longer_sets_the_pace_and_a_step_stands_for_kernels_nobody_profiled():
    assert pace({"enqueue_s": 2.0, "busy_s": 1.0, "median_s": 9.0}) == HOST
    assert pace({"enqueue_s": 1.0, "busy_s": 2.0, "median_s": 1.0}) == GPU
    for asking, whose in ((0.9, HOST), (0.7, UNKNOWN), (0.5, GPU)):
        assert pace({"enqueue_s": asking, "median_s": 1.0}) == whose
    assert pace({"busy_s": 1.0, "median_s": 1.0}) == GPU and pace({"enqueue_s": 1.0}) == UNKNOWN


def test_memory_is_shown_as_it_was_counted_though_a_segment_decides(root):
    found = verdict("compile-memory-neutral", root=root)
    assert found.measured.low == 1.0 and found.measured.high == 2.0


def test_the_name_of_an_option_stands_beside_a_question_of_speed_and_decides_nothing(root):
    for tied in ("inference", "training"):
        change(root, "compilation.modes", lambda row, tied=tied: row.update(tied_to=tied))
        found = verdict("max-autotune-for-inference", root=root)
        assert found.word == claims.NOT_MEASURABLE and f"belongs to {tied}" in found.evidence


def test_breaks_kill_where_half_of_the_speed_is_gone(root):
    found = verdict("graph-breaks-kill", root=root)
    assert "small products" in found.evidence and "4 breaks" not in found.evidence
    for factor, word in ((3.0, claims.HOLDS), (1.5, claims.FAILS)):

        def edit(row, factor=factor):
            if row["role"] == "variant":
                row |= {"ratio": factor, "ratio_low": factor, "ratio_high": factor}

        change(root, "compilation.breaks", edit)
        assert verdict("graph-breaks-kill", root=root).word == word


def test_what_fullgraph_lets_pass_is_named(root):
    found = verdict("fullgraph-detects-breaks", root=root)
    assert found.condition == "except for .item() or mask of unknown size, in 10 of 12 cases"
    change(root, "compilation.detection", lambda row: row.update(fullgraph="raises"))
    assert verdict("fullgraph-detects-breaks", root=root).word == claims.IN_PART
    change(root, "compilation.detection", lambda row: row.update(breaks=1))
    assert verdict("fullgraph-detects-breaks", root=root).word == claims.HOLDS


def test_causes_that_no_longer_break_are_told(root):
    change(root, "compilation.detection", lambda row: row.update(breaks=0))
    assert verdict("causes-of-graph-breaks", root=root).word == claims.FAILS
    assert verdict("print-breaks-graphs", root=root).word == claims.FAILS


@pytest.mark.parametrize(
    ("seconds", "word"), [(30.0, claims.HOLDS), (0.2, claims.FAILS), (1000.0, claims.FAILS)]
)
def test_seconds_to_minutes_has_two_ends(seconds, word, root):
    def edit(row):
        if row["op"] == "first call":
            row |= {"median_s": seconds, "blocks_s": [seconds]}

    change(root, "compilation.map", edit)
    assert verdict("compiling-takes-minutes", root=root).word == word


def test_recompiles_are_counted_by_way(root):
    found = verdict("shapes-recompile", root=root)
    assert found.condition == "for static, higher limit, 1 of 5 cases"
    assert "static 8 of 12 (4 calls ran uncompiled)" in found.evidence
    change(root, "compilation.recompiles", lambda row: row.update(compilations=12))
    assert verdict("shapes-recompile", root=root).word == claims.HOLDS
    change(root, "compilation.recompiles", lambda row: row.update(note="no compiler here"))
    assert verdict("shapes-recompile", root=root).word == claims.NOT_MEASURABLE


def test_a_break_is_asked_for_between_layers_alone():
    for breaks in chains.BREAKS:
        torch.compiler.reset()
        run = chains.written_out(chains.product_layer, breaks)
        before = chains.compilations()
        x = torch.eye(4)
        with torch.no_grad():
            found = torch.compile(run, backend="eager")(x, [x] * requirements.LAYERS)
            plain = run(x, [x] * requirements.LAYERS)
        assert chains.compilations() - before == breaks + 1
        assert torch.equal(found, plain)
    torch.compiler.reset()


def test_the_cost_of_a_break_is_the_slope_in_every_block():
    breaks, blocks = (0, 1, 2, 4, 8, 16), range(12)
    times = [[1e-3 + 1e-6 * block + n * 2e-5 for block in blocks] for n in breaks]
    slope = compiled.cost_per_break(breaks, times)
    assert (slope.median, slope.low, slope.high) == pytest.approx((2e-5, 2e-5, 2e-5))


def test_a_step_of_training_returns_the_loss_and_each_matrix():
    cell = sizes.LayerCell(8, 4, ())
    model = compiled.models.transformer(cell.width, 1, CPU, torch.float32)
    x = torch.randn(1, cell.tokens, cell.width)
    loss, *found = compiled._call(model, model, x, training=True)()
    matrices = [each for each in model.parameters() if each.ndim > 1]
    assert [each.shape for each in found] == [each.shape for each in matrices]
    assert loss.ndim == 0
    exact = compiled._reference(model, x, training=True)()
    torch.testing.assert_close(exact[1], found[0])


def test_setting_up_is_paid_back_only_by_what_is_faster():
    blocks = {"eager": [2.0] * 12, "compiled": [1.0] * 12, "reduce-overhead": [3.0] * 12}
    words = {"eager": "control", "compiled": "faster", "reduce-overhead": "slower"}
    table = pd.DataFrame(
        [{"variant": n, "blocks_s": b, "verdict": words[n]} for n, b in blocks.items()]
    )
    setup_s = {"compiled": 10.0, "reduce-overhead": 20.0}
    found = compiled.with_break_even(table, setup_s).set_index("variant")
    assert (found.uses["compiled"], found.pays["compiled"]) == (10.0, True)
    assert found.uses["reduce-overhead"] is None and found.pays["reduce-overhead"] is False
    assert found.pays["eager"] is None and found.setup_s["eager"] is None


def test_a_way_that_fails_is_a_row_that_says_why_and_the_others_go_on(monkeypatch):
    asked = []

    def fail(model, way, backend):
        asked.append(way)
        raise RuntimeError("no kernel in /home/someone/.cache/kernel.py\nand more")

    monkeypatch.setattr(compiled, "_compiled", fail)
    cells = [sizes.LayerCell(8, 4, ("compiled",)), sizes.LayerCell(8, 8, ())]
    found = compiled.measure(cells, False, CPU, "fp32", "eager", 6, 0.02)
    refused = found[found.get("note").notna()]
    assert list(refused.note) == ["RuntimeError: no kernel in kernel.py"] and len(asked) == 1
    assert refused.median_s.isna().all()
    assert set(found[found.role == "control"].tokens) == {4, 8}


def test_a_cell_that_fails_refuses_all_its_ways(monkeypatch):
    def fail(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(compiled.models, "transformer", fail)
    cells = [sizes.LayerCell(8, 4, ("compiled", "reduce-overhead"))]
    found = compiled.measure(cells, True, CPU, "fp32", "eager", 6, 0.02)
    refused = found[found.op == "training C=8 T=4"]
    assert list(refused.variant) == ["eager", "compiled", "reduce-overhead"]
    assert set(refused.note) == {"out of memory"}


def test_a_graph_that_cannot_be_compared_does_not_cost_the_cell():
    def compared(calls):
        if "reduce-overhead" in calls:
            raise MeasurementError("reduce-overhead leaves work on another stream.")
        return list(calls)

    calls = dict.fromkeys(("eager", "compiled", "reduce-overhead"))
    table, absent = compiled.or_without_graphs(compared, calls)
    assert table == ["eager", "compiled"]
    why = "MeasurementError: reduce-overhead leaves work on another stream."
    assert absent == {"reduce-overhead": why}
    del calls["reduce-overhead"]
    assert compiled.or_without_graphs(compared, calls) == (["eager", "compiled"], {})

    def never(calls):
        raise MeasurementError("no way to compare these")

    with pytest.raises(MeasurementError):
        compiled.or_without_graphs(never, calls)


def test_of_cuda_graphs_only_what_is_reserved_is_told():
    peak = compiled.memory.Peak(1, 2, 3)
    plain = {"peak_bytes": 1, "total_peak_bytes": 2, "reserved_bytes": 3 - 2}
    assert compiled.memory_of("compiled", peak, 2) == plain
    unseen = {"peak_bytes": None, "total_peak_bytes": None}
    assert compiled.memory_of("reduce-overhead", peak, 2) == plain | unseen


def test_the_finer_map_has_every_cell_once_and_tunes_in_one():
    fine = sizes.layer_cells(1.0, full=True)
    assert len({(cell.width, cell.tokens) for cell in fine}) == len(fine) == 30
    assert sum("max-autotune" in cell.ways for cell in fine) == 1
    site = sizes.layer_cells(1.0, full=False)
    assert {(cell.width, cell.tokens) for cell in site} <= {(c.width, c.tokens) for c in fine}
    assert sum("reduce-overhead" in cell.ways for cell in site) == 3


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cannot open /tmp/a/b.so: no", "cannot open b.so: no"),
        ("\n  first\nsecond", "first"),
        ("a / b and FLOP/s", "a / b and FLOP/s"),
        ("", ""),
    ],
)
def test_a_reason_names_no_folder(text, told):
    assert compiled.reason_of(ValueError(text)) == f"ValueError: {told}".rstrip()


def test_a_change_of_length_takes_two():
    with pytest.raises(BadParameter, match="lengths=1: it must be a whole number from 2"):
        compilation.recompiles(device="cpu", backend="eager", lengths=1)


def test_lengths_are_counted_and_what_fails_says_why(monkeypatch):
    found = shapes.measure(CPU, "eager", 10, 8).set_index("variant")
    assert found.compilations["static, higher limit"] == 10
    assert found.compilations["dynamic"] == found.compilations["marked"] == 1
    limit = found.recompile_limit["static"]
    assert found.calls_without_graph["static"] == 10 - limit

    def fail(*_):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(shapes, "_count", fail)
    assert set(shapes.measure(CPU, "eager", 2, 8).note) == {"RuntimeError: no compiler"}


def test_the_script_that_pages_show_tells_breaks_from_none(capsys):
    script = runpy.run_path(str(SNIPPET))
    x = torch.linspace(-1, 2, 16)
    assert script["graph_breaks"](script["if_on_a_tensor"], x)
    assert script["graph_breaks"](script["where_instead_of_if"], x) == []
    assert set(script["CASES"]) == set(compilation_rows.DETECTED)
    torch.compiler.reset()
