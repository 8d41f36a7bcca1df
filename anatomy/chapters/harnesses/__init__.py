"""How good this package's stopwatch is, beside the public ones: `stopwatches` runs the comparison,
`contest` judges its recordings. `worked_example` has one figure from samples to verdict."""
