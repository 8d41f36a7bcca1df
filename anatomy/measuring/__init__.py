"""How a number is made: the only clock of the package, and the comparison that uses it.

`compare` is the one function that times anything. Experiments call it, and so can a reader on
their own code. What each step is for stands in the module that does it:

* `stopwatch` the clocks: CUDA events behind a queue that hides dispatch, or the host's counter
* `patient` the same clock for calls of tens of milliseconds
* `calibration` what the clock itself costs, which is taken off
* `cache` puts the L2 cache into a known state before a cold call
* `sampling` decides how one sample of a callable is taken, and takes it
* `blocks` the order in which variants alternate, when to look, what to throw away
* `gates` what no measurement may be: faster than the hardware, or labelled with a wrong cause
* `census` which kernels ran, by name, as CUPTI saw them
* `comparison` puts the steps together, and `result` words what came of it
"""

from anatomy.measuring.comparison import compare
from anatomy.measuring.result import Comparison
from anatomy.measuring.stopwatch import account, stopwatch_for

__all__ = ["Comparison", "account", "compare", "stopwatch_for"]
