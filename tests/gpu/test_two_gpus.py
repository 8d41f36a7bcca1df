"""What two GPUs of one host do together, through NCCL: that ways to train are right, that ranks
which fail end the run, and that each experiment comes to all its figures at a small size. A few
minutes; skipped where there are not two.

    pytest tests/gpu/test_two_gpus.py -s
"""

import os
import time

import pytest
import torch

from anatomy.chapters.distributed import requirements as of
from anatomy.chapters.distributed.collectives import collectives
from anatomy.chapters.distributed.memory import memory
from anatomy.chapters.distributed.overlap import overlap
from anatomy.chapters.distributed.training import training
from anatomy.record.processes import ranks
from anatomy.table import errors
from tests.record.processes.test_ranks import still_there

pytestmark = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are no two GPUs here")
FAULTS = "tests.gpu.rank_faults"
GATES = "tests.chapters.distributed.rank_ways:gates"


def run(entry: str):
    return ranks.run(entry, 2, "cuda:0", {"device": "cuda:0"})


def test_each_rank_has_a_gpu_of_its_own_and_they_add_up():
    assert run(f"{FAULTS}:devices") == [[0, [2.0] * 4], [1, [2.0] * 4]]
    assert os.environ["NCCL_NVLS_ENABLE"] == "0"


def test_every_way_to_train_has_the_plain_models_gradients_and_moves_its_weights():
    for found in run(GATES):
        assert all(found[f"{name} moves"] for name in of.TRAINED[1:])
        assert {*of.TRAINED[1:]} <= {*found}  # `strays` has refused what is too far
        assert "strays from its reference" in found["wrong"] and found["talks"] == 4


@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        ("killed", errors.MeasurementError, "Rank 1 was ended by SIGKILL"),
        ("hangs", errors.MeasurementError, "Rank 0"),
        ("outgrows", errors.OutOfMemory, "Rank 1: It ran out of memory"),
    ],
)
def test_a_rank_that_fails_while_the_other_waits_in_nccl_ends_both(fault, kind, said):
    began = time.monotonic()
    with pytest.raises(kind, match=said):
        run(f"{FAULTS}:{fault}")
    assert time.monotonic() - began < 300 and not still_there()


def test_collectives_have_times_and_a_fit_and_no_multicast():
    table = collectives(scale=1e-2, blocks=3)
    timed = table[~table.op.str.contains("fit")]
    assert timed.note.isna().all() if "note" in timed else True
    assert timed.blocks_s.map(len).eq(3).all()
    assert table.attrs["method"]["nccl_nvls_enable"] == "0" and table.attrs["method"]["nccl"]


def test_every_way_of_a_step_is_timed_with_its_memory():
    table = training(scale=0.25, blocks=3)
    notes = table[table.note.notna()] if "note" in table else table[:0]
    assert notes.empty, notes[["op", "variant", "note"]].to_string()
    assert set(table.variant[table.op == of.WEAK]) >= set(of.TRAINED)
    weak = table[(table.op == of.WEAK) & table.role.eq("variant")]
    assert weak.total_peak_bytes.gt(0).all()
    by_name = weak.set_index("variant").total_peak_bytes
    assert by_name[of.FSDP] < by_name[of.DDP]


def test_profiles_of_both_ranks_have_kernels_that_compute_and_such_that_move():
    table = overlap(scale=0.5)
    assert list(table["rank"]) == [0, 1] * len(of.PROFILED)
    assert table.compute_s.gt(0).all() and table.communication_s.gt(0).all()
    assert table.hidden_share.between(0, 1).all()
    assert (table.compute_s + table.exposed_s <= table.profiled_step_s * (1 + 1e-9)).all()
    # Annotations, which last as long as a step, are no kernels.
    assert table.compute_spans_s.map(len).gt(2).all()


def test_of_too_large_a_model_ddp_runs_out_of_memory_and_fsdp_does_not():
    table = memory(scale=0.5).set_index(["variant", "rank"])
    for rank in (0, 1):
        assert not table.loc[(of.DDP, rank)].fits  # a gap would be true
        assert table.loc[(of.FSDP, rank)].total_peak_bytes > 0
