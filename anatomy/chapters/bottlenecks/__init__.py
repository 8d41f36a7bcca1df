"""Whether `diagnose` is right: workloads whose bottleneck is known by construction, and the names
that it gives them. And what a profile of a single call names as the longest.
"""
