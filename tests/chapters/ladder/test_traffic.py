"""Bytes of attention: the count on paper is the operators', and reports are read right."""

import json
import os
import stat
import sys
import time
from collections import Counter

import pytest
import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from anatomy import claims
from anatomy.chapters.ladder import experiments
from anatomy.chapters.ladder.traffic import calls, traffic
from anatomy.chapters.ladder.traffic.calls import BOTH, FORWARD, FUSED, IN_BF16, WRITTEN_OUT
from anatomy.table.errors import AnatomyError, BadParameter, MeasurementError
from tests.chapters.ladder import ladder_traffic_rows
from tests.claims.test_claims import edited, verdict

CPU, GPU = torch.device("cpu"), torch.device("cuda:0")
H, T, D = 3, 32, 16
# Operators that are more than one kernel: a copy first, then what the name says.
TWICE = ("masked_fill",)
VIEWS = ("mT", "view", "_unsafe_view", "expand", "transpose", "t", "detach", "permute")


class Operators(TorchDispatchMode):
    """Adds up inputs and outputs of every operator that are not merely described anew."""

    def __init__(self, shapes):
        super().__init__()
        self.shapes, self.read, self.written = shapes, Counter(), Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name in VIEWS:
            return found
        times = 2 if name in TWICE else 1
        for tensor in args:
            if isinstance(tensor, torch.Tensor) and (kind := self.kind(tensor)):
                self.read[kind] += (
                    tensor.numel() * tensor.element_size() * (1 if kind == "mask" else times)
                )
        if isinstance(found, torch.Tensor) and (kind := self.kind(found)):
            self.written[kind] += found.numel() * found.element_size() * times
        return found

    def kind(self, tensor):
        return self.shapes.get(tensor.numel())


@pytest.mark.parametrize("direction", [FORWARD, BOTH])
@pytest.mark.parametrize("way", [WRITTEN_OUT, IN_BF16])
def test_the_count_on_paper_is_that_of_the_operators(way, direction):
    call = calls.call_of(way, direction, H, T, D, CPU)
    call()
    with Operators({H * T * T: "scores", H * T * D: "vectors", T * T: "mask"}) as seen:
        call()
    read, written, _ = traffic.formula(way, direction, H, T, D)
    assert sum(seen.read.values()) == read
    assert sum(seen.written.values()) == written


def test_the_ways_compute_the_same_attention():
    q, k, v = (torch.randn(1, H, T, D, dtype=torch.bfloat16) for _ in range(3))
    exact = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=True)
    for way in (WRITTEN_OUT, FUSED):
        found = calls.WAYS[way](q, k, v)
        torch.testing.assert_close(found.double(), exact, rtol=0.05, atol=0.03)
    unmasked = F.scaled_dot_product_attention(q.double(), k.double(), v.double())
    found = calls.WAYS[IN_BF16](q, k, v)
    torch.testing.assert_close(found.double(), unmasked, rtol=0.05, atol=0.03)


def test_scores_cost_the_square_and_a_fused_attention_does_not():
    once, twice = (traffic.formula(WRITTEN_OUT, BOTH, 8, n, 128) for n in (4096, 8192))
    assert 3.9 < sum(twice[:2]) / sum(once[:2]) < 4
    once, twice = (traffic.formula(FUSED, BOTH, 8, n, 128) for n in (4096, 8192))
    assert sum(twice[:2]) == 2 * sum(once[:2]) and once[2] == 0
    assert traffic.formula(IN_BF16, FORWARD, 8, 512, 128)[2] == 6


def test_short_sequences_are_counted_with_few_heads_and_with_as_many_as_there_are_tokens_for():
    found = traffic.cells(8, 128, 8192)
    pairs = {(cell["sequence"], cell["heads"]) for cell in found}
    assert pairs == {(512, 8), (512, 128), (2048, 8), (2048, 32), (8192, 8)}
    assert len(found) == len(pairs) * 2 * 3
    assert {cell["sequence"] for cell in traffic.cells(1, 8, 100)} == {100}


