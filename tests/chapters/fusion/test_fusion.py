"""Fusion without a GPU: chains and patterns at toy size, kernels that are counted, and claims."""

import re
from unittest import mock

import pytest

from anatomy.chapters.fusion import calculations, figures, fusion, judged, requirements
from anatomy.chapters.fusion.patterns import COMBINED, PATTERNS, TILES
from anatomy.record.requirements import Capacity
from anatomy.record.showing import using
from anatomy.table.errors import MeasurementError
from tests.chapters.fusion import fusion_rows
from tests.fakes import synthetic
from tests.fakes.verdicts import words

TOY = {"device": "cpu", "backend": "eager", "iters": 2, "budget_s": 0.05}
# Of an operation of each experiment what pages and claims read.
WAYS = {
    "chains": ("cosines", ["eager, 1", "eager, 4", "compiled, 1", "compiled, 4"]),
    "patterns": ("gate, vectors", ["eager", "compiled", "eager bf16"]),
    "matmuls": ("relu(a @ b + bias)", ["eager", "compiled", "Triton template"]),
}


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Two lengths of a small tensor, and two patterns."""
    kept = {op: PATTERNS[op] for op in ("x / x.sum(-1)", "gate, vectors")}
    monkeypatch.setattr(fusion, "PATTERNS", kept)
    monkeypatch.setattr(fusion, "LENGTHS", (1, 4))
    monkeypatch.setattr(fusion.memory, "capacity", lambda where: Capacity(cache_bytes=512))


def test_chains_of_all_lengths_are_timed_with_their_bytes():
    table = fusion.chains(**TOY)
    rows = table[(table.op == "cosines") & (table.role != "again")]
    assert list(rows.variant) == WAYS["chains"][1] and rows.error.lt(1e-6).all()
    assert list(rows.operations) == [1, 4, 1, 4] and set(rows.way) == {"eager", "compiled"}
    assert list(rows.bytes) == [8 * 1024, 32 * 1024, 8 * 1024, 8 * 1024]


def test_every_pattern_is_checked_and_timed():
    table = fusion.patterns(**TOY, scale=2**-7)
    rows = table[table.role != "again"].set_index("op")
    assert rows.median_s.gt(0).all() and rows.flops.isna().all()
    assert list(rows.loc["gate, vectors"].variant) == WAYS["patterns"][1]
    assert list(rows.pattern.unique()) == ["through row reductions", "vertical"]


def test_a_matmul_that_no_template_takes_says_why(monkeypatch):
    why = iter(["", "not compiled: no choices", "", "not compiled: no choices", ""])
    monkeypatch.setattr(fusion.grid, "refusal", lambda call: next(why))
    table = fusion.matmuls(**TOY, scale=2**-7)
    rows = table[table.role != "again"].set_index(["op", "variant"])
    templates = rows.xs("Triton template", level="variant")
    assert len(templates) == 2 and set(templates.note) == {"not compiled: no choices"}
    timed = rows.drop("Triton template", level="variant")
    assert timed.median_s.gt(0).all() and set(timed.limit) == {"matmul bf16"}
    assert set(timed.loc["a @ b @ c"].flops) == {4 * 32**3}


def test_the_options_are_the_compilers_and_what_it_combines_must_be_small():
    import torch._inductor.config as config
    from torch._inductor.codegen.triton_combo_kernel import LARGE_NUMELS

    with config.patch(TILES | PATTERNS[COMBINED].ways["compiled"]):
        assert config.combo_kernels and config.max_autotune_gemm_backends == "TRITON"
    assert requirements.SIDE**2 > LARGE_NUMELS > 1024


@pytest.mark.parametrize("name", WAYS)
def test_a_cell_that_fails_has_what_pages_and_claims_read_of_it(name, monkeypatch):
    monkeypatch.setattr(fusion, "compare", mock.Mock(side_effect=MeasurementError("disturbed")))
    table, (op, ways) = getattr(fusion, name)(**TOY, scale=2**-10), WAYS[name]
    assert list(table[table.op == op].variant) == ways and table.note.str.contains("dist").all()
    assert {"way" if name == "chains" else "pattern", "median_s"} <= set(table.columns)


def test_fills_of_the_driver_are_no_kernels():
    lists = (["Memset (Device)", "triton_poi"], ["Memset (Device)"], None)
    found = dict(judged.launched([*({"kernels": each} for each in lists), {"op": "x"}], None))
    assert [each["launched"] for each in found.values()] == [1, None, None]


SAID = {
    "holds": """a-fused-chain-is-one-trip eager-chains-pay-every-trip the-second-cosine-is-free
        fused-chains-meet-the-ridge siblings-share-their-read templates-take-epilogues
        chain-moves-40n four-launches-become-one fusion-comes-first""",
    "fails": "pointwise-needs-same-shapes other-consumers-never-fuse",
    "holds in part": """nothing-shared-never-fuses reductions-come-first fusion-changes-numbers
        softmax-like-is-two-kernels fusion-saves-60-percent""",
}


def test_claims_say_what_was_counted_and_timed(monkeypatch, tmp_path):
    for make in (fusion_rows.chains, fusion_rows.patterns, fusion_rows.matmuls):
        make(tmp_path)
    for word, names in SAID.items():
        assert set(words(tmp_path, *names.split())) == {word}
    monkeypatch.setitem(fusion_rows.RATIOS, ("gate, vectors", "eager bf16"), 0.25)
    fusion_rows.patterns(tmp_path)  # bf16 is as fast as the fused chain
    assert words(tmp_path, "fusion-comes-first") == ["inconclusive"]
    for cosine_s, said in ((0.0, ["holds", "fails"]), (4e-4, ["fails", "holds"])):
        monkeypatch.setitem(fusion_rows.ARITHMETIC_S, "cosines", cosine_s)
        fusion_rows.chains(tmp_path)
        assert words(tmp_path, "the-second-cosine-is-free", "fused-chains-meet-the-ridge") == said


@pytest.mark.parametrize(
    ("op", "counts", "name", "word"),
    [
        ("x * row + column", (2, 2), "pointwise-needs-same-shapes", "holds in part"),
        ("softmax by hand", (5, 2), "other-consumers-never-fuse", "holds in part"),
        (COMBINED, (2, 2), "nothing-shared-never-fuses", "holds"),
        ("x / x.sum()", (2, 1), "reductions-come-first", "fails"),
        ("x.sin(), x.cos()", (2, 2), "siblings-share-their-read", "fails"),
        ("relu(a @ b + bias)", (3, 2, 2), "templates-take-epilogues", "fails"),
        ("gate, full w and b", (4, 2), "four-launches-become-one", "fails"),
    ],
)
def test_another_count_turns_a_claim(op, counts, name, word, tmp_path, monkeypatch):
    monkeypatch.setitem(fusion_rows.KERNELS, op, counts)
    fusion_rows.patterns(tmp_path)
    fusion_rows.matmuls(tmp_path)
    assert words(tmp_path, name) == [word]


def test_without_a_list_of_kernels_no_claim_counts_them(tmp_path, monkeypatch):
    monkeypatch.setattr(fusion_rows, "_listed", lambda row, count: row | {"kernels": None})
    fusion_rows.patterns(tmp_path)
    assert words(tmp_path, "siblings-share-their-read") == ["not measurable here"]
    with using(synthetic.showing(tmp_path)):
        drawn = figures.fused("fusion.patterns", "x.cos().cos()")
        assert "x.cos().cos()" in figures.counted()
    assert "not measured with its kernels listed" in drawn and ">cos<" not in drawn


def test_the_gate_takes_its_trips():
    assert calculations.gate_at_a_copys_rate(4e12) == pytest.approx(671e-6, rel=1e-2)
    assert calculations.fused_gate_at_a_copys_rate(4e12) == pytest.approx(268e-6, rel=1e-2)
    # 32 MiB are written and read, of a millisecond
    assert calculations.between_two_matmuls(4e12, both=1e-3) == pytest.approx(0.0168, rel=1e-2)
    assert calculations.long_over_short(long=4e-3, short=2e-3) == 2


@pytest.mark.parametrize(("number", "drawn"), [(2, False), (3, True), (4, False)])
def test_kinds_are_drawn_where_the_counts_are_those_recorded(number, drawn, tmp_path, monkeypatch):
    monkeypatch.setitem(fusion_rows.KERNELS, "x / x.sum()", (2, number))
    fusion_rows.patterns(tmp_path)
    fusion_rows.matmuls(tmp_path)
    with using(synthetic.showing(tmp_path)):
        html = figures.fused("fusion.patterns", "x.cos().cos()", "x / x.sum()")
        matmul = figures.fused("fusion.matmuls", "relu(a @ b + bias)")
        table = figures.counted()
    assert f"compiled: {number} kernels" in html and (">sums<" in html) is drawn
    assert "eager: 2 kernels" in html and "compiled: 1 kernel," in html
    assert "compiled: 2 kernels," in matmul and "Triton template: 1 kernel," in matmul
    assert all(each in table for each in ("through row reductions", "4 → 1", "10/4 = 2.5×"))
    boxes = re.findall(r'width="([\d.]+)"[^>]*fill-opacity', html)
    assert float(boxes[0]) == float(boxes[2])  # two trips, eager and fused
