"""The comparison of this package's stopwatch with the public ones: what is run, and how, by the
rules in `anatomy.chapters.harnesses.harnesses`."""
