"""Trials of what the service promises when things go wrong: `python -m benchmarks.faults`."""
