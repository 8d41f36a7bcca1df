"""The ladder: one training step of one transformer in six scripts under snippets/ladder/, each rung
faster by one idea. Every rung passes its gates before it is timed beside the others."""
