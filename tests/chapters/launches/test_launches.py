"""Launches without a GPU: what the tables hold, what a missing compiler costs, and the claims."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
import torch
from torch.utils import cpp_extension

from anatomy.chapters.launches import calculations, launches, requirements
from anatomy.chapters.launches.launches import CPP, EMPTY, GRAPH, OP, OURS
from anatomy.figures.curriculum import calculations as calculated
from anatomy.figures.diagrams.blocks import block_elements
from anatomy.parts import cuda_kernels, graphs
from tests.chapters.launches import launches_rows
from tests.fakes import synthetic
from tests.fakes.verdicts import words
from tests.parts import cuda_on_cpu


@pytest.fixture
def toy(monkeypatch, kernels_on_cpu):
    """A card whose kernels run on the CPU, whose graph is a call, and that has no compiler."""
    count = {"slept": 0}

    def slept(cycles):
        count["slept"] += 1

    monkeypatch.setattr(cuda_kernels, "CudaKernel", cuda_on_cpu.kernel)
    monkeypatch.setattr(torch.cuda, "_sleep", slept)
    monkeypatch.setattr(cpp_extension, "CUDA_HOME", None)
    monkeypatch.setattr(graphs, "capture", lambda call, where: graphs.Captured(call, 0.1, 0))
    monkeypatch.setattr(launches, "HOW", launches.HOW | {"budget_s": 0.3, "settle_cap_s": 0.01})
    monkeypatch.setattr(launches, "COUNT", 5000)
    return count


def test_every_way_launches_a_hundred_and_a_missing_compiler_costs_its_rows(toy):
    table = launches.rates("cpu", iters=2)
    steady = table[(table.op == "100 launches") & (table.role != "again")]
    assert len(steady) == 3 * 5 and set(steady.variant) == {OP, EMPTY, OURS, CPP, GRAPH}
    timed = steady[steady.variant != CPP]
    assert timed.median_s.gt(0).all() and set(timed.kernel_count) == {100}
    assert set(steady[steady.variant == CPP].note) == {
        "not supported: needs the CUDA toolkit (nvcc)"
    }
    assert list(table[table.op == "compile"].variant) == [OURS]
    assert toy["slept"] and toy["slept"] % 100 == 0


def test_what_a_compiler_says_costs_its_own_rows(toy, monkeypatch):
    def fails():
        raise RuntimeError("Error building extension 'launches'\nnvcc: fatal")

    monkeypatch.setattr(launches, "_from_cpp", fails)
    table = launches.rates("cpu", iters=2)
    notes = table[(table.variant == CPP) & table.note.notna()].note
    assert len(notes) == 3 and notes.str.contains("Error building extension").all()
    assert table[table.variant == GRAPH].median_s.gt(0).all()


def test_vectors_are_added_with_blocks_of_every_size(toy):
    table = launches.block_sizes("cpu", iters=2)
    cuda = table[table.made_with == "CUDA"]
    assert list(cuda.block_threads) == list(launches.THREADS) == list(cuda.block_elements)
    assert cuda.error.lt(1e-7).all() and set(cuda.bytes) == {60_000}
    if find_spec("triton") is None:
        triton = table[table.variant.str.startswith("Triton")]
        assert len(triton) == 15 and triton.note.str.contains("Triton is not installed").all()


@pytest.mark.parametrize("measure", [launches.rates, launches.block_sizes])
def test_without_a_gpu_rows_say_why(measure, monkeypatch):
    monkeypatch.setattr(launches, "COUNT", 5000)
    table = measure("cpu", iters=2)
    kernels = table[~table.variant.str.startswith("torch.add")]
    assert len(kernels) > 2 and kernels.note.notna().all()


def test_the_vectors_fit_where_the_requirement_says():
    (need,) = requirements.block_sizes(None)
    assert need.bytes == 2**25 * 48


def run(script: str, **environment: str) -> subprocess.CompletedProcess:
    """A script of the day, by itself and without a GPU."""
    told = os.environ | {"CUDA_VISIBLE_DEVICES": ""} | environment
    command = [sys.executable, str(launches.SNIPPETS / f"{script}.py")]
    return subprocess.run(command, env=told, capture_output=True, text=True)


@pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton, whose interpreter runs it")
def test_the_first_triton_kernel_is_right():
    done = run("first_triton", TRITON_INTERPRET="1")
    assert done.stdout == "Right.\n", done.stderr


@pytest.mark.parametrize("name", ["first_cuda", "from_cpp"])
def test_without_a_gpu_a_script_says_what_it_needs(name):
    done = run(name)
    assert done.returncode == 1 and "needs an NVIDIA GPU" in done.stderr


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        ({}, ["holds"] * 3),
        ({OP: 5e-7}, ["fails", "fails", "holds"]),  # a host that asks in no time
        ({GRAPH: 2e-6}, ["holds", "holds", "holds in part"]),  # a graph slower than C++
    ],
)
def test_who_launches_decides_what_a_launch_costs(costs, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(launches_rows, "HOST_S", launches_rows.HOST_S | costs)
    launches_rows.rates(tmp_path)
    names = "asking-outlasts-an-empty-kernel", "cpp-launches-twice-as-fast", "graphs-launch-fastest"
    assert words(tmp_path, *names) == expected


def test_a_launch_is_a_hundredth_of_what_was_timed(tmp_path):
    launches_rows.rates(tmp_path)
    found = synthetic.showing(tmp_path).find("launches.rates").recording.rows
    row = next(r for r in found if r["variant"] == CPP and r["quantity"] == "host_enqueue")
    assert row["per_launch_s"] == pytest.approx(1.5e-6, rel=0.05)
    assert row["per_launch_low_s"] < row["per_launch_s"] < row["per_launch_high_s"]


def test_without_a_compiler_its_claim_is_not_measurable(tmp_path):
    launches_rows.rates(tmp_path, without_cpp=True)
    found = words(tmp_path, "cpp-launches-twice-as-fast", "graphs-launch-fastest")
    assert found == ["not measurable here", "holds"]


@pytest.mark.parametrize("slower", [1.8, 1.0])
def test_the_size_of_a_block_matters_where_it_is_small(slower, tmp_path, monkeypatch):
    monkeypatch.setattr(launches_rows, "WARP_SLOWER", slower)
    launches_rows.block_sizes(tmp_path)
    expected = ["holds" if slower > 1 else "fails", "holds", "inconclusive", "holds"]
    names = ("one-warp-a-block-is-slow", "larger-blocks-gain-nothing", "largest-blocks-beat-256")
    names += ("five-lines-of-triton-match-pytorch",)
    assert words(tmp_path, *names) == expected


@pytest.mark.parametrize(
    ("launch", "bandwidth", "elements"), [(4e-6, 4.29e12, 1.4e6), (8e-6, 0.6e12, 4e5)]
)
def test_the_answers_of_the_day_for_two_machines(launch, bandwidth, elements):
    assert calculations.elements_of_a_launch(launch, bandwidth) == pytest.approx(elements)
    in_millions = calculations.millions_of_a_launch(launch, bandwidth)
    assert in_millions == pytest.approx(elements / 1e6)
    assert calculations.cpp_over_python(0.5 * launch, launch) == pytest.approx(0.5)
    for threads, blocks in ((32, 2**20), (128, 2**18)):
        started = calculated.DECLARED[f"blocks-of-{threads}-in-a-nanosecond"].function
        assert started(time=1e-3) == pytest.approx(blocks / 1e6)


def test_the_drawing_of_blocks_says_who_adds_what():
    drawn = block_elements()
    assert "program 1: elements 4 to 7" in drawn and "element 6 is thread 2 of block 1" in drawn
