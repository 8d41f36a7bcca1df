"""The ladder: one training step of one transformer in six scripts under snippets/ladder/, each rung
faster by one idea.

Every rung passes its gates (`gates`) before it is timed beside the others, in training (`steps`),
forward and in decoding (`inference`). Around them: what the card multiplies at best, which kernels
a step runs, where FP8 pays, and the bytes that attention moves.
"""
