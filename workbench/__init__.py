"""A user's own models: imported, tuned on own pairs, saved in other libraries' forms; never imported by training."""
