"""Workloads built to have one bottleneck, and whether `diagnose` names it."""
