"""The package's stopwatch beside those of triton, torch and inductor."""
