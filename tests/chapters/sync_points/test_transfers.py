"""Copies between host and device bring what was there, and what they may leave stale."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch

from anatomy import claims
from anatomy.chapters.sync_points import judged, transfers
from anatomy.measure import stopwatch_for
from anatomy.numerics import agreement
from anatomy.table.errors import DisagreementError
from tests.chapters.sync_points.test_syncs import edited
from tests.fakes.fake_stopwatch import FakeStopwatch, made_up_time

CPU = torch.device("cpu")


def test_copies_that_never_wait_make_the_rule_false_and_some_make_it_conditional(tmp_path):
    never_waits = edited(tmp_path, "to-device-synchronizes", lambda row: row.update(waits=False))
    assert never_waits.word == claims.FAILS

    def pinned_is_free(row):
        row["waits"] = None if "waits" not in row else not row.get("pinned")

    some = edited(tmp_path, "to-device-synchronizes", pinned_is_free)
    assert some.word == claims.IN_PART and "pageable" in some.condition


def test_the_other_direction_says_nothing_of_copies_to_the_gpu(tmp_path):
    def free_to_host(row):
        if row.get("direction") == "to the host":
            row["waits"] = False

    assert edited(tmp_path, "to-device-synchronizes", free_to_host).word == claims.HOLDS


@pytest.mark.parametrize("direction", transfers.DIRECTIONS)
def test_every_way_of_copying_brings_what_was_there(direction):
    calls, exact = transfers.ways_of(direction, 4096, CPU)
    assert list(calls) == list(transfers.WAYS)
    agreement.check(calls, dict.fromkeys(calls, exact))


def test_a_copy_that_brings_nothing_is_found_out(monkeypatch):
    monkeypatch.setattr(transfers, "_downloaded", lambda x, host, non_blocking: lambda: x)
    with pytest.raises(DisagreementError, match="pageable: the copy to the host brought"):
        transfers.ways_of("to the host", 4096, CPU)


@pytest.mark.parametrize(
    ("read", "later", "stale"),
    [(1.0, 1.0, False), (-1.0, 1.0, True), (None, 1.0, False), (None, 2.0, True)],
)
def test_stale_is_what_is_not_what_was_copied(read, later, stale):
    row = transfers._seen(lambda x, watch: (read, later), torch.ones(1), FakeStopwatch())
    assert row["stale"] is stale


@pytest.mark.parametrize("way", [w for n, w in transfers.HAZARDS.items() if "pinned" not in n])
def test_a_host_that_is_its_own_device_reads_nothing_stale(way):
    row = transfers._seen(way, torch.full((8,), transfers.COPIED), FakeStopwatch())
    assert row["stale"] is False


@pytest.fixture
def short():
    """Comparisons that are soon done."""
    with made_up_time():
        yield


@pytest.mark.parametrize("direction", transfers.DIRECTIONS)
def test_a_cell_of_copies_has_both_quantities_and_its_coordinates(direction, short):
    enqueue, wall = transfers.copies(direction, 2**20, stopwatch_for("cpu"), 6)
    assert set(enqueue.quantity) == {"host_enqueue"} and set(wall.quantity) == {"step_wall"}
    assert set(enqueue.op) == {f"{direction} 1 MiB"} and set(enqueue.bytes) == {2**20}
    assert list(zip(enqueue.pinned, enqueue.non_blocking, strict=True))[:4] == [
        *transfers.WAYS.values()
    ]
    assert set(enqueue.waits) == {False} and enqueue.limit.isna().all()


def test_a_copy_and_a_product_leave_the_same_in_one_stream_and_in_two(short, monkeypatch):
    waited = []
    stream = SimpleNamespace(wait_stream=waited.append)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor.clone())
    table = transfers.beside(CPU, 1e-4, 6)
    assert list(table[table.role != "again"].variant) == [
        "pinned, one stream",
        "pinned, two streams",
        "pageable, one stream",
        "pageable, two streams",
        "the product alone",
    ]
    assert (table.error < 2**-6).all()
    assert len(waited) % 2 == 0, "each stream waits for the other one, in each call"


def test_a_copy_that_the_host_waits_for_takes_the_gpu_as_long_as_one_that_it_does_not():
    how = [
        ("pinned", "step_wall"),
        ("pinned, non_blocking", "step_wall"),
        ("pageable", "step_wall"),
    ]
    how += [("pinned", "host_enqueue"), ("pinned, non_blocking", "host_enqueue")]
    rows = [
        {"op": op, "variant": variant, "quantity": quantity, "median_s": seconds}
        for op, seconds in (("up", 4.9), ("down", 4.7))
        for variant, quantity in how
    ]
    found = list(judged.copying(rows, None))
    waits = [place for place, row in enumerate(rows) if row["variant"] == "pinned"]
    assert [place for place, _ in found] == waits
    assert [each["busy_s"] for _, each in found] == [4.9, 4.9, 4.7, 4.7]
