"""Which machine this is: cards by hash, and a sentence for each device that is not there."""

import json
import os
import re
import socket
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from anatomy.machine import driver, host, versions
from anatomy.table.errors import BadParameter, DeviceError, OutOfMemory
from tests.fakes.fake_driver import FIRST, SECOND, FakeCuda, FakeNvml

H200 = SimpleNamespace(
    name="NVIDIA H200",
    major=9,
    minor=0,
    multi_processor_count=132,
    total_memory=150_000_000_000,
    L2_cache_size=60 << 20,
    uuid=FIRST,
)


@pytest.fixture
def two_h200(monkeypatch):
    """A host with two H200, as torch, CUDA and NVML each see it."""
    nvml = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr(driver, "_libcuda", FakeCuda)
    uuids = [FIRST, SECOND]

    def properties(device):
        index = int(str(device).rpartition(":")[2])
        return SimpleNamespace(**vars(H200) | {"uuid": uuids[index]})

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", properties)
    build = versions.Build("2.11.0+cu130", "13.0")
    monkeypatch.setattr(versions, "torch_build", lambda: build)
    cached = (driver._nvml, driver._handle, host._describe, host._uuid)
    for each in cached:
        each.cache_clear()
    yield nvml
    for each in cached:
        each.cache_clear()


def test_a_gpu_is_described_by_its_name_and_a_hash(two_h200):
    told = host.describe("cuda:0")
    assert told["slug"] == "nvidia-h200"
    assert (told["gpu"], told["capability"], told["sm_count"]) == ("NVIDIA H200", "9.0", 132)
    assert (told["l2_bytes"], told["driver"]) == (60 << 20, "580.159.03")
    assert (told["max_sm_clock_mhz"], told["power_limit_w"]) == (1980, 700.0)
    assert re.fullmatch("[0-9a-f]{12}", told["card"])
    assert told["card"] != host.describe("cuda:1")["card"]
    assert FIRST[:8] not in json.dumps(told)


def test_the_slug_of_several_gpus_says_how_many(two_h200):
    assert host.describe(torch.device("cuda:0"), count=2)["slug"] == "nvidia-h200-x2"


def test_this_host_is_known_without_torch_by_the_same_words(two_h200):
    told = host.describe("cuda:0")
    assert host.here() == {
        "slug": told["slug"],
        "card": told["card"],
        "cards": [host.describe(f"cuda:{index}")["card"] for index in range(2)],
        "driver": told["driver"],
        "torch": "2.11.0+cu130",
        "cuda": "13.0",
        "cpu": host.cpu_slug(),
    }


def test_a_torch_for_the_cpu_makes_no_gpu_host(two_h200, monkeypatch):
    monkeypatch.setattr(versions, "torch_build", lambda: versions.Build("2.13.0+cpu"))
    assert host.here() is None


def test_conditions_are_those_of_the_device_asked_for(two_h200):
    assert host.conditions("cuda:0")["sm_clock_mhz"] == 1980
    assert host.conditions(torch.device("cuda:1"))["sm_clock_mhz"] == 345
    assert host.conditions("cpu") is None


def test_our_own_process_is_not_foreign(two_h200):
    two_h200.processes[FIRST] = [os.getpid(), 4321]
    assert host.foreign_processes("cuda:0") == [4321]
    assert host.foreign_processes("cpu") is None


def test_in_a_container_one_number_that_means_nothing_here_is_ours(two_h200):
    beyond = int(Path("/proc/sys/kernel/pid_max").read_text()) + 1
    two_h200.processes[FIRST] = [beyond]
    assert host.foreign_processes("cuda:0") == []
    two_h200.processes[FIRST] = [beyond, beyond + 1]
    assert len(host.foreign_processes("cuda:0")) == 1


def test_the_cpu_is_a_machine_of_its_own_and_nobody_is_named():
    told = host.describe("cpu")
    assert told["slug"].startswith("cpu-") and told["slug"] == host.cpu_slug()
    assert told["gpu"] is None and told["card"] is None and told["memory_bytes"] > 0
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]*", told["slug"])
    assert not re.search(rf"\b{re.escape(socket.gethostname())}\b", json.dumps(told))


def test_the_installed_torch_is_read_without_importing_it():
    build = versions.torch_build()
    assert build == (torch.__version__, torch.version.cuda, torch.version.hip)
    assert versions.installed()["torch"] == torch.__version__


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "0", "", "cuda:0:1"])
def test_what_is_no_device_is_refused_with_what_would_be(name):
    with pytest.raises(BadParameter, match=r"is not a device\. Use cuda:0, another cuda:N, or cpu"):
        host.parse_device(name)


def test_devices_that_are_not_measured_say_so():
    with pytest.raises(DeviceError, match=r"device='mps' is not measured here"):
        host.parse_device("mps")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this host has CUDA")
def test_without_cuda_the_sentence_of_the_documentation_comes_with_a_cure():
    with pytest.raises(DeviceError) as caught:
        host.require_device("cuda:0")
    said = str(caught.value)
    assert said.startswith("CUDA requested but torch.cuda.is_available() is False. ")
    assert "--device cpu" in said
    assert str(host.no_cuda()) == said


def test_without_torch_measuring_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(versions.importlib.util, "find_spec", lambda name: None)
    assert host.here() is None
    for ask in (versions.require_torch, host.no_cuda):
        with pytest.raises(DeviceError, match=r"Measuring needs PyTorch.*pip install torch"):
            ask()


def test_hidden_gpus_are_named_as_the_cause(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "unset it" in host._why_no_cuda("2.11.0+cu130", "13.0")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert "nvidia-smi" in host._why_no_cuda("2.11.0+cu130", "13.0")


def test_a_gpu_beyond_the_last_is_refused_with_the_range(two_h200):
    with pytest.raises(DeviceError, match="2 GPUs are visible, cuda:0 to cuda:1"):
        host.describe("cuda:2")


def test_rocm_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(torch.version, "hip", "6.4")
    with pytest.raises(DeviceError, match="is a ROCm build"):
        host.require_device("cuda:0")
    monkeypatch.setattr(versions, "torch_build", lambda: versions.Build("2.11+rocm", None, "6.4"))
    assert "ROCm" in str(host.no_cuda())


def test_what_can_not_fit_is_refused_before_it_is_allocated(monkeypatch):
    monkeypatch.setattr(host, "free_bytes", lambda device: 3 << 30)
    host.require_bytes("cpu", 3 << 30, "the toy")
    with pytest.raises(OutOfMemory, match=r"^the toy needs 4\.00 GiB on cpu, and 3\.00 GiB are f"):
        host.require_bytes("cpu", 4 << 30, "the toy")
    monkeypatch.setattr(host, "free_bytes", lambda device: None)
    host.require_bytes("cpu", 1 << 60, "what nobody can judge")


def test_free_memory_is_less_than_all_of_it():
    free = host.free_bytes("cpu")
    assert free is None or 0 < free <= host.describe("cpu")["memory_bytes"]


@pytest.mark.parametrize(("fraction", "free"), [(1.0, 12), (0.5, 8), (0.1, 0)])
def test_a_process_that_may_take_a_part_of_a_card_has_no_more_than_that_free(
    fraction, free, monkeypatch
):
    told = {
        "mem_get_info": lambda index: (10 * 2**30, 20 * 2**30),
        "memory_allocated": lambda index: 2 * 2**30,
        "memory_reserved": lambda index: 4 * 2**30,
        "get_per_process_memory_fraction": lambda index: fraction,
    }
    for name, function in told.items():
        monkeypatch.setattr(torch.cuda, name, function)
    assert host.free_bytes("cuda:0") == free * 2**30
