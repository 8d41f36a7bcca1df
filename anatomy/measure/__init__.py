"""How a number is made: the only clock of the package, and the order in which it is used.

What may be concluded from it is none of its business: `anatomy.comparison.compare` judges what
`compare_raw` measures, and is what experiments call. From the lowest to the highest:

* `cache` how large the L2 cache is that a cold call must find empty
* `clock` the hot path: CUDA events behind a queue that hides dispatch, or the host's counter
* `census` which kernels ran, by name, as CUPTI saw them
* `calibration` what the clock itself costs, which is taken off
* `stopwatch` a clock with its calibration and its counters
* `sampling` decides how one sample of a callable is taken, and takes it
* `blocks` the order in which variants alternate, when to look, what to throw away; `turns` with
  processes that measure on other GPUs
* `comparison` puts the steps together

METHOD.json has the id of all this. It changes where a number could, and not where a word does;
`anatomy.record.provenance.method` says how that is known.
"""

from anatomy.measure.comparison import RawComparison, compare_raw
from anatomy.measure.stopwatch import account, stopwatch_for

__all__ = ["RawComparison", "account", "compare_raw", "stopwatch_for"]
