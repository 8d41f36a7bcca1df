"""The GPU's stopwatch for calls of many milliseconds, after which the host is slow for a while."""

import functools

import torch

from anatomy.measure.clock import PatientClock
from anatomy.measure.stopwatch import CudaStopwatch, Stopwatch, stopwatch_for


class PatientStopwatch(PatientClock, CudaStopwatch):
    """The stopwatch of a GPU, with a clock for long calls."""


@functools.lru_cache
def patient_stopwatch(device: torch.device) -> Stopwatch:
    """As `stopwatch_for`, for long calls, with the calibration and the warnings of that one."""
    watch = stopwatch_for(device)
    if not isinstance(watch, CudaStopwatch):
        return watch
    patient = PatientStopwatch(watch.device)
    patient.calibration, patient.warnings = watch.calibration, watch.warnings
    return patient
