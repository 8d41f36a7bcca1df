"""What experiments require of a device, on machines that are made up and against what was recorded:
which rows are measured there, and which say why not."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from anatomy.measure import cache
from anatomy.parts import memory, sizes
from anatomy.record import recording, requirements, signatures
from anatomy.record.declare import load
from anatomy.record.requirements import BESIDE_BYTES, Capacity, Requirement
from tests.fakes.fake_stopwatch import made_up_time
from tests.fakes.toys import TOY, small

GIB = 2**30
# Of what takes no memory to speak of.
SMALL = (
    *("compilation.detection", "compilation.modes", "checkpointing.traps"),
    *("capture.catalogue", "dispatch.keys"),
)
RECORDINGS = Path(__file__).parents[2] / "recordings"
SAID = list(signatures.experiments())
FULL_LAYERS = (
    *("few kernels, bf16", "written out, bf16"),
    *("few kernels, amp bf16", "written out, amp bf16"),
)
# Compute capability -> bytes of the second-level cache of a card that has it.
CAPABILITIES = {
    (7, 5): 4 * 2**20,
    (8, 0): 40 * 2**20,
    (8, 6): 6 * 2**20,
    (8, 9): 48 * 2**20,
    (9, 0): 50 * 2**20,
    (10, 0): 126 * 2**20,
    (12, 0): 96 * 2**20,
}
CARDS = [(gib, capability) for gib in (8, 12, 16, 24) for capability in CAPABILITIES]


def card(gib: float, capability=(8, 9)) -> Capacity:
    """A card of so much memory; some of it is the desktop's and the context's."""
    return Capacity(int((gib - 0.7) * GIB), capability, CAPABILITIES[capability])


def left(name: str, on: Capacity) -> list[str]:
    """Rows that an experiment leaves out there, with its default parameters."""
    wanted = requirements.required(name, signatures.signature(name).defaults, on)
    return list(requirements.left_out(wanted, on))


def test_every_experiment_says_what_it_requires():
    assert set(requirements.declared()) == set(SAID)


def test_what_is_required_is_told_where_torch_can_not_be_imported():
    code = "import sys; sys.modules['torch'] = None; from anatomy.record import requirements as r; "
    code += "print(len(r.declared()))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(told.stdout) == len(requirements.declared())


@pytest.mark.parametrize(("gib", "capability"), CARDS)
def test_on_every_card_something_is_measured_and_all_else_says_why(gib, capability):
    on = card(gib, capability)
    for name in SAID:
        wanted = requirements.required(name, signatures.signature(name).defaults, on)
        reasons = requirements.left_out(wanted, on)
        formats = [each for each in wanted if requirements.without_format(each.dtype, on)]
        if capability >= (8, 9):
            assert not formats, name
            assert len(reasons) < len({each.op for each in wanted}), name
        for why in reasons.values():
            assert "are free on this card" in why or "products need sm_" in why, name


@pytest.mark.parametrize(
    ("gib", "rows"),
    [
        (
            8,
            {
                "limits.ceilings": ["copy 3072 MiB", "write 1536 MiB"],
                "graph_capture.map": ["pointwise 536870912"],
                "checkpointing.frontier": ["train C=2048 L=8 T=8x1024"],
                "channels_last.network": ["training bf16 N=128", "training bf16 N=128, tuned"],
                "precision.training": ["train C=2048 T=1024", "train C=2048 T=8192"],
                "sync_points.bench": ["loop 21504"],
                "compilation.layers": [
                    *(f"training {each}, C=1024 B=32 T=1024" for each in FULL_LAYERS),
                ],
                "distributed.overlap": ["profile of DDP", "profile of DDP, one bucket"],
                "distributed.training": [
                    *("weak scaling", "strong scaling", "accumulation"),
                    *("weak scaling, wide layers", "tensor parallel, 16384 tokens"),
                    "forward of DataParallel",
                ],
                "ladder.regimes": [
                    "training C=2048 B=8 T=1024",
                    "training C=4096 B=8 T=1024",
                ],
                "ladder.traffic": ["forward and backward T=8192 H=8"],
                "memory_ladder.bandwidth": ["write 2.00 GiB", "write 4.00 GiB"],
            },
        ),
        (
            24,
            {
                "distributed.training": [
                    *("weak scaling", "strong scaling", "accumulation"),
                    "weak scaling, wide layers",
                ],
                "ladder.regimes": ["training C=4096 B=8 T=1024"],
            },
        ),
    ],
)
def test_of_a_card_of_sm_89_it_is_known_which_rows_it_leaves_out(gib, rows):
    found = {name: left(name, card(gib)) for name in SAID}
    assert {name: ops for name, ops in found.items() if ops} == rows


def test_turing_has_no_bf16_no_tf32_and_no_fp8():
    on = card(16, (7, 5))
    assert left("compilation.map", on) == [f"training C={c} T={t}" for t in (256, 4096)
                                           for c in (256, 1024, 4096)]  # fmt: skip
    assert left("never.costs", on)[0] == "first calls" and len(left("never.costs", on)) == 4
    assert not left("contiguity.bench", on) and not left("autograd_graph.costs", on)
    formats = {op.split()[1] for op in left("limits.ceilings", on)}
    assert formats == {"bf16", "tf32", "fp8"}
    ampere = card(16, (8, 6))
    assert {op.split()[1] for op in left("limits.ceilings", ampere)} == {"fp8"}
    fp8 = [each for each in requirements.required("limits.ceilings", {"scale": 1.0}, ampere)
           if each.dtype == "fp8"]  # fmt: skip
    assert fp8[0].why_not(ampere) == "not supported on sm_86: fp8 products need sm_89"


def test_what_was_recorded_fits_into_what_is_required():
    """Both peaks, of tensors and of what the allocator held, where they are in a recording. No more
    is asked for than a few times what the largest way took, or what all ways took together, for
    they may stand side by side. Of attention it is the way with most memory, which says itself
    where that is not there."""
    compared = set()
    on = Capacity(None, (9, 0), 60 * 2**20)
    for found in recording.all_recordings(RECORDINGS, "nvidia-h200"):
        wanted = requirements.required(found.experiment, found.params, on)
        needs = {each.op: each for each in wanted or ()}
        peaks: dict[str, list[int]] = {}
        for row in found.rows:
            op, own = row.get("op"), "attention" in f"{found.experiment} {row.get('op')}"
            told = [row.get(name) or 0 for name in ("total_peak_bytes", "reserved_bytes")]
            if op in needs and any(told) and not own:
                peaks.setdefault(op, []).append(max(told))
        for op, every in peaks.items():
            most = max(8 * max(every), sum(every), 16 * GIB)
            assert max(every) <= needs[op].needed <= most, (found.experiment, op)
            compared.add(found.experiment)
    assert len(compared) >= 6


@pytest.mark.parametrize("name", SAID)
def test_a_card_without_memory_has_rows_that_say_why_and_nothing_raises(name, monkeypatch):
    monkeypatch.setattr(memory, "capacity", lambda where: Capacity(0, (7, 5), 2**20))
    with made_up_time(), small():
        table = load(name)(**TOY[name])
    assert len(table)
    if "note" not in table:  # of what takes no memory to speak of
        assert name in SMALL
        return
    refused = table[table.note.notna()]
    assert len(refused) or name in ("limits.floors", "capture.code")
    assert "median_s" not in table or refused.median_s.isna().all()


def test_a_plan_tells_what_a_card_takes_and_what_it_leaves_out():
    wanted = [Requirement("small", GIB), Requirement("large", 20 * GIB, "bf16")]
    assert requirements.told(wanted, card(24)) == "20.5 GiB"
    assert requirements.told(wanted, card(8)) == "20.5 GiB; takes 1.50 GiB, leaves out 1 of 2"
    assert requirements.told(wanted[1:], card(8)) == "20.5 GiB; leaves out 1 of 1"
    assert requirements.told(None, card(8)) is None
    assert requirements.told(wanted, Capacity()) == "20.5 GiB", "on a machine without a card"
    assert requirements.left_out(wanted, card(8)) == {
        "large": "needs 20.5 GiB; 7.30 GiB are free on this card"
    }
    on = Capacity(BESIDE_BYTES)
    assert Requirement("x", 1).why_not(on).endswith("are free on this host")
    assert not Requirement("x", 0, "fp8").why_not(on)


def test_sets_of_buffers_are_as_many_as_are_measured_with(monkeypatch):
    for held in (2**10, 4 * 2**20, 2**30):
        monkeypatch.setattr(cache, "last_level_cache_bytes", lambda device: 50 * 2**20)
        assert sizes.sets(held, 50 * 2**20) == cache.rotation(held, torch.device("cpu"))
