"""Quality on text that is like no corpus: `python -m benchmarks.general`."""
