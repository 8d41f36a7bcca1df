"""Several GPUs on made-up rows: fits and predictions, who fits where, verdicts, and pictures."""

import re
import textwrap
from functools import partial

import pytest

from anatomy import claims
from anatomy.chapters.distributed import figures, judged, scaling
from anatomy.chapters.distributed import overlap as overlapping
from anatomy.chapters.distributed import requirements as of
from anatomy.figures.text import inline
from anatomy.figures.tradeoffs import growth
from anatomy.figures.tradeoffs.growth import curve
from anatomy.judge import limits
from anatomy.judge.comparisons import Circumstances
from anatomy.record import recording, signatures
from anatomy.record.provenance.freshness import freshness
from anatomy.record.showing import using
from tests.chapters.distributed import distributed_rows
from tests.chapters.distributed.distributed_rows import GPUS
from tests.fakes import synthetic


@pytest.fixture
def made(tmp_path):
    """All four recordings of two GPUs."""
    for name in ("collectives", "training", "overlap", "memory"):
        getattr(distributed_rows, name)(tmp_path)
    return tmp_path


def rows_of(root, name, **params):
    return synthetic.showing(root).find(f"distributed.{name}", **params).recording.rows


def drawn(root, draw):
    with using(synthetic.showing(root)):
        return draw()


def test_what_two_gpus_measured_is_found_by_the_slug_of_one(made):
    (folder,) = made.iterdir()
    assert folder.name == "toy-gpu-x2"
    found = recording.find(made, "toy-gpu", "distributed.memory")
    assert found.machine == "toy-gpu-x2" == recording.on_several("toy-gpu-x2", found.params)
    assert recording.find(made, "toy-gpu", "distributed.memory", world_size=4) is None
    here = {"slug": "toy-gpu", "card": "0123456789ab", "torch": "2.13.0", "driver": "580.1"}
    assert freshness(found, here).current
    assert freshness(found, here | {"slug": "another"}).state == "machine-other"
    on_cpu = {"device": "cpu", "world_size": 2}
    assert recording.on_several("cpu-toy", on_cpu) == "cpu-toy"


def test_the_fit_finds_start_up_and_bandwidth(made):
    table = rows_of(made, "collectives")
    for op, seconds in (
        (of.STARTUP, distributed_rows.START_S),
        (of.GIGABYTE, 1e9 / distributed_rows.RATE),
    ):
        found = [row for row in table if row["op"] == op]
        assert len(found) == 3
        for row in found:
            # Whatever the host does is in the start.
            assert (row.get("paced_by") == "GPU") is (op == of.GIGABYTE)
            assert row["median_s"] == pytest.approx(seconds, rel=0.02)
            assert row["low_s"] <= row["median_s"] <= row["high_s"]
            assert 0 <= row["fit_error"] < 0.03
    fit = figures.of_fit(table)
    assert fit.rate == pytest.approx(distributed_rows.RATE, rel=0.02) and fit.gpus == 2


def test_bandwidth_is_a_share_of_what_the_makers_links_carry():
    row = {"op": of.GIGABYTE, "variant": "all-reduce", "gpus": 2, "bytes": 10**9, "median_s": 4e-3}
    for gpu, share in (("NVIDIA H200", 250e9 / 450e9), ("Toy GPU", None)):
        known = Circumstances(machine={"gpu": gpu})
        assert next(judged.of_the_link([row], known))[1]["link_share"] == share


def test_a_line_that_falls_or_one_point_is_no_fit():
    assert scaling.fitted([(1e3, 2e-3), (1e9, 1e-3)], 2) is None
    assert scaling.fitted([(1e6, 1e-3)], 2) is None and scaling.fitted([], 2) is None


def test_a_ring_of_more_gpus_starts_as_soon_and_sends_little_more():
    fit = scaling.Fit(1e-5, 1e11, gpus=2)
    assert fit.seconds(0, 4) == pytest.approx(1e-5)
    assert fit.seconds(1e9, 2) == pytest.approx(1e-5 + 1e9 / 1e11)
    assert fit.seconds(1e9, 4) == pytest.approx(1e-5 + 1.5e9 / 1e11)
    four = scaling.predicted(fit, 1e9, alone_s=0.1, step_s=0.11, gpus=4)
    grown = fit.seconds(1e9, 4) / fit.seconds(1e9, 2)
    assert four.added_s == pytest.approx(0.01 * grown) and four.step_s > 0.11
    assert four.efficiency == pytest.approx(0.1 / four.step_s)
    assert scaling.predicted(fit, 1e9, 0.1, 0.1, 8).efficiency == 1, "all of it was hidden"