def test_without_a_gpu_the_count_on_paper_stands_and_every_row_says_why():
    table = experiments.traffic(device="cpu", heads=2, longest=1024)
    assert table.formula_bytes.gt(0).all() and "dram_bytes" not in table
    assert set(table.note) == {"counters not read: only an NVIDIA GPU has them"}
    assert (table[table.variant == FUSED].formula_over_fused == 1).all()


def test_a_size_of_nothing_is_refused():
    with pytest.raises(BadParameter, match="longest=0"):
        experiments.traffic(device="cpu", longest=0)


# The profiler's report.

REPORT = """==PROF== Connected to process 7
==PROF== Disconnected from process 7
"ID","Process ID","Kernel Name","dram__bytes_read.sum","dram__bytes_write.sum"
"","","","byte","byte"
{lines}
"""


def report(*launched) -> str:
    lines = [
        f'"{number}","7","{name}","{read:,}","{written}"'
        for number, (name, read, written) in enumerate(launched)
    ]
    return REPORT.format(lines="\n".join(lines))


MARK = ("spin_kernel", 32, 0)
CALL = [MARK, ("gemm, fast", 1000, 400), ("softmax", 2_000_000, 0), MARK, ("reduce", 9999, 600)]


def test_a_call_is_what_lies_between_its_marks_and_what_was_written_after_it():
    found = list(traffic.launches(report(*CALL)))
    told = traffic.by_cell(found, [5])
    assert told == {
        5: {
            "read_bytes": 2_001_000,
            "written_bytes": 1000,
            "late_bytes": 600,
            "dram_bytes": 2_002_000,
            "dram_low_bytes": 2_002_000,
            "dram_high_bytes": 2_002_000,
            "kernels": ["gemm, fast", "softmax"],
        }
    }


def test_repeats_of_a_call_give_its_lowest_and_highest_count():
    again = [MARK, ("gemm, fast", 1000, 0), MARK, ("reduce", 9999, 0)]
    found = list(traffic.launches(report(*CALL, *again, *CALL)))
    told = traffic.by_cell(found, [0, 0, 3])
    assert told[0]["dram_low_bytes"] == 1000 and told[0]["dram_high_bytes"] == 2_002_000
    assert told[3]["dram_low_bytes"] == told[3]["dram_high_bytes"] == 2_002_000


@pytest.mark.parametrize("launched", [CALL[:3], CALL[:4], [*CALL, MARK], [MARK, *CALL[3:]]])
def test_kernels_that_do_not_fit_the_calls_are_no_count(launched):
    found = list(traffic.launches(report(*launched)))
    with pytest.raises(MeasurementError, match="between the marks"):
        traffic.by_cell(found, [0])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("==PROF== a\n==ERROR== ERR_NVGPUCTRPERM - no permission\n", "ERR_NVGPUCTRPERM - no perm"),
        ("Traceback\nRuntimeError: broken\n", "RuntimeError: broken"),
        ("", "ncu said nothing"),
    ],
)
def test_a_report_without_a_table_gives_the_profilers_reason(text, told):
    with pytest.raises(AnatomyError, match=told):
        list(traffic.launches(text))


def test_counters_that_a_card_has_not_are_said_to_be_missing():
    text = report(("gemm", 1, 1)).replace('"1","1"', '"n/a","1"')
    with pytest.raises(AnatomyError, match="no such counters"):
        list(traffic.launches(text))


# The profiler itself, played by a script.


@pytest.fixture
def profiler(tmp_path, monkeypatch):
    """Put a program called ncu on the path, which does what the given body of Python does."""

    def put(body: str) -> None:
        file = tmp_path / "bin" / "ncu"
        file.parent.mkdir(exist_ok=True)
        head = f"#!{sys.executable}\nimport json, sys\nfrom pathlib import Path\n"
        head += "given = sys.argv\nlog = Path(given[given.index('--log-file') + 1])\n"
        file.write_text(head + "plan = json.loads(Path(given[-1]).read_text())\n" + body)
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(file.parent) + os.pathsep + os.environ["PATH"])

    return put


