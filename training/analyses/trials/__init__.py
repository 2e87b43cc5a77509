"""Analyses that train networks of their own: folds of a corpus, and what an epoch costs."""
