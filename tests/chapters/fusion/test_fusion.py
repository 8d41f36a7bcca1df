"""Fusion without a GPU: chains and patterns at toy size, kernels that are counted, and claims."""

import re

import pytest
import torch

from anatomy.chapters.fusion import calculations, figures, fusion, judged, requirements
from anatomy.chapters.fusion.patterns import COMBINED, PATTERNS, tensors
from anatomy.record.requirements import Capacity
from anatomy.record.showing import using
from anatomy.table.errors import MeasurementError
from tests.chapters.fusion import fusion_rows
from tests.fakes import synthetic
from tests.fakes.verdicts import words

TOY = {"device": "cpu", "backend": "eager", "iters": 2, "budget_s": 0.05}


# ---- What is measured.


def test_chains_of_all_lengths_are_timed_with_their_bytes(monkeypatch):
    monkeypatch.setattr(fusion, "LENGTHS", (1, 4))
    on = Capacity(cache_bytes=512)
    monkeypatch.setattr(fusion.memory, "capacity", lambda where: on)
    table = fusion.chains(**TOY)
    rows = table[(table.op == "cosines") & (table.role != "again")]
    assert list(rows.variant) == ["eager, 1", "eager, 4", "compiled, 1", "compiled, 4"]
    assert list(rows.operations) == [1, 4, 1, 4] and rows.error.lt(1e-6).all()
    assert list(rows.bytes) == [8 * 1024, 32 * 1024, 8 * 1024, 8 * 1024]


def test_every_pattern_is_checked_and_timed(monkeypatch):
    few = {op: PATTERNS[op] for op in ("x / x.sum(-1)", "gate, vectors")}
    monkeypatch.setattr(fusion, "PATTERNS", few)
    table = fusion.patterns(**TOY, scale=2**-7)
    rows = table[table.role != "again"].set_index(["op", "variant"])
    assert rows.median_s.gt(0).all()
    assert list(rows.loc["gate, vectors"].index) == ["eager", "compiled", "eager bf16"]


def test_a_matmul_that_no_template_takes_says_why(monkeypatch):
    why = iter(["", "not compiled: no choices", "", "not compiled: no choices", ""])
    monkeypatch.setattr(fusion.grid, "refusal", lambda call: next(why))
    table = fusion.matmuls(**TOY, scale=2**-7)
    rows = table[table.role != "again"].set_index(["op", "variant"])
    templates = rows.xs("Triton template", level="variant")
    assert len(templates) == 2 and set(templates.note) == {"not compiled: no choices"}
    assert rows.drop("Triton template", level="variant").median_s.gt(0).all()


def test_the_options_are_those_of_the_compiler():
    import torch._inductor.config as config

    with config.patch(fusion.TILES | dict(PATTERNS[COMBINED].options)):
        assert config.combo_kernels and config.max_autotune_gemm_backends == "TRITON"


def test_what_is_combined_is_as_small_as_inductor_wants_it():
    from torch._inductor.codegen.triton_combo_kernel import LARGE_NUMELS

    given = tensors(2048, torch.device("cpu"))
    sizes = {given[name].numel() for name in PATTERNS[COMBINED].takes}
    assert sizes == {1024} and requirements.SIDE**2 > LARGE_NUMELS > 1024


@pytest.mark.parametrize(
    ("name", "cell", "ways"),
    [
        ("patterns", "gate, vectors", ["eager", "compiled", "eager bf16"]),
        ("matmuls", "relu(a @ b + bias)", ["eager", "compiled", "Triton template"]),
        ("matmuls", "a @ b @ c", ["eager", "compiled"]),
        ("chains", "cosines", [f"{way}, {n}" for way in ("eager", "compiled") for n in (1, 4)]),
    ],
)
def test_a_cell_that_fails_has_what_pages_and_claims_read_of_it(name, cell, ways, monkeypatch):
    def refuses(*_, **__):
        raise MeasurementError("blocks were disturbed")

    monkeypatch.setattr(fusion, "PATTERNS", {"gate, vectors": PATTERNS["gate, vectors"]})
    monkeypatch.setattr(fusion, "LENGTHS", (1, 4))
    monkeypatch.setattr(fusion, "compare", refuses)
    monkeypatch.setattr(fusion.grid, "refusal", lambda call: "")
    table = getattr(fusion, name)(**TOY, scale=2**-10)
    assert list(table[table.op == cell].variant) == ways and table.note.str.contains("dist").all()
    assert name != "chains" or {"way", "operations", "median_s"} <= set(table.columns)


def test_what_is_required_grows_with_the_tensor():
    for wanted in (requirements.chains, requirements.patterns, requirements.matmuls):
        on = Capacity(cache_bytes=2**26)
        small, large = (list(wanted(on, scale)) for scale in (0.25, 1.0))
        assert all(a.bytes < b.bytes < 2**34 for a, b in zip(small, large, strict=True))


def test_fills_of_the_driver_are_no_kernels():
    rows = [{"kernels": ["Memset (Device)", "triton_poi"]}, {"kernels": None}]
    found = list(judged.launched([*rows, {"op": "x"}], None))
    assert found == [(0, {"launched": 1}), (1, {"launched": None})]


