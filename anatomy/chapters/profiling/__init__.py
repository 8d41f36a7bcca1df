"""What a profiler sees of a training step, and what it costs to be watched."""
