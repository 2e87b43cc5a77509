"""How well `semblance dedupe` finds the rows that say the same: `python -m benchmarks.duplicates`."""
