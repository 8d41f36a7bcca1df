"""The workloads of known bottleneck: their experiment, their claims, and their page."""

import json

import pytest
import torch

from anatomy import claims
from anatomy.chapters.bottlenecks import bottlenecks, confusions, hotspots, step_shares
from anatomy.chapters.bottlenecks import workloads as bottlenecks_workloads
from anatomy.record import recording
from anatomy.record.showing import using
from anatomy.table.errors import BadParameter, UnknownName
from tests.fakes import synthetic
from tests.fakes.verdicts import verdict

CPU = torch.device("cpu")


@pytest.fixture
def root(tmp_path):
    for name in ("bottlenecks.confusion", "bottlenecks.profiled_call"):
        synthetic.MAKERS[name](tmp_path)
    return tmp_path


def edit(root, name, change):
    """Change the rows of a recording and save it again, so that it can be trusted."""
    (file,) = (root / synthetic.MACHINE / name).glob("*.json")
    data = json.loads(file.read_text())
    for row in data["rows"]:
        change(row)
    data["rows"] = synthetic.as_said(data["rows"])
    recording.save(data, root)


def ratios(value):
    """An edit that gives every workload built to wait, or to want for input, one ratio."""
    fourth = ("item", "nonzero", "batches")

    def change(row):
        if row["variant"] == "without" and row["op"].startswith(fourth):
            row |= {"ratio": value, "ratio_low": 0.99 * value, "ratio_high": 1.01 * value}

    return change


@pytest.mark.parametrize(("make"), bottlenecks_workloads.WORKLOADS)
def test_without_its_cause_a_workload_computes_the_same(make):
    workload = make(CPU, 0.005)
    found = workload.call()
    assert isinstance(found, torch.Tensor)
    if workload.without:
        first = found.clone()
        torch.testing.assert_close(workload.without(), first)
    if workload.inputs:
        torch.testing.assert_close(workload.step(next(workload.inputs())), workload.call())


def test_there_are_twelve_and_every_kind_is_among_them():
    built = [make(CPU, 0.005).expected for make in bottlenecks_workloads.WORKLOADS]
    assert len(built) + 1 == 12
    assert {kind: built.count(kind) for kind in built} == {
        "compute": 2, "memory": 3, "launch": 2, "sync": 2, "input": 2
    }  # fmt: skip


def test_a_training_step_leaves_its_weights_as_they_are():
    step = bottlenecks_workloads._training(CPU, 1.0).call
    assert step() == step()


def test_a_workload_that_the_machine_refuses_is_a_row_that_says_why(monkeypatch):
    def refuses(where, scale):
        raise RuntimeError("no kernel image\nis available")

    monkeypatch.setattr(bottlenecks, "WORKLOADS", (refuses,))
    table = bottlenecks.confusion(device="cpu", scale=0.005, budget_s=0.01)
    assert list(table.op) == ["refuses", "all-reduce"]
    assert table.note[0] == "failed: RuntimeError: no kernel image" and "one GPU" in table.note[1]


def test_a_graph_that_can_not_be_captured_is_told_of(monkeypatch):
    def refuses(call):
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(bottlenecks_workloads, "_replay", refuses)
    workload = bottlenecks_workloads.Workload("x", "launch", lambda: None)
    found = bottlenecks_workloads._with_graph(workload, torch.device("cuda", 0))
    assert found.without is None and "no CUDA graph: operation not permitted" in found.missing


def test_a_fourth_kind_is_one_whose_removal_alone_makes_the_work_faster(root):
    found = verdict(root, "three-bottlenecks")
    assert found.word == claims.FAILS, found.evidence
    assert "11 workloads" in found.evidence and "named 11 as built" in found.evidence
    assert "three kinds named 7, of 7 that" in found.evidence
    assert "input and sync are beside the three" in found.evidence
    assert (found.measured.unit, found.measured.text) == ("count", "5")
    edit(root, "bottlenecks.confusion", ratios(1.0))
    assert verdict(root, "three-bottlenecks").word == claims.HOLDS
    assert verdict(root, "three-bottlenecks").measured.text == "3"
    edit(root, "bottlenecks.confusion", ratios(0.9))
    undecided = verdict(root, "three-bottlenecks")
    assert undecided.word == claims.INCONCLUSIVE and undecided.measured is None


def test_work_that_runs_other_kernels_without_its_cause_decides_nothing(root):
    def change(row):
        if row["variant"] == "without" and row["op"].startswith(("item", "batches")):
            row |= {"ratio": 1.0, "ratio_low": 0.99, "ratio_high": 1.01}

    edit(root, "bottlenecks.confusion", change)
    found = verdict(root, "three-bottlenecks")
    assert found.word == claims.HOLDS
    assert "Not counted" in found.evidence and "nonzero in every round (sync)" in found.evidence


def test_without_any_time_the_kinds_are_not_measurable(root):
    def lost(row):
        if row["variant"] == "without":
            row |= {"median_s": None, "low_s": None, "high_s": None, "note": "no such kernel"}

    edit(root, "bottlenecks.confusion", lost)
    assert verdict(root, "three-bottlenecks").word == claims.NOT_MEASURABLE