def test_the_table_joins_what_was_counted_and_what_there_was_no_time_for(profiler, monkeypatch):
    launched = report(*CALL, *CALL[:1], ("fmha", 1_001_000, 0), *CALL[3:4], ("reduce", 0, 0))
    profiler(
        f"log.write_text({launched!r})\nassert Path(given[-2]).is_file()\n"
        "Path(plan['done']).write_text(json.dumps([0, 2]))\n"
        "assert plan['cells'][2]['way'] == 'fused' and plan['device'] == 'cuda:0'\n"
    )
    table = traffic.measure(2, 8, 64, GPU, 5.0)
    first = table.iloc[0]
    assert first.dram_bytes == 2_002_000 and first.over_fused == 2.0
    assert first.over_formula == 2_002_000 / first.formula_bytes
    assert table.iloc[2].kernels == ["fmha"] and table.iloc[2].over_fused == 1.0
    assert table.note.iloc[1] == "counters not read: there was no time left for it"
    assert table.note.notna().sum() == len(table) - 2
    assert table.over_fused.notna().sum() == 2


@pytest.mark.parametrize(
    ("body", "budget_s", "told"),
    [
        ("log.write_text('==ERROR== ERR_NVGPUCTRPERM\\n'); sys.exit(1)", 60, "ERR_NVGPUCTRPERM"),
        ("log.write_text('==ERROR== of this\\n'); import time; time.sleep(600)", 60, "of this"),
        ("print('CUDA error'); sys.exit(1)", 60, "CUDA error"),
        ("import time; time.sleep(600)", 0.8, "was not done after"),
    ],
)
def test_a_profiler_that_fails_leaves_rows_with_its_reason(
    body, budget_s, told, profiler, monkeypatch
):
    profiler(body)
    monkeypatch.setattr(traffic, "REPORT_S", 0.2)
    table = traffic.measure(2, 8, 64, GPU, budget_s)
    assert table.note.str.contains(told).all() and table.over_fused.isna().all()


@pytest.mark.parametrize(
    ("only", "capabilities", "may"),
    [("1", "00000000a80425fb", False), ("1", "000001ffffffffff", True), ("0", "0", True)],
)
def test_who_may_not_read_counters_is_told_without_the_profiler(
    only, capabilities, may, profiler, tmp_path, monkeypatch
):
    driver, own = tmp_path / "params", tmp_path / "status"
    driver.write_text(f"RmMsg: \nRmProfilingAdminOnly: {only}\n")
    own.write_text(f"Name:\tpython\nCapEff:\t{capabilities}\n")
    monkeypatch.setattr(traffic, "DRIVER", driver)
    monkeypatch.setattr(traffic, "OWN", own)
    profiler("print('started'); sys.exit(1)")
    with pytest.raises(AnatomyError, match="started" if may else "ERR_NVGPUCTRPERM"):
        traffic.counters([], GPU, 1.0)


def test_what_the_profiler_runs_does_not_outlive_it(profiler, tmp_path, monkeypatch):
    alive = tmp_path / "alive"
    child = f"import time; time.sleep(1); open({str(alive)!r}, 'w')"
    profiler(
        f"import subprocess, time\nsubprocess.Popen([sys.executable, '-c', {child!r}])\n"
        "log.write_text('==ERROR== no\\n'); time.sleep(600)\n"
    )
    with pytest.raises(AnatomyError, match="no"):
        traffic.counters([], GPU, 60.0)
    time.sleep(1.5)
    assert not alive.exists()


def test_without_the_profiler_the_rows_say_so(monkeypatch):
    monkeypatch.setattr(traffic.shutil, "which", lambda name: None)
    with pytest.raises(AnatomyError, match="not installed"):
        traffic.counters([], GPU, 1.0)


