"""What the driver tells: cards by UUID, and None for everything it does not tell."""

import sys

import pytest

from anatomy.machine import driver
from tests.fakes.fake_driver import FIRST, SECOND, SLICE, FakeCuda, FakeNvml

CACHED = (driver._nvml, driver._handle, driver._libcuda)


@pytest.fixture
def nvml(monkeypatch):
    """Put a fake NVML in the place of the real one: `nvml(silent=...)`."""

    def install(**options):
        fake = FakeNvml(**options)
        monkeypatch.setitem(sys.modules, "pynvml", fake)
        for each in CACHED:
            each.cache_clear()
        return fake

    yield install
    for each in CACHED:
        each.cache_clear()


def test_cards_are_listed_in_the_order_of_cuda(monkeypatch):
    monkeypatch.setattr(driver, "_libcuda", FakeCuda)
    cards = driver.visible_cards()
    assert [(card.index, card.uuid, card.name) for card in cards] == [
        (0, FIRST, "NVIDIA H200"),
        (1, SECOND, "NVIDIA H200"),
    ]


@pytest.mark.parametrize("cuda", [None, FakeCuda(status=100), FakeCuda(cards=())])
def test_without_a_driver_that_answers_there_are_no_cards(monkeypatch, cuda):
    monkeypatch.setattr(driver, "_libcuda", lambda: cuda)
    assert driver.visible_cards() == []


def test_readings_are_those_of_the_card_and_not_of_its_number(nvml):
    nvml()
    first, second = driver.conditions(FIRST), driver.conditions(SECOND)
    assert (first["sm_clock_mhz"], first["power_w"], first["temperature_c"]) == (1980, 412.5, 41)
    assert (second["sm_clock_mhz"], second["power_w"]) == (345, 75.0)


def test_throttle_counters_have_the_names_of_their_fields(nvml):
    nvml()
    assert driver.throttle_counters(FIRST) == {
        "power_cap": 70,
        "sync_boost": 0,
        "software_thermal": 5,
        "hardware_thermal": 6,  # came as another member of the union
        "power_brake": 7,
    }


def test_the_fields_are_asked_for_by_nvmls_own_numbers():
    nvml = pytest.importorskip("pynvml")
    reasons = {
        "power_cap": "SW_POWER_CAP",
        "sync_boost": "SYNC_BOOST",
        "software_thermal": "SW_THERM_SLOWDOWN",
        "hardware_thermal": "HW_THERM_SLOWDOWN",
        "power_brake": "HW_POWER_BRAKE_SLOWDOWN",
    }
    for name, asked_for in driver.THROTTLE_FIELDS.items():
        assert asked_for == getattr(nvml, f"NVML_FI_DEV_CLOCKS_EVENT_REASON_{reasons[name]}")


def test_a_counter_that_the_card_has_not_is_none_and_never_0(nvml):
    nvml(silent=["power_brake"])
    assert driver.throttle_counters(FIRST)["power_brake"] is None
    assert driver.throttle_counters(FIRST)["sync_boost"] == 0


def test_a_question_without_an_answer_costs_that_answer_alone(nvml):
    nvml(silent=["nvmlDeviceGetPowerUsage", "nvmlDeviceGetFieldValues"])
    found = driver.conditions(FIRST)
    assert found["power_w"] is None and found["sm_clock_mhz"] == 1980
    assert set(found["throttle"].values()) == {None}


def test_a_slice_of_a_card_has_the_clocks_of_its_card(nvml):
    nvml()
    assert driver.conditions(SLICE)["sm_clock_mhz"] == 1980


def test_an_unknown_card_has_no_readings(nvml):
    nvml()
    nobody = "00000000-0000-0000-0000-000000000000"
    assert driver.conditions(nobody) is None
    assert driver.throttle_counters(nobody) is None
    assert driver.compute_processes(nobody) is None
    assert set(driver.boundaries(nobody).values()) == {None}


def test_without_nvml_nothing_is_known_and_nothing_fails(nvml):
    nvml(silent=["nvmlInit"])
    assert driver.version() is None
    assert driver.conditions(FIRST) is None
    assert driver.compute_processes(FIRST) is None


def test_compute_processes_are_those_of_the_card(nvml):
    nvml()
    assert driver.compute_processes(SECOND) == [4321]
    assert driver.compute_processes(FIRST) == []


def test_what_a_card_has_is_told_without_a_context(nvml, monkeypatch):
    fake = nvml()
    monkeypatch.setattr(driver, "_libcuda", FakeCuda)
    first, second = driver.visible_cards()
    assert driver.size(first) == driver.Size(140 * 2**30, (9, 0), 60 * 2**20)
    assert driver.size(second).free_bytes == 7 * 2**30, "NVML has another order"
    fake.silent.add("nvmlDeviceGetMemoryInfo")
    assert driver.size(first).free_bytes is None
