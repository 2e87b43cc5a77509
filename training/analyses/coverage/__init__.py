"""Analyses of what the training data cover: how many pairs, in which order, which words."""
