"""How good this package's stopwatch is, beside the public ones: the same workloads, quantities and
wall budget, by rules written before the run. `stopwatches` runs the comparison, `contest` judges it
from recordings alone. `worked_example` has one figure from its raw samples to its verdict.
"""