# ---- What is said.

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
    monkeypatch.setitem(fusion_rows.SPEED, "gate, vectors", 2.0)  # as fast as in half of the bits
    fusion_rows.patterns(tmp_path)
    assert words(tmp_path, "fusion-comes-first") == ["inconclusive"]


@pytest.mark.parametrize(
    ("op", "counts", "name", "word"),
    [
        ("x * row + column", (2, 2), "pointwise-needs-same-shapes", "holds in part"),
        ("softmax by hand", (5, 2), "other-consumers-never-fuse", "holds in part"),
        (COMBINED, (2, 2), "nothing-shared-never-fuses", "holds"),
        ("x / x.sum()", (2, 1), "reductions-come-first", "fails"),
        ("x.sin(), x.cos()", (2, 2), "siblings-share-their-read", "fails"),
        ("gate, full w and b", (4, 2), "four-launches-become-one", "fails"),
        ("gate, full w and b", (4, 0), "four-launches-become-one", "not measurable here"),
    ],
)
def test_another_count_turns_a_claim(op, counts, name, word, tmp_path, monkeypatch):
    monkeypatch.setitem(fusion_rows.KERNELS, op, counts)
    fusion_rows.patterns(tmp_path)
    fusion_rows.matmuls(tmp_path)
    assert words(tmp_path, name) == [word]


@pytest.mark.parametrize(
    ("cosine_s", "said"), [(0.0, ["holds", "fails"]), (4e-4, ["fails", "holds"])]
)
def test_arithmetic_is_free_as_long_as_it_is_short(cosine_s, said, tmp_path, monkeypatch):
    monkeypatch.setitem(fusion_rows.MOST, "cosines", cosine_s)
    fusion_rows.chains(tmp_path)
    assert words(tmp_path, "the-second-cosine-is-free", "fused-chains-meet-the-ridge") == said


def test_without_a_list_of_kernels_no_claim_counts_them(tmp_path, monkeypatch):
    def unlisted(row, count):
        row |= {"kernels": None, "kernels_per_call": None}

    monkeypatch.setattr(fusion_rows, "_named", unlisted)
    fusion_rows.patterns(tmp_path)
    assert words(tmp_path, "siblings-share-their-read") == ["not measurable here"]
    with using(synthetic.showing(tmp_path)):
        assert "not measured with its kernels listed" in figures.fused("x.cos().cos()")
        assert "x.cos().cos()" in figures.counted()


@pytest.mark.parametrize(
    ("copy", "eager_s", "fused_s"), [(4e12, 671e-6, 268e-6), (2e12, 1342e-6, 537e-6)]
)
def test_the_gate_takes_its_trips(copy, eager_s, fused_s):
    assert calculations.gate_at_a_copys_rate(copy) == pytest.approx(eager_s, rel=1e-2)
    assert calculations.fused_gate_at_a_copys_rate(copy) == pytest.approx(fused_s, rel=1e-2)
    # 32 MiB are written and read, of a millisecond
    between = calculations.between_two_matmuls(copy, both=1e-3)
    assert between == pytest.approx(67.1e6 / copy / 1e-3, rel=1e-2)
    assert calculations.long_over_short(long=4e-3, short=2e-3) == 2


# ---- What is shown.


def test_kinds_of_fusion_are_drawn_where_the_counts_are_those_recorded(tmp_path, monkeypatch):
    fusion_rows.patterns(tmp_path)
    fusion_rows.matmuls(tmp_path)
    with using(synthetic.showing(tmp_path)):
        drawn = figures.fused("x.cos().cos()", "x / x.sum()")
        matmul = figures.fused("a @ int8.to(bf16)", experiment="fusion.matmuls")
        table = figures.counted()
    assert "eager: 2 kernels" in drawn and "compiled: 1 kernel," in drawn
    assert "compiled: 2 kernels," in matmul and "Triton template: 1 kernel," in matmul
    assert table.count("<tr>") >= 13 and "through row reductions" in table
    assert "4 → 1" in table and "10/4 = 2.5×" in table and "</code>, 1024 elements" in table
    for number, drawn in ((3, True), (4, False)):
        monkeypatch.setitem(fusion_rows.KERNELS, "x / x.sum()", (2, number))
        fusion_rows.patterns(tmp_path)
        with using(synthetic.showing(tmp_path)):
            html = figures.fused("x / x.sum()")
        assert f"compiled: {number} kernels" in html and (">sums<" in html) is drawn


def test_kernels_are_as_wide_as_the_time_of_their_way(tmp_path):
    def widths(op):
        with using(synthetic.showing(tmp_path)):
            wide = figures.fused(op).partition("</svg>")[0]
        boxes = re.findall(r"<rect[^>]*fill-opacity[^>]*>", wide)
        return [float(re.search(r'width="([\d.]+)"', each)[1]) for each in boxes]

    fusion_rows.patterns(tmp_path)
    eager, other, fused = widths("x.cos().cos()")
    assert eager == other and fused == pytest.approx(eager, abs=1)  # in half of the time
    assert figures._widths(figures.DRAWN["x / x.sum()"][1][1], 358, 0) == [100, figures.NAMED, 200]
    assert figures._widths(figures.DRAWN["relu(a @ b + bias)"][0], 600, 400) == [400, 100, 100]
    assert figures._widths(figures.DRAWN["a @ int8.to(bf16)"][0], 600, 590)[0] == figures.NAMED
