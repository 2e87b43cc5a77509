"""An FAQ: which models answer from it best, from which confidence on; imports `tables`, `client`, `jobs.threshold`."""