def test_who_was_behind_and_what_a_gpu_does(made):
    ranks = [row for row in rows_of(made, "collectives") if row.get("rank") is not None]
    assert {round(row["behind_s"], 9) for row in ranks if row["rank"] == 0} == {0.0}
    assert {round(row["behind_s"], 9) for row in ranks if row["rank"] == 1} == {1e-6}
    assert all(row["low_s"] <= row["median_s"] <= row["high_s"] for row in ranks)
    table = rows_of(made, "training")
    by_op = {row["op"]: row for row in table if row["variant"] == of.DDP}
    weak, strong = by_op[of.WEAK], by_op[of.STRONG]
    assert weak["efficiency"] == pytest.approx(1 / 1.1, rel=0.01)
    assert strong["efficiency"] == pytest.approx(0.5 / 0.6, rel=0.01)
    assert weak["efficiency_low"] < weak["efficiency"] < weak["efficiency_high"]
    step_s = 1.1 * distributed_rows.STEP_S
    assert weak["throughput"] == pytest.approx(of.STEP.tokens / step_s, rel=0.01)


def test_a_lane_is_drawn_with_few_spans_that_hold_all_kernels():
    kernels = [(0.0, 1.0, "a"), (0.5, 2.0, "b"), (2.1, 3.0, "c"), (4.0, 4.5, "d")]
    drawn = partial(overlapping.drawn, since=0.0)
    assert drawn(kernels, gap_s=0.0) == [0.0, 2.0, 2.1, 3.0, 4.0, 4.5]
    assert drawn(kernels, gap_s=0.2) == [0.0, 3.0, 4.0, 4.5]
    assert drawn([], gap_s=0.0) == []


