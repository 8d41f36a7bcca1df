"""Every experiment on a GPU that is held to a small card's memory: it ends with rows, each of which
has what it counts or says why not. Takes about as long as recording all; skipped without a GPU.

    pytest tests/gpu -k "not ladder" -s
"""

import gc

import pytest
import torch

from anatomy.machine import host
from anatomy.parts import grid, memory
from anatomy.record import requirements, signatures
from anatomy.record.declare import load

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
GIB = 2**30
CARD_BYTES = 7 * GIB  # what a card of 8 GB has left for a process
# Sizes are what is asked about; of times a few will do.
QUICK = {"iters": 3, "budget_s": 0.1, "steps": 25, "replicates": 1}
ASKED = [name for name, each in signatures.experiments().items() if not each.on_request]
WHERE = torch.device("cuda", 0)


@pytest.fixture(autouse=True)
def small_card():
    """A card of 8 GB: the allocator of this process gets no more of the one that is here."""
    whole = torch.cuda.mem_get_info(WHERE)[1]
    if whole <= CARD_BYTES:
        pytest.skip("the GPU here is a small one itself: record on it")
    memory.give_back(WHERE)
    torch.cuda.set_per_process_memory_fraction(CARD_BYTES / whole, WHERE)
    torch.cuda.reset_peak_memory_stats(WHERE)
    yield
    torch.cuda.set_per_process_memory_fraction(1.0, WHERE)
    gc.collect()
    torch.cuda.empty_cache()


OWN = "sync_points.timeline"  # whose steps are those of a trace, five at the most


def params(name: str) -> dict:
    """Its defaults, with fewer repetitions where it takes a number of them."""
    known = signatures.signature(name).defaults
    return known | {key: value for key, value in QUICK.items() if key in known and name != OWN}


def test_what_is_held_back_is_not_told_as_free():
    assert host.free_bytes(WHERE) <= CARD_BYTES
    assert memory.capacity(WHERE).free_bytes <= CARD_BYTES


@pytest.mark.parametrize("name", ASKED)
def test_every_experiment_ends_with_rows_or_notes(name):
    given = params(name)
    wanted = requirements.required(name, given, memory.capacity(WHERE))
    table = load(name)(**given)
    assert len(table)
    if wanted is None:
        return  # a chapter that asks the device itself
    left = requirements.left_out(wanted, memory.capacity(WHERE))
    notes = table.note.dropna() if "note" in table else []
    for op, why in left.items():
        own = table.op.astype(str).eq(op) if "op" in table else []
        assert not any(own) or table[own].note.notna().any(), f"{op} was begun, though it {why}"
    caught = [note for note in notes if str(note).startswith(grid.NO_MEMORY)]
    fits = [each.needed for each in wanted if each.op not in left]
    most = torch.cuda.max_memory_reserved(WHERE)
    if caught or (fits and most > max(fits)):  # no error, but the requirement is to be mended
        print(
            f"\n{name}: held {most / GIB:.2f} GiB, requires {max(fits, default=0) / GIB:.2f} GiB, "
            f"out of memory in {len(caught)} rows"
        )
