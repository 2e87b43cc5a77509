"""Plots of what was measured, and of which words met. May import papers, core and training."""
