"""Where to cut a model's scores, chosen on labelled pairs; imports `tables`, `client` and `jobs.batch`, and NumPy."""