def test_kernels_of_nccl_move_and_names_of_calls_are_no_kernels():
    kernels = [
        (0.0, 4.0, "sm90_xmma_gemm"),
        (3.0, 6.0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
        (3.0, 6.0, "nccl:all_reduce"),
        (7.0, 8.0, "Memcpy PtoP (Device -> Device)"),
        (5.0, 5.5, "Memcpy DtoD (Device -> Device)"),
    ]
    found = overlapping.figures(*overlapping.parted(kernels))
    assert found["compute_s"] == 4.5 and found["communication_s"] == 4.0
    assert found["exposed_s"] == 2.5
    assert found["profiled_step_s"] == 8.0
    assert found["communication_spans_s"] == [3.0, 6.0, 7.0, 8.0]


@pytest.mark.parametrize("card_gib", [8, 80, 141])
def test_the_large_model_is_too_large_for_ddp_and_not_for_fsdp_on_two(card_gib):
    cap = int(of.CAP * card_gib * 2**30)
    size = of.too_large(cap, of.LARGE)
    assert cap < 16 * size.weights and 8 * size.weights + size.activation_bytes < cap


@pytest.mark.parametrize(
    ("name", "changed", "word"),
    [
        ("ddp-if-it-fits", {}, "holds"),
        ("ddp-if-it-fits", {"SLOWER": {of.KEPT: 0.9, of.FSDP: 0.9}}, "holds in part"),
        ("ddp-if-it-fits", {"WIDER": {of.KEPT: 0.9}}, "holds in part"),
        ("ddp-if-it-fits", {"FIT": {of.FSDP: False}}, "holds in part"),
        ("data-parallel-synchronizes", {}, "holds"),
        ("data-parallel-synchronizes", {"COPIED": 0.01}, "holds in part"),
        ("data-parallel-synchronizes", {"PARTS": {of.FORWARD_OFF: 20.0}}, "holds in part"),
        ("data-parallel-synchronizes", {"SLOWER": {of.PARALLEL_OFF: 1.0}}, "holds in part"),
        ("ddp-hides-most", {}, "holds"),
        ("ddp-hides-most", {"HIDDEN": 0.2}, "fails"),
    ],
)
def test_claims_are_decided_by_what_was_measured(name, changed, word, tmp_path, monkeypatch):
    for constant, value in changed.items():
        before = getattr(distributed_rows, constant)
        value = before | value if isinstance(before, dict) else value
        monkeypatch.setattr(distributed_rows, constant, value)
    for each in ("training", "overlap", "memory"):
        getattr(distributed_rows, each)(tmp_path)
    result = claims.evaluate(synthetic.showing(tmp_path), name)
    assert result.word == word
    assert result.machine == "toy-gpu", "in the ledger it stands with the machine's other claims"


def test_lanes_show_every_gpu_and_what_is_exposed(made):
    markup = drawn(made, lambda: figures.lanes({of.DDP: "DDP", of.FSDP: "FSDP2"}))
    assert markup.count(">GPU 1<") == 4  # two ways, for a desk and for a phone
    assert "DDP: sends 5.0 ms, exposed 1.0 ms, idle 0" in markup
    assert "FSDP2: sends 5.0 ms, exposed 5.0 ms, idle 0" in markup


def test_idle_is_what_neither_computes_nor_sends():
    kernels = [(0.0, 2.0, "gemm"), (5.0, 6.0, "gemm")]
    found = overlapping.figures(kernels, [(1.0, 3.5, "nccl"), (7.0, 8.0, "nccl")])
    rows = [found, dict.fromkeys(found)]
    (_, seen), (_, missing) = judged.idle(rows, Circumstances())
    assert found["profiled_step_s"] == 8.0
    assert seen["idle_s"] == pytest.approx(1.5 + 1.0) and missing["idle_s"] is None


def test_data_parallel_is_drawn_beside_kept_threads_and_another_attention(made):
    markup = drawn(made, figures.data_parallel)
    for name in figures.RUNS:
        assert markup.count(f">{name}<") == 2  # desk and phone
    assert "DataParallel: 10 ms to run; kept threads: 3.0 ms to run; without cuDNN: 3" in markup


def test_the_calculator_begins_with_the_model_of_the_page(made):
    """What the script is given is what the table says; it is run in tests/browser."""
    markup = drawn(made, lambda: figures.predicted((4, 8), calculator=True))
    data = dict(re.findall(r'data-([a-z-]+)="([^"]+)"', markup.partition("several-gpus")[2]))
    fit = scaling.Fit(float(data["start-s"]), float(data["rate"]), GPUS)
    alone_s, sent = float(data["alone-s"]), 4e6 * float(data["weights"])
    whole = alone_s + float(data["share"]) * fit.seconds(sent, int(data["gpus"]))
    efficiency = re.search(r"<b data-efficiency>(\d+)%</b>", markup)[1]
    assert float(data["most"]) > float(data["share"])
    assert int(efficiency) == pytest.approx(100 * alone_s / whole, abs=1)
    assert 'class="several-gpus"' not in drawn(made, figures.predicted)


def test_bandwidth_is_drawn_under_what_the_links_carry(made, monkeypatch):
    def chart():
        return curve("distributed.collectives", op="message of * bytes", x="message_bytes",
                     y="rate", ceiling="NVLink")  # fmt: skip

    assert "NVLink" not in drawn(made, chart), "nobody states it of a made-up card"
    sheet = limits.datasheet("NVIDIA H200")
    monkeypatch.setattr(growth, "datasheet", lambda gpu: sheet)
    assert "NVLink one way, 450 GB/s" in drawn(made, chart)


def test_a_prediction_stands_beside_what_was_measured_later(made):
    alone = drawn(made, lambda: figures.predicted((4, 8)))
    lines = re.findall(r"<tr.*?</tr>", alone, re.S)
    # The step of two GPUs is the measured one; of four and eight nothing was measured yet.
    assert len(lines) == 4 and lines[1].count("33") >= 2
    assert all("—" in line for line in lines[2:])
    distributed_rows.training(made, world_size=4)
    both = drawn(made, lambda: figures.predicted((4, 8), measured=(4,)))
    assert both.count('class="ci"') > alone.count('class="ci"')


def test_all_that_the_page_shows_is_in_the_tables(made):
    """No block and no reference of it ends a build once two GPUs have recorded."""
    synthetic.MAKERS["limits.ceilings"](made)
    page = "axioms/distributed.md"
    text = (signatures.PACKAGE.parent / "docs" / page).read_text(encoding="utf-8")
    showing = synthetic.showing(made, page=page)
    blocks = re.findall(r'^( *)```python exec="on" html="1"\n(.*?)^ *```', text, re.S | re.M)
    shown = [showing.run(textwrap.dedent(code), line=1) for _, code in blocks]
    assert len(shown) >= 8 and all("<table" in each or "<svg" in each for each in shown)
    references = re.findall(r"\[\[distributed.*?\]\]", text)
    with using(showing):
        said = [inline.render_text(showing, each) for each in references]
    assert len(said) > 10 and not any("[[" in each for each in said)


def test_without_recordings_pictures_are_gaps_with_a_command(tmp_path):
    distributed_rows.memory(tmp_path)
    for draw in (lambda: figures.lanes({of.DDP: "DDP"}), figures.predicted):
        assert "pytorch-gpu-anatomy record distributed." in drawn(tmp_path, draw)
