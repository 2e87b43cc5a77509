"""Kinds of training data and of word tables of recipes; their interface is `training.recipes.sources.source.Source`.

Only `objective` of `training.families` depends on the kind.
"""
