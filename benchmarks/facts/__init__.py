"""How often facts of two short texts agree where they should: `python -m benchmarks.facts`."""
