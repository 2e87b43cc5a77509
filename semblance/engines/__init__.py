"""Adapters of `semblance.scorer` for engines that run Python on many machines; each imports its engine.

See docs/engines.md.
"""
