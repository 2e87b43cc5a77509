"""Trials of the service's promises under faults: `python -m benchmarks.faults`."""