def test_the_calls_script_marks_each_call_and_stops_when_it_is_late(tmp_path, monkeypatch):
    heard = []
    fake = {
        "set_device": lambda where: None,
        "get_device_properties": lambda where: type("P", (), {"L2_cache_size": 64}),
        "synchronize": lambda: None,
        "_sleep": lambda cycles: heard.append("mark"),
    }
    for name, act in fake.items():
        monkeypatch.setattr(torch.cuda, name, act)
    monkeypatch.setattr(torch.cuda.profiler, "start", lambda: heard.append("start"))
    monkeypatch.setattr(torch.cuda.profiler, "stop", lambda: heard.append("stop"))

    def call_of(way, where):
        def call():
            if way == "large":
                raise torch.OutOfMemoryError
            heard.append(way)

        return call

    monkeypatch.setattr(calls, "call_of", call_of)
    plan, done = tmp_path / "plan", tmp_path / "done"
    told = {"device": "cpu", "repeats": 1, "until": 2**40, "done": str(done)}
    plan.write_text(json.dumps(told | {"cells": [{"way": "large"}, {"way": "small"}]}))
    calls.main(str(plan))
    assert heard == ["small", "start", "mark", "small", "mark", "stop"]
    assert json.loads(done.read_text()) == [1]
    plan.write_text(json.dumps(told | {"cells": [{"way": "small"}], "until": 0}))
    calls.main(str(plan))
    assert json.loads(done.read_text()) == []


# The claim.


def test_dram_falls_by_more_than_five_wherever_no_cache_helps(tmp_path):
    ladder_traffic_rows.traffic(tmp_path)
    found = verdict("dram-access-falls", root=tmp_path)
    assert found.word == claims.FAILS and found.measured.low > 1 and found.measured.cases == 20
    assert "By the card's counters" in found.evidence and "not read" not in found.evidence


def test_where_the_counters_say_five_it_holds_there(tmp_path):
    ladder_traffic_rows.traffic(tmp_path)

    def five(row):
        if row["variant"] != FUSED and row["sequence"] == 512:
            least = row["formula_bytes"] / row["formula_over_fused"]
            row |= dict.fromkeys(("read_bytes", "dram_bytes"), int(5 * least))
            row |= {"written_bytes": 0, "over_fused": 5.0}
            row |= {"dram_low_bytes": int(4.95 * least), "dram_high_bytes": int(5.05 * least)}

    edited(tmp_path, "ladder.traffic", five)
    found = verdict("dram-access-falls", root=tmp_path)
    assert found.word == claims.IN_PART and "512" in found.condition


def test_fewer_bytes_are_told_only_where_no_repeat_has_more(tmp_path):
    ladder_traffic_rows.traffic(tmp_path)
    assert "in 20 of 20 cases" in verdict("dram-access-falls", root=tmp_path).evidence

    def spread(row):
        if row["variant"] == FUSED and row["op"] == "forward T=512 H=8":
            row["dram_high_bytes"] = 10**12

    edited(tmp_path, "ladder.traffic", spread)
    assert "in 18 of 20 cases" in verdict("dram-access-falls", root=tmp_path).evidence


def test_the_copies_of_a_mask_may_raise_what_the_counters_say(tmp_path):
    ladder_traffic_rows.traffic(tmp_path)

    def five(row):
        if row["variant"] in (WRITTEN_OUT, IN_BF16) and row["sequence"] == 512:
            least = int(row["formula_bytes"] / row["formula_over_fused"])
            row |= dict.fromkeys(("dram_bytes", "dram_low_bytes", "dram_high_bytes"), 5 * least)
            row["read_bytes"] = 5 * least
            row["written_bytes"] = 0

    edited(tmp_path, "ladder.traffic", five)
    found = verdict("dram-access-falls", root=tmp_path)
    # With a mask it is undecided; without one nothing is copied, and five is five.
    assert " 512, 4 of 20 cases" in found.condition
    assert "Undecided: 4 of 20 cases" in found.evidence


def test_without_counters_the_operators_bytes_decide_and_that_is_said(tmp_path):
    ladder_traffic_rows.traffic(tmp_path, counted=False)
    found = verdict("dram-access-falls", root=tmp_path)
    assert found.word == claims.FAILS
    assert "the counters were not read" in found.evidence
    assert found.measured.low > 5
