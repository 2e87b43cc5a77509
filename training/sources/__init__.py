"""Kinds of training data and of word tables of recipes; their interface is `training.sources.source.Source`.

Only `training.runs.data` depends on the kind, to build the objective.
"""
