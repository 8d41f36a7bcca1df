"""Several GPUs measured on side by side: each lane's environment, and the cores it keeps to."""

import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from anatomy.machine.driver import Card
from anatomy.record.processes import isolation, lanes
from anatomy.table.errors import DeviceError

AFFINITY = "import os; print(*os.sched_getaffinity(0))"


def cards(count, name="NVIDIA H200"):
    return [Card(index, f"uuid-{index}", name) for index in range(count)]


@pytest.fixture
def bound(monkeypatch):
    """Gives this process some cores that it need not have; returns which thread was bound to what,
    by the GPU it measures on, and to nothing if it was not."""

    def run(cores, gpus):
        to = {}

        def bind(pid, own):
            assert own, "no thread runs without a core"
            to[threading.get_ident()] = own

        calls = {"sched_getaffinity": lambda pid: set(cores), "sched_setaffinity": bind}
        monkeypatch.setattr(lanes, "os", SimpleNamespace(**(calls if cores else {})))
        found, all_there = {}, threading.Barrier(gpus)

        def lane(environment):
            all_there.wait(60)  # so that no thread has two lanes
            found[environment["CUDA_VISIBLE_DEVICES"]] = to.get(threading.get_ident(), set())

        lanes.run(lane, cards(gpus))
        assert sorted(found) == [f"GPU-uuid-{index}" for index in range(gpus)]
        return list(found.values())

    return run


@pytest.mark.parametrize(("count", "gpus", "each"), [(8, 4, 2), (11, 4, 2), (3, 2, 1), (4, 4, 1)])
def test_each_gpu_has_as_many_cores_as_any_other_and_none_of_anothers(bound, count, gpus, each):
    cores = set(range(5, 5 + 2 * count, 2))  # those of a container are seldom the first
    shares = bound(cores, gpus)
    assert [len(share) for share in shares] == [each] * gpus
    assert len(set.union(*shares)) == each * gpus and set.union(*shares) <= cores


def test_threads_of_one_physical_core_belong_to_one_gpu(bound, monkeypatch, tmp_path):
    for core in range(8):  # 0 and 4 are threads of one, and so on
        told = tmp_path / f"cpu{core}" / "topology"
        told.mkdir(parents=True)
        (told / "physical_package_id").write_text("0\n")
        (told / "core_id").write_text(f"{core % 4}\n")
    monkeypatch.setattr(lanes, "CPUS", tmp_path)
    assert sorted(map(sorted, bound(range(8), 2))) == [[0, 1, 4, 5], [2, 3, 6, 7]]


@pytest.mark.parametrize("cores", [range(3), None])
def test_with_fewer_cores_than_gpus_or_where_there_is_no_binding_none_is_bound(bound, cores):
    assert bound(cores, 4) == [set()] * 4


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cores can't be bound here")
def test_what_a_lane_starts_keeps_to_its_cores_and_the_recorder_has_all():
    before, found = os.sched_getaffinity(0), []

    def lane(environment):
        ran = subprocess.run([sys.executable, "-Sc", AFFINITY], capture_output=True, text=True)
        found.append((os.sched_getaffinity(0), {int(core) for core in ran.stdout.split()}))

    lanes.run(lane, cards(2))
    assert all(child == thread for thread, child in found)
    (one, _), (other, _) = found
    assert one.isdisjoint(other) or len(before) < 2
    assert os.sched_getaffinity(0) == before


def test_one_gpu_is_measured_on_in_this_thread_with_all_of_its_cores(monkeypatch):
    monkeypatch.setattr(lanes, "os", None)
    found = []
    lanes.run(lambda environment: found.append((environment, threading.get_ident())), cards(1))
    assert found == [({}, threading.get_ident())]


def test_lanes_share_a_folder_of_turns_and_the_first_error_ends_all(monkeypatch):
    ended, turns = threading.Event(), []
    monkeypatch.setattr(isolation, "end_all", ended.set)

    def lane(environment):
        turns.append(environment["ANATOMY_TURNS"])
        if environment["CUDA_VISIBLE_DEVICES"] == "GPU-uuid-1":
            raise ValueError("no kernel")
        assert ended.wait(60)

    with pytest.raises(ValueError, match="no kernel"):
        lanes.run(lane, cards(2))
    assert len(turns) == 2 and len(set(turns)) == 1 and not os.path.exists(turns[0])


def test_cards_are_of_one_model_and_as_many_as_asked_for(monkeypatch):
    visible = [*cards(2), *cards(1, "NVIDIA L4")]
    monkeypatch.setattr(lanes.driver, "visible_cards", lambda: visible)
    assert lanes.cards(None) == visible[:2] and lanes.cards(1) == visible[:1]
    with pytest.raises(DeviceError, match="3 GPUs of one model are asked for, and 2 are visible"):
        lanes.cards(3)
