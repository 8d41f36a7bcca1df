"""The comparison of this package's stopwatch with the public ones: what is run, and how.

* `workloads` ten callables from one element to a training step, and two pairs 2 % apart
* `adapters` each harness behind one form: a callable in, its figures out
* `protocol` one process of the comparison: orders, settle loads, pairs, effects
* `cupti` what the workloads take by the driver's own record of kernels

The rules stand in `anatomy.chapters.harnesses.harnesses`; the verdicts in
`anatomy.chapters.harnesses.contest.standings`, which reads recordings and needs none of this.
"""
