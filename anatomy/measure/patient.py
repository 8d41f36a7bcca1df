"""The GPU's stopwatch for calls of many milliseconds: a host that waited for long is slow after it.

See `clock.PatientClock` for what it does about that.
"""

import functools

import torch

from anatomy.measure.clock import PatientClock
from anatomy.measure.stopwatch import CudaStopwatch, Stopwatch, stopwatch_for


class PatientStopwatch(PatientClock, CudaStopwatch):
    """The stopwatch of a GPU, with a clock for long calls."""


@functools.lru_cache
def patient_stopwatch(device: torch.device) -> Stopwatch:
    """The stopwatch of a device for long calls; its calibration and its warnings are the ordinary
    one's.

    Args:
        device: Such as `stopwatch_for` takes.

    Raises:
        DeviceError: This process has no such device.
    """
    watch = stopwatch_for(device)
    if not isinstance(watch, CudaStopwatch):
        return watch
    patient = PatientStopwatch(watch.device)
    patient.calibration, patient.warnings = watch.calibration, watch.warnings
    return patient
