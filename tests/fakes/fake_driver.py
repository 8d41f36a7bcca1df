"""A driver with two cards whose NVML numbers are the other way round than CUDA's."""

import uuid
from types import SimpleNamespace

FIRST = "11111111-2222-3333-4444-555555555555"
SECOND = "99999999-8888-7777-6666-555555555555"
SLICE = "77777777-0000-0000-0000-000000000000"


class FakeCuda:
    """libcuda, as far as `driver.visible_cards` asks it."""

    def __init__(self, cards=((FIRST, "NVIDIA H200"), (SECOND, "NVIDIA H200")), status=0):
        self.cards, self.status = cards, status

    def cuInit(self, flags):
        return self.status

    def cuDeviceGetCount(self, count):
        count._obj.value = len(self.cards)
        return 0

    def cuDeviceGet(self, device, index):
        device._obj.value = index
        return 0

    def cuDeviceGetAttribute(self, value, number, device):
        value._obj.value = {75: 9, 76: 0, 38: 60 * 2**20}[number]
        return 0

    def cuDeviceGetUuid(self, raw, device):
        raw._obj[:] = uuid.UUID(self.cards[device.value][0]).bytes
        return 0

    def cuDeviceGetName(self, name, length, device):
        name.value = self.cards[device.value][1].encode()
        return 0


class FakeNvml:
    """pynvml, as far as `driver` asks it. Handles are the position in NVML's own order."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    class NVMLError(Exception):
        """What every question without an answer raises."""

    def __init__(self, silent=()):
        self.order = [SECOND, FIRST]  # CUDA says FIRST, SECOND
        self.silent = set(silent)
        self.processes = {FIRST: [], SECOND: [4321]}
        self.counters = {FIRST: [(3, 70), (3, 0), (3, 5), (1, 6), (3, 7)], SECOND: [(3, 999)] * 5}

    def __getattribute__(self, name):
        if name.startswith("nvml") and name in object.__getattribute__(self, "silent"):
            return object.__getattribute__(self, "refuse")
        return object.__getattribute__(self, name)

    def refuse(self, *_):
        raise self.NVMLError("Not Supported")

    def nvmlInit(self):
        pass

    def nvmlSystemGetDriverVersion(self):
        return "580.159.03"

    def nvmlDeviceGetHandleByUUID(self, name):
        if name == f"MIG-{SLICE}":
            return "slice"
        if name.removeprefix("GPU-") not in self.order:
            raise self.NVMLError("Not Found")
        return self.order.index(name.removeprefix("GPU-"))

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, handle):
        assert handle == "slice"
        return self.order.index(FIRST)

    def nvmlDeviceGetMemoryInfo(self, handle):
        return SimpleNamespace(free={FIRST: 140, SECOND: 7}[self.order[handle]] * 2**30)

    def nvmlDeviceGetPowerUsage(self, handle):
        return {FIRST: 412_500, SECOND: 75_000}[self.order[handle]]

    def nvmlDeviceGetEnforcedPowerLimit(self, handle):
        return 700_000

    def nvmlDeviceGetClockInfo(self, handle, which):
        sm = {FIRST: 1980, SECOND: 345}[self.order[handle]]
        return sm if which == self.NVML_CLOCK_SM else 3201

    def nvmlDeviceGetMaxClockInfo(self, handle, which):
        return 1980 if which == self.NVML_CLOCK_SM else 3201

    def nvmlDeviceGetTemperature(self, handle, which):
        return 41

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        return [SimpleNamespace(pid=pid) for pid in self.processes[self.order[handle]]]

    def nvmlDeviceGetFieldValues(self, handle, fields):
        members = ("dVal", "uiVal", "ulVal", "ullVal")
        found = []
        for field, (kind, value) in zip(fields, self.counters[self.order[handle]], strict=True):
            supported = not (field == 271 and "power_brake" in self.silent)
            union = SimpleNamespace(**dict.fromkeys(members, -1) | {members[kind]: value})
            found.append(
                SimpleNamespace(nvmlReturn=0 if supported else 3, valueType=kind, value=union)
            )
        return found