def test_a_profile_of_one_call_is_held_against_later_ones(root):
    found = verdict(root, "profile-one-call")
    assert found.word == claims.IN_PART and "the GPU" in found.condition
    assert "cuLibraryLoadData" in found.evidence

    def same(row):
        row["top_host"] = "aten::addmm"

    def other(row):
        if row["call"] == 1:
            row |= {"top_host": "a", "top_device": "b"}

    def each(row):
        row |= {"top_host": str(row["call"]), "top_device": str(row["call"])}

    def no_gpu(row):
        row |= {"top_device": None, "top_host": None}

    def among(row):
        row |= {"top_host": f"op {row['call'] % 20}", "top_device": f"k {row['call'] % 20}"}

    for change, word in (
        (same, claims.HOLDS),
        (other, claims.FAILS),
        # The later calls differ; the first names what none of them does, or what one of them does.
        (each, claims.FAILS),
        (among, claims.INCONCLUSIVE),
        (no_gpu, claims.NOT_MEASURABLE),
    ):
        edit(root, "bottlenecks.profiled_call", change)
        assert verdict(root, "profile-one-call").word == word


def test_the_page_shows_both_matrices_and_every_workload(root):
    with using(synthetic.showing(root)):
        matrix, workloads = confusions.confusion(), confusions.confusion("workloads")
        three = confusions.confusion("three kinds")
        shares = confusions.confusion("shares")
        with pytest.raises(UnknownName, match="part of the confusion"):
            confusions.confusion("all")
    assert "diagnose: 11 of 11 as built" in matrix and "three kinds" not in matrix
    assert "three kinds: 7 of 11 as built" in three and "none of the three" in three
    assert "needs several GPUs" in workloads and "nonzero in every round" in workloads
    assert "0.6" in workloads and "0.75" in workloads and "40.0%" in shares
    assert "nonzero in every round" in shares and "all-reduce" not in shares


def test_a_wrong_name_is_beside_the_diagonal_and_doubt_is_said(root):
    def wrong(row):
        if row["op"] == "copy" and row["role"] == "control":
            row |= {"found": "latency", "certain": False}

    edit(root, "bottlenecks.confusion", wrong)
    with using(synthetic.showing(root)):
        matrix, workloads = confusions.confusion(), confusions.confusion("workloads")
        told = confusions.confusion("told")
        of_one = confusions.confusion("told", op="matmul")
        first = confusions.confusion("answer", op="matmul")
        with pytest.raises(UnknownName, match="no workload 'nothing'"):
            confusions.confusion("told", op="nothing")
    assert "diagnose: 10 of 11 as built" in matrix and "latency" in matrix
    assert "latency, in doubt" in workloads
    assert "copy on toy" in told and "matmul" not in told
    assert "It waits." in told
    assert "matmul on toy" in of_one and "copy" not in of_one
    assert ">bottleneck: toy<" in first and "matmul on toy" not in first


def test_a_kernel_of_a_report_has_its_short_name():
    name = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<flo"
    short = "vectorized_elementwise_kernel CUDAFunctorOnSelf_add"
    assert confusions._named(f"   70.4%   30.0 ×  {name}...") == f"   70.4%   30.0 ×  {short}"
    other = "  It waits for the GPU in 55.6%."
    assert confusions._named(other) == other


def test_where_every_name_is_right_it_says_so(root):
    with using(synthetic.showing(root)):
        matrix, told = confusions.confusion(), confusions.confusion("told")
    assert "diagnose: 11 of 11 as built" in matrix
    assert "without a doubt" in told


def test_hot_spots_of_a_first_call_are_held_against_later_ones(root):
    with using(synthetic.showing(root)):
        table = hotspots.hotspots(caption="Longest.")
    assert "cuLibraryLoadData" in table and "not later" in table
    assert "gemm_kernel" in table and "float, 4" not in table and "as later" in table

    def no_gpu(row):
        row |= {"device_s": None, "top_device": None, "top_device_share": None}

    edit(root, "bottlenecks.profiled_call", no_gpu)
    with using(synthetic.showing(root)):
        assert "GPU busy" not in hotspots.hotspots()


def test_what_is_not_recorded_is_a_gap(tmp_path):
    with using(synthetic.showing(tmp_path)):
        assert "record bottlenecks.confusion" in confusions.confusion()
        assert "record bottlenecks.profiled_call" in hotspots.hotspots()


def test_the_shares_of_a_step_are_the_cpus_and_the_gpus(root):
    with using(synthetic.showing(root)):
        html = step_shares.step_shares("copy")
        with pytest.raises(BadParameter, match="no enqueue_share"):
            step_shares.parts({"op": "copy"})
    # Busy for 90 %, of which 30 points waiting; idle for 40 %, and no copies.
    for said in ("launches 60.0%", "GPU 30.0%", "kernels 60.0%", "idle 40.0%"):
        assert said in html
