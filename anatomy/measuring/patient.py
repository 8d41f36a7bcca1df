"""The GPU's clock for calls of many milliseconds: a host that waited for long is slow afterwards.

After tens of milliseconds of waiting its caches are cold, and on some hosts even waiting for an
idle device then takes more than the 100 us that `CudaStopwatch` allows. It looks as if the call had
left work on another stream.
"""

import functools

import torch

from anatomy.measuring import comparison
from anatomy.measuring.result import Comparison
from anatomy.measuring.stopwatch import (
    SIDE_STREAM_S,
    Call,
    CpuStopwatch,
    CudaStopwatch,
    stopwatch_for,
)


class PatientStopwatch(CudaStopwatch):
    """As `CudaStopwatch`, less what waiting takes behind a sleep that lasts as long as the call."""

    def _still_busy(self, call: Call) -> bool:
        left_s, lasted_s = self._wait_behind(call)
        idle_s, _ = self._wait_behind(lambda: self.hold(lasted_s))
        return left_s - idle_s > SIDE_STREAM_S

    def _wait_behind(self, call: Call) -> tuple[float, float]:
        """Seconds that waiting for the device takes once the stream has finished with `call`, and
        those until then.
        """
        self.drain()
        end = torch.cuda.Event(enable_timing=True)
        start = self.now()
        call()
        end.record()
        end.synchronize()
        done = self.now()
        self.drain()
        return self.now() - done, done - start


@functools.lru_cache
def patient_stopwatch(device: torch.device) -> PatientStopwatch | CpuStopwatch:
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


@functools.wraps(comparison.compare)
def compare(variants, *, device="cuda:0", watch=None, **given) -> Comparison:
    """As `measuring.compare`, for a reader's own code: how long its calls take nobody knows."""
    watch = watch or patient_stopwatch(device)
    return comparison.compare(variants, device=device, watch=watch, **given)
