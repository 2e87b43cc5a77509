"""A user's own models: imported, or tuned on own pairs; never imported by training."""
