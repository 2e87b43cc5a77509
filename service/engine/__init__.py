"""Graph runs: threads, batches, sessions, and the caches that save a run."""
